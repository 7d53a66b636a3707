//! Resident memory of an operator that has nothing to do.

use std::time::Duration;

use anyhow::Result;
use windlass_runtime::cache::{Cache, Selection};
use windlass_runtime::controller::{Controller, Requeue};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::manager::Manager;

use super::Row;
use super::fixture::PodShape;
use super::memory::client;
use super::process::{Sibling, resident};

pub(crate) fn measure() -> Result<Vec<Row>> {
    let mut server = Sibling::start(&["serve", "0"])?;
    let mut row = Sibling::start(&["idle-row", &server.line()?])?;
    Ok(vec![Row::new("RSS of an idle operator: one controller, one watch, no objects", row.line()?)])
}

pub(crate) fn row(url: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let cache = Cache::new(&client(url)?);
        let pods = cache.reader::<PodShape>(&Selection::all());
        let controller = Controller::for_(&pods).build(|_: ObjectKey| async { Ok(Requeue::OnChange) })?;
        let mut manager = Manager::new();
        manager.cache(&cache)?;
        manager.controller(controller)?;
        let running = tokio::spawn(manager.run());
        pods.synced().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        super::print_line(&format!("{:.1} MB", resident()? as f64 / 1e6));
        running.abort();
        Ok(())
    })
}
