//! Measures the no-op reconciles of one worker per second, from a channel through the queue to the metrics.
//!
//! `cargo run --release -p windlass-runtime --example noop_reconciles [keys] [log]`
//!
//! With `log`, a JSON subscriber is installed, so that every reconcile has its span.
#![allow(clippy::print_stdout)] // it is what it is for

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tokio::sync::{Notify, mpsc};
use windlass_runtime::controller::{Controller, Requeue};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::log;
use windlass_runtime::manager::Stop;
use windlass_runtime::metrics::Metrics;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let keys: usize = arguments.next().map_or(Ok(500_000), |keys| keys.parse())?;
    if arguments.next().is_some() {
        log::init(log::Format::Json)?;
    }
    let names: Vec<_> = (0..keys).map(|n| ObjectKey::namespaced("bench", format!("object-{n}"))).collect();

    let (sender, receiver) = mpsc::channel(1024);
    let (done, finished) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (count, ring) = (Arc::clone(&done), Arc::clone(&finished));
    let controller = Controller::named("noop").channel(receiver).build(move |_: ObjectKey| {
        if count.fetch_add(1, Ordering::Relaxed) + 1 == keys {
            ring.notify_one();
        }
        std::future::ready(Ok(Requeue::OnChange))
    })?;
    let (stopper, stop) = Stop::pair();
    let metrics = Metrics::new();
    let running = tokio::spawn({
        let metrics = metrics.clone();
        async move { controller.run(&metrics, || (), stop).await }
    });

    let began = Instant::now();
    for key in names {
        sender.send(key).await?;
    }
    finished.notified().await;
    let took = began.elapsed();
    #[allow(clippy::cast_precision_loss)]
    let rate = keys as f64 / took.as_secs_f64();
    println!("{keys} reconciles in {took:?}: {rate:.0}/s");
    stopper.request();
    running.await??;
    Ok(())
}
