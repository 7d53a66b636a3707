//! `noop`: reconciles that read two caches, compare, and find nothing to do.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde::Serialize;
use tokio::sync::{Notify, mpsc};
use windlass_runtime::cache::{Reader, Selection};
use windlass_runtime::controller::{Controller, Error, Reconcile, Requeue};
use windlass_runtime::key::ObjectKey;

use crate::api::{NeededConfigMap, NeededWidget};
use crate::args::Common;
use crate::cpu;
use crate::program::Program;
use crate::wire::{commands, say};

/// The number of keys that may be on their way into the queue.
const CHANNEL: usize = 1024;
/// A key that no object has. Keys of one priority come out of the queue in the order in which they went in,
/// so when it comes out, everything before it has.
const END: &str = "end-of-flood";

/// Compares a Widget with the ConfigMap of its name.
struct Compare {
    widgets: Reader<NeededWidget>,
    configs: Reader<NeededConfigMap>,
    tally: Arc<Tally>,
}

#[derive(Default)]
struct Tally {
    reconciled: AtomicU64,
    in_flight: AtomicU64,
    mismatches: AtomicU64,
    /// The keys reconciled since the harness asked; created when all are known.
    seen: std::sync::OnceLock<HashMap<ObjectKey, AtomicBool>>,
    ended: Notify,
}

impl Reconcile for Compare {
    async fn reconcile(&self, key: ObjectKey) -> Result<Requeue, Error> {
        let tally = &self.tally;
        if key.name() == END {
            tally.ended.notify_one();
            return Ok(Requeue::OnChange);
        }
        tally.in_flight.fetch_add(1, Ordering::AcqRel);
        if let (Some(widget), Some(config)) = (self.widgets.get(&key), self.configs.get(&key)) {
            if Some(&widget.spec.color) != config.data.color.as_ref() {
                tally.mismatches.fetch_add(1, Ordering::Relaxed);
            }
        } else {
            tally.mismatches.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(seen) = tally.seen.get().and_then(|seen| seen.get(&key)) {
            seen.store(true, Ordering::Relaxed);
        }
        tally.reconciled.fetch_add(1, Ordering::AcqRel);
        tally.in_flight.fetch_sub(1, Ordering::AcqRel);
        Ok(Requeue::OnChange)
    }
}

pub(crate) async fn run(common: &Common) -> Result<()> {
    let mut program = Program::new(common).await?;
    let widgets = program.cache.reader::<NeededWidget>(&Selection::all());
    let configs = program.cache.reader::<NeededConfigMap>(&Selection::all());
    let tally = Arc::new(Tally::default());
    let (keys, flood) = mpsc::channel(CHANNEL);
    let controller = Controller::for_(&widgets)
        .owns(&configs)
        .channel(flood)
        .workers(common.workers)
        .build(Compare { widgets: widgets.clone(), configs: configs.clone(), tally: Arc::clone(&tally) })?;
    program.manager.controller(controller)?;
    program
        .run(async move {
            widgets.synced().await;
            configs.synced().await;
            let all: Vec<ObjectKey> = widgets
                .list()
                .iter()
                .map(|widget| windlass_runtime::cache::Shape::meta(&**widget).key.clone())
                .collect();
            let seen = all.iter().map(|key| (key.clone(), AtomicBool::new(false))).collect();
            tally.seen.set(seen).ok().context("the keys are known once")?;
            // The first reconciles have a low priority, so they are done when this comes out behind them.
            let flood = Flood { keys, all, tally };
            flood.all_once().await?;
            say(&serde_json::json!({"event": "synced", "count": flood.all.len()}))?;
            flood.obey().await
        })
        .await
}

/// Sends keys, and waits until they are reconciled.
struct Flood {
    keys: mpsc::Sender<ObjectKey>,
    all: Vec<ObjectKey>,
    tally: Arc<Tally>,
}

#[derive(Serialize)]
struct Flooded {
    event: &'static str,
    sent: u64,
    reconciled: u64,
    distinct: usize,
    mismatches: u64,
    wall_ns: u64,
    cpu_ns: u64,
}

impl Flood {
    async fn obey(&self) -> Result<()> {
        let mut commands = commands();
        while let Some(command) = commands.recv().await {
            match command.split(' ').collect::<Vec<_>>()[..] {
                ["flood", total] => say(&self.send("flooded", total.parse()?).await?)?,
                ["resync"] => say(&self.send("resynced", self.all.len() as u64).await?)?,
                ["quit"] => return Ok(()),
                _ => anyhow::bail!("{command:?} is no command here: take flood <total>, resync or quit"),
            }
        }
        std::future::pending().await
    }

    async fn send(&self, event: &'static str, total: u64) -> Result<Flooded> {
        let seen = self.tally.seen.get().context("the keys are known")?;
        for seen in seen.values() {
            seen.store(false, Ordering::Relaxed);
        }
        let reconciled = self.tally.reconciled.load(Ordering::Acquire);
        let mismatches = self.tally.mismatches.load(Ordering::Acquire);
        let (began, cpu) = (Instant::now(), cpu::spent_ns());
        let mut sent = 0;
        for key in self.all.iter().cycle() {
            if sent == total {
                break;
            }
            self.keys.send(key.clone()).await?;
            sent += 1;
        }
        self.drained().await?;
        let (wall, cpu) = (began.elapsed(), cpu::spent_ns().saturating_sub(cpu));
        Ok(Flooded {
            event,
            sent,
            reconciled: self.tally.reconciled.load(Ordering::Acquire) - reconciled,
            distinct: seen.values().filter(|seen| seen.load(Ordering::Relaxed)).count(),
            mismatches: self.tally.mismatches.load(Ordering::Acquire) - mismatches,
            wall_ns: u64::try_from(wall.as_nanos())?,
            cpu_ns: cpu,
        })
    }

    /// Waits until every key was reconciled once.
    async fn all_once(&self) -> Result<()> {
        while self.tally.seen.get().is_none_or(|seen| seen.values().any(|seen| !seen.load(Ordering::Relaxed)))
        {
            if self.tally.reconciled.load(Ordering::Acquire) >= self.all.len() as u64 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        self.drained().await
    }

    /// Waits until what was sent has been reconciled: twice, since a key that ran when it was sent goes back
    /// behind the first mark.
    async fn drained(&self) -> Result<()> {
        for _ in 0..2 {
            self.keys.send(ObjectKey::namespaced("bench", END)).await?;
            self.tally.ended.notified().await;
        }
        while self.tally.in_flight.load(Ordering::Acquire) > 0 {
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}
