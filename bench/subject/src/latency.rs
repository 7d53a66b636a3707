//! `latency`: how long it takes from a change to its reconcile, also while there is much else to do.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::mpsc;
use windlass_runtime::cache::{Reader, Selection, Shape as _};
use windlass_runtime::controller::{Controller, Error, Reconcile, Requeue};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::Keep;

use crate::api::NeededWidget;
use crate::args::Common;
use crate::program::Program;
use crate::wire::{commands, now_ns, say};

/// The annotation with the time at which the harness sent a change, in nanoseconds since 1970.
const SENT: &str = "bench.windlass.dev/sent";
/// The reconcile time of a key of the backlog.
const CHORE: Duration = Duration::from_millis(2);
/// The names of the backlog begin so.
const BACKLOG: &str = "backlog-";

/// Notes, for each change, how long it was on its way.
struct Note {
    widgets: Reader<NeededWidget>,
    noted: Arc<Mutex<Noted>>,
}

#[derive(Default)]
struct Noted {
    last: HashMap<ObjectKey, u64>,
    latencies: Vec<u64>,
    chores: u64,
}

impl Reconcile for Note {
    async fn reconcile(&self, key: ObjectKey) -> Result<Requeue, Error> {
        if key.name().starts_with(BACKLOG) {
            tokio::time::sleep(CHORE).await;
            self.noted.lock().chores += 1;
            return Ok(Requeue::OnChange);
        }
        let now = now_ns();
        let Some(widget) = self.widgets.get(&key) else { return Ok(Requeue::OnChange) };
        let sent = widget.meta().annotations.get(SENT).and_then(|sent| sent.parse::<u64>().ok());
        if let Some(sent) = sent {
            let mut noted = self.noted.lock();
            if noted.last.insert(key, sent) != Some(sent) {
                noted.latencies.push(now.saturating_sub(sent));
            }
        }
        Ok(Requeue::OnChange)
    }
}

pub(crate) async fn run(common: &Common) -> Result<()> {
    let mut program = Program::new(common).await?;
    let widgets =
        program.cache.reader::<NeededWidget>(&Selection::all().keep(Keep::default().annotation(SENT)));
    let noted = Arc::new(Mutex::new(Noted::default()));
    let (chores, backlog) = mpsc::channel(1024);
    let controller = Controller::for_(&widgets)
        .background(backlog)
        .workers(common.workers)
        .build(Note { widgets: widgets.clone(), noted: Arc::clone(&noted) })?;
    program.manager.controller(controller)?;
    program
        .run(async move {
            widgets.synced().await;
            say(&json!({"event": "started"}))?;
            let mut commands = commands();
            while let Some(command) = commands.recv().await {
                match command.split(' ').collect::<Vec<_>>()[..] {
                    ["report"] => {
                        let (latencies, chores) = {
                            let mut noted = noted.lock();
                            (std::mem::take(&mut noted.latencies), std::mem::take(&mut noted.chores))
                        };
                        say(&json!({"event": "latencies", "seen": latencies.len(), "chores": chores, "ns": latencies}))?;
                    }
                    ["backlog", count] => {
                        for index in 0..count.parse::<u64>()? {
                            chores.send(ObjectKey::namespaced("bench", format!("{BACKLOG}{index}"))).await?;
                        }
                    }
                    ["quit"] => return Ok(()),
                    _ => anyhow::bail!("{command:?} is no command here: take report, backlog <n> or quit"),
                }
            }
            std::future::pending().await
        })
        .await
}
