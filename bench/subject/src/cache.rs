//! `cache`: keeps a kind in memory, reports its content, and answers reads.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Serialize;
use serde_json::Value;
use windlass_runtime::cache::{Cache, Full, MetadataOnly, OfKind, Packed, Reader, Selection, WatchTiming};
use windlass_runtime::controller::{Controller, Requeue};
use windlass_runtime::key::ObjectKey;

use crate::api::{NeededConfigMap, NeededWidget, Widget};
use crate::args::{CacheArgs, CachedKind, Common, Form};
use crate::program::Program;
use crate::wire::{commands, say};

/// The description of a cached object.
#[derive(Default, Serialize)]
struct Description {
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<Value>,
    size: i64,
    color: String,
    ready: bool,
}

impl Description {
    fn of_widget(widget: &Widget) -> Self {
        Self {
            spec: serde_json::to_value(&widget.spec).ok(),
            size: widget.spec.size,
            color: widget.spec.color.clone(),
            ready: widget.status.as_ref().is_some_and(|status| status.ready),
        }
    }
}

/// A form of an object that can be described for the harness.
trait Described: OfKind {
    fn size(&self) -> i64 {
        0
    }
    fn describe(&self) -> Description {
        Description::default()
    }
}

impl Described for Full<Widget> {
    fn size(&self) -> i64 {
        self.spec.size
    }
    fn describe(&self) -> Description {
        Description::of_widget(self)
    }
}

impl Described for Packed<Widget> {
    fn size(&self) -> i64 {
        self.object().map_or(0, |widget| widget.spec.size)
    }
    fn describe(&self) -> Description {
        self.object().map(|widget| Description::of_widget(&widget)).unwrap_or_default()
    }
}

impl Described for NeededWidget {
    fn size(&self) -> i64 {
        self.spec.size
    }
    fn describe(&self) -> Description {
        let color = self.spec.color.to_string();
        Description { spec: None, size: self.spec.size, color, ready: self.status.ready }
    }
}

impl Described for Full<ConfigMap> {
    fn describe(&self) -> Description {
        let color = self.data.as_ref().and_then(|data| data.get("color")).cloned().unwrap_or_default();
        Description { spec: serde_json::to_value(&self.data).ok(), color, ..Description::default() }
    }
}

impl Described for NeededConfigMap {
    fn describe(&self) -> Description {
        let color = self.data.color.as_deref().unwrap_or_default().to_owned();
        Description { color, ..Description::default() }
    }
}

impl Described for MetadataOnly<Widget> {}
impl Described for MetadataOnly<ConfigMap> {}

pub(crate) async fn run(common: &Common, args: &CacheArgs) -> Result<()> {
    match (args.kind, args.form) {
        (CachedKind::Widget, Form::Full) => keep::<Full<Widget>>(common, args).await,
        (CachedKind::Widget, Form::Packed) => keep::<Packed<Widget>>(common, args).await,
        (CachedKind::Widget, Form::Needed) => keep::<NeededWidget>(common, args).await,
        (CachedKind::Widget, Form::Metadata) => keep::<MetadataOnly<Widget>>(common, args).await,
        (CachedKind::Configmap, Form::Packed) => anyhow::bail!("only Widgets are packed here"),
        (CachedKind::Configmap, Form::Full) => keep::<Full<ConfigMap>>(common, args).await,
        (CachedKind::Configmap, Form::Needed) => keep::<NeededConfigMap>(common, args).await,
        (CachedKind::Configmap, Form::Metadata) => keep::<MetadataOnly<ConfigMap>>(common, args).await,
    }
}

async fn keep<S: Described>(common: &Common, args: &CacheArgs) -> Result<()> {
    let mut program = Program::new(common).await?;
    if args.page {
        // A list that may take no time at all is given up for pages. The server has begun it by then, which
        // counts against us.
        let timing = WatchTiming { list_total: Duration::ZERO, ..WatchTiming::default() };
        program.cache = Cache::with_timing(&program.client, timing);
    }
    let reader: Reader<S> = program.cache.reader(&Selection::all());
    for index in 0..args.controllers {
        let objects = reader.clone();
        let controller =
            Controller::for_(&reader).name(format!("controller-{index}")).workers(common.workers);
        program.manager.controller(controller.build(move |key: ObjectKey| {
            let found = objects.get(&key).is_some();
            async move {
                tracing::trace!(found, "nothing to do");
                Ok(Requeue::OnChange)
            }
        })?)?;
    }
    program.run(answer(reader)).await
}

async fn answer<S: Described>(reader: Reader<S>) -> Result<()> {
    reader.synced().await;
    say(&Synced::of(&reader))?;
    let mut commands = commands();
    while let Some(command) = commands.recv().await {
        match command.split(' ').collect::<Vec<_>>()[..] {
            ["read", namespace, name] => {
                let found = reader.get(&ObjectKey::namespaced(namespace, name));
                let description = found.as_ref().map(|object| object.describe()).unwrap_or_default();
                let bytes = description.spec.as_ref().map_or(0, |spec| spec.to_string().len());
                say(&Object { event: "object", found: found.is_some(), bytes, description })?;
            }
            ["count"] => say(&Synced::of(&reader))?,
            ["quit"] => return Ok(()),
            _ => anyhow::bail!("{command:?} is no command here: take read, count or quit"),
        }
    }
    std::future::pending().await
}

#[derive(Serialize)]
struct Synced {
    event: &'static str,
    count: usize,
    names: String,
    sizes: i64,
}

impl Synced {
    fn of<S: Described>(reader: &Reader<S>) -> Self {
        let all = reader.list();
        let names = all.iter().fold(0u64, |sum, object| {
            let meta = object.meta();
            sum.wrapping_add(fnv(&format!("{}/{}", meta.namespace().unwrap_or_default(), meta.name())))
        });
        Self {
            event: "synced",
            count: all.len(),
            names: format!("{names:016x}"),
            sizes: all.iter().map(|object| object.size()).sum(),
        }
    }
}

#[derive(Serialize)]
struct Object {
    event: &'static str,
    found: bool,
    bytes: usize,
    #[serde(flatten)]
    description: Description,
}

/// FNV-1a, 64 bits.
fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_summed_by_fnv_1a() {
        assert_eq!(fnv(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv("a"), 0xaf63_dc4c_8601_ec8c);
    }
}
