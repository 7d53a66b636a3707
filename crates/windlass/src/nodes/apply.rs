//! An object that is applied and owned: compared, applied if it differs, checked for readiness.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use serde::Serialize;
use serde_json::Value;
use windlass_graph::Progress;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use crate::error::{NodeError, PlanError, Reason};
use crate::live::readiness::{self, Readiness};
use crate::live::{AsLive, Kind, Live, ownership};
use crate::names::mark;
use crate::plan::desired::{Desired, digest_of};
use crate::plan::node::{
    Creation, How, Node, Place, Sketched, Visit, Visited, Wait, Write, being_deleted, not_read_back,
};
use crate::plan::{Plan, Planned};

/// The interval at which to check whether a missing kind has been installed: no watch reports it.
const MISSING_KIND: Duration = Duration::from_secs(10);

impl Plan {
    /// Adds an object that is applied and owned: repaired when it drifts, pruned when it leaves the plan.
    pub fn add<K: Kind + Serialize>(&mut self, object: K) -> Planned {
        let desired = Desired::of(&object, self.namespace());
        self.applied(desired)
    }

    /// Adds an object in JSON, of a kind that is known only at run time.
    pub fn add_json(&mut self, resource: ResourceType, object: Value) -> Planned {
        let desired = Desired::from_value(resource, object, self.namespace());
        self.applied(desired)
    }

    fn applied(&mut self, desired: Result<Desired, PlanError>) -> Planned {
        let namespace = self.namespace().map(str::to_owned);
        self.node_or(desired.map(|desired| (desired.id(namespace.as_deref()), Apply { desired })))
    }
}

/// The node of an object that is applied.
pub(super) struct Apply {
    pub(super) desired: Desired,
}

impl Node for Apply {
    fn describe(&self) -> String {
        "apply".to_owned()
    }

    fn object(&self) -> Option<(&ResourceType, &ObjectKey)> {
        Some((&self.desired.resource, &self.desired.key))
    }

    fn sketch(&self) -> Sketched<'_> {
        Sketched::Object(&self.desired)
    }

    fn visit<'a>(&'a self, place: &'a Place, run: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        visit(&self.desired, place, run).boxed()
    }
}

pub(super) async fn visit(planned: &Desired, place: &Place, run: &dyn Visit) -> Visited {
    if let Some(why) = run.missing_kind(&planned.resource)? {
        return Ok(Wait::because(Reason::InputMissing, why).poll(MISSING_KIND).into());
    }
    let live = run.live(&planned.resource, &planned.key)?;
    let desired = run.complete(place, planned, live.as_deref().map(AsLive::live)).await?;
    if let Some(digest) = desired.content_digest()? {
        run.offer(place, digest);
    }
    let digest = digest_of(&desired);
    let write = Write { place, desired: &desired, digest: &digest, how: How::Apply };
    match &live {
        None => create(write, run).await?,
        Some(live) => {
            let live = live.live();
            if !run.owner().has(&live.metadata) {
                if !run.was_left_for_us(live) {
                    return Err(run.collision(live));
                }
                run.update(write, &live.metadata, "taken back").await?;
            } else if live.metadata.deleting {
                return Ok(being_deleted(live));
            } else if let Some(why) = drift(&desired, &digest, live) {
                run.update(write, &live.metadata, &why).await?;
            }
        }
    }
    check(&desired, place, run)
}

/// Creates an object; if an object of its name exists that our watch does not show, adopts that one.
pub(super) async fn create(write: Write<'_>, run: &dyn Visit) -> Result<(), NodeError> {
    if run.was_there(write.place) {
        run.ensure_owner().await?;
    }
    match run.create(write).await? {
        Creation::Created => Ok(()),
        Creation::Exists => run.adopt(write).await,
    }
}

fn check(desired: &Desired, place: &Place, run: &dyn Visit) -> Visited {
    // The response to our write is in the cache, unless the object no longer matches the selection.
    let Some(live) = run.live(&desired.resource, &desired.key)? else { return Ok(not_read_back()) };
    let live = live.live();
    let readiness = match &place.options.check {
        Some(check) => check(live),
        None => readiness::check(&desired.resource, live),
    };
    match readiness {
        Readiness::Ready => Ok(Progress::Ready),
        Readiness::Failed(why) => Err(NodeError::terminal(Reason::Failed, why)),
        Readiness::Waiting(why) => {
            let problem = run.pod_problem(&desired.resource, &desired.key);
            let message = problem.map(|problem| format!("{why} ({problem})"));
            Ok(Wait::new(message.unwrap_or(why)).into())
        }
    }
}

/// Returns the reason why an object must be applied; `None` if nothing has changed since the last apply.
fn drift(desired: &Desired, digest: &str, live: &Live) -> Option<String> {
    let meta = &live.metadata;
    match meta.annotations.get(mark::DIGEST) {
        None => return Some("its digest is missing".into()),
        Some(known) if **known != *digest => return Some("the plan has changed".into()),
        Some(_) => {}
    }
    let api_version = desired.resource.api_version();
    let Some(entry) = meta.managed.iter().find(|entry| *entry.api_version == *api_version) else {
        return Some("our entry for this API version is missing in its managedFields".into());
    };
    ownership::lost(&desired.body, &entry.fields()).map(|path| format!("somebody changed {path}"))
}
