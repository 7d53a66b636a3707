//! Reconciles per second that do nothing: what the queue and the worker cost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::Result;
use tokio::sync::mpsc;
use windlass_runtime::controller::{Controller, Requeue};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::manager::Manager;

use super::Row;

/// Distinct keys, so that the queue has something to tell apart.
const KEYS: usize = 10_000;

pub(crate) fn measure(sent: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for workers in [1, 10] {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let rate = runtime.block_on(rate(workers, sent))?;
        rows.push(Row::new(
            format!("reconciles that do nothing, {workers} worker(s)"),
            format!("{rate:.0} per second"),
        ));
    }
    Ok(rows)
}

async fn rate(workers: usize, sent: usize) -> Result<f64> {
    let done = Arc::new(AtomicUsize::new(0));
    let (sender, keys) = mpsc::channel(1024);
    let counter = Arc::clone(&done);
    let controller =
        Controller::named("bench").channel(keys).workers(workers).build(move |_: ObjectKey| {
            counter.fetch_add(1, Ordering::Relaxed);
            async { Ok(Requeue::OnChange) }
        })?;
    let mut manager = Manager::new();
    manager.controller(controller)?;
    let running = tokio::spawn(manager.run());
    let names: Vec<ObjectKey> =
        (0..KEYS).map(|index| ObjectKey::namespaced("bench", format!("object-{index}"))).collect();
    let began = Instant::now();
    // What is sent while its key waits is one reconcile with it, as it should be: counted is what ran.
    for index in 0..sent {
        sender.send(names[index % KEYS].clone()).await?;
    }
    drop(sender);
    let elapsed = began.elapsed().as_secs_f64();
    let ran = done.load(Ordering::Relaxed);
    running.abort();
    anyhow::ensure!(ran >= KEYS, "not every key was reconciled: {ran}");
    Ok(ran as f64 / elapsed)
}
