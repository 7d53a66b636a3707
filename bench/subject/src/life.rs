//! `life` and `idle`: starting, stopping, leading and taking over.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use windlass_runtime::cache::{Reader, Selection};
use windlass_runtime::controller::{Controller, Error, Reconcile, Requeue};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::leader::{Election, ElectionOptions};
use windlass_runtime::manager::{BoxError, Context, Runnable, Stage};

use crate::api::NeededWidget;
use crate::args::{Common, LifeArgs};
use crate::program::Program;
use crate::wire::{now_ns, say};

/// Tells of each key that it was reconciled. Slow Widgets take a second.
struct Tell {
    widgets: Reader<NeededWidget>,
    slow: bool,
}

impl Reconcile for Tell {
    async fn reconcile(&self, key: ObjectKey) -> Result<Requeue, Error> {
        let Some(widget) = self.widgets.get(&key) else { return Ok(Requeue::OnChange) };
        say(&json!({"event": "reconciled", "name": key.name(), "at_ns": now_ns()})).map_err(terminal)?;
        if self.slow && &*widget.spec.color == "slow" {
            tokio::time::sleep(Duration::from_secs(1)).await;
            say(&json!({"event": "finished", "name": key.name()})).map_err(terminal)?;
        }
        Ok(Requeue::OnChange)
    }
}

/// A terminal error: the harness no longer reads, and a retry would not help.
fn terminal(error: anyhow::Error) -> Error {
    Error::terminal(error.to_string())
}

pub(crate) async fn run(common: &Common, args: &LifeArgs) -> Result<()> {
    let mut program = Program::new(common).await?;
    let widgets = program.cache.reader::<NeededWidget>(&Selection::all());
    let controller = Controller::for_(&widgets)
        .workers(common.workers)
        .build(Tell { widgets: widgets.clone(), slow: args.slow })?;
    program.manager.controller(controller)?;
    if let (Some(lease), Some(namespace)) = (&args.lease, &args.namespace) {
        let options = ElectionOptions::new(lease).namespace(namespace);
        program.manager.election(Election::new(&program.client, options)?)?;
        program.manager.add(Stage::Controllers, announcement())?;
    }
    program.run(std::future::pending()).await
}

/// Says that this process leads. What belongs to the stage of controllers starts when it does.
fn announcement() -> Runnable {
    Runnable::new("announcement", |context: Context| async move {
        say(&json!({"event": "leading", "at_ns": now_ns()}))?;
        context.ready();
        context.stop.requested().await;
        Ok::<_, BoxError>(())
    })
}
