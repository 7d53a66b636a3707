//! Records: the version of the data that an object holds, written on the object itself.
//!
//! A status is lost when its owner is created anew or restored from a backup; the data and the object that
//! holds it stay. The record is an annotation with a field manager of its own, so that neither the digest of
//! the object nor anything that depends on its content changes.

use futures::future::{BoxFuture, FutureExt as _};
use windlass_graph::Progress;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use crate::live::Kind;
use crate::live::kind::id;
use crate::names::mark::DATA_VERSION;
use crate::plan::node::{Node, Place, Visit, Visited, Wait};
use crate::plan::{Plan, Planned};

impl Plan {
    /// Records the version of the data that an object of the plan holds, in the annotation
    /// [`windlass.dev/data-version`](DATA_VERSION). Let the node come [behind](Planned::behind) the workload
    /// that brings the data to this version: the record is what the data has, not what was asked for.
    ///
    /// The record is kept when the owner is deleted and the object is retained. A later owner of the same
    /// name [looks at](crate::Needs::look) the object, and reads it with [`recorded_version`].
    pub fn record<K: Kind>(&mut self, name: impl AsRef<str>, version: impl Into<String>) -> Planned {
        self.record_with::<K>("data version", name.as_ref(), version.into(), false)
    }

    /// Records the version of the data of an object that has no record yet. For objects that were created
    /// before there were records: let the workload of a newer version come behind the node.
    pub fn record_if_absent<K: Kind>(
        &mut self,
        name: impl AsRef<str>,
        version: impl Into<String>,
    ) -> Planned {
        self.record_with::<K>("former data version", name.as_ref(), version.into(), true)
    }

    fn record_with<K: Kind>(&mut self, what: &str, name: &str, version: String, if_absent: bool) -> Planned {
        let resource = ResourceType::of::<K>();
        let key = self.key(&resource, name);
        let id = format!("{what} of {}", id(&resource, &key, self.namespace()));
        self.node(id, Record { resource, key, version, if_absent })
    }
}

/// Returns the version of the data that an object holds, if it is recorded.
pub fn recorded_version<K: Kind>(object: &K) -> Option<&str> {
    object.meta().annotations.as_ref()?.get(DATA_VERSION).map(String::as_str)
}

struct Record {
    resource: ResourceType,
    key: ObjectKey,
    version: String,
    if_absent: bool,
}

impl Node for Record {
    fn describe(&self) -> String {
        format!("record {}", self.version)
    }

    fn kind(&self) -> &'static str {
        "record"
    }

    fn visit<'a>(&'a self, _: &'a Place, run: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        async move {
            let live = run.live(&self.resource, &self.key)?;
            let Some(live) = live.filter(|live| run.owner().has(&live.live().metadata)) else {
                return Ok(Wait::new("the object does not exist yet").into());
            };
            let meta = &live.live().metadata;
            let is_recorded = match meta.annotations.get(DATA_VERSION) {
                Some(version) => self.if_absent || **version == *self.version,
                None => false,
            };
            if !is_recorded && !run.is_observing() {
                run.record(&self.resource, &self.key, meta.uid, &self.version).await?;
            }
            Ok(Progress::Ready)
        }
        .boxed()
    }
}
