//! An object that is renewed before it expires: certificates.
//!
//! One annotation of the object records when it is due, another what it was made from. So a visit costs no
//! request, and the content of a Secret is read only when it is to be replaced. The new object is a pure
//! function of its [context](RenewContext).

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use windlass_graph::Progress;
use windlass_runtime::json::typed;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::Meta;
use windlass_runtime::resource::ResourceType;

use super::apply::create;
use super::blocking;
use crate::error::{NodeError, PlanError, Reason};
use crate::live::kind::id;
use crate::live::{Kind, ownership};
use crate::names::mark;
use crate::names::naming::hex;
use crate::plan::digest::Content;
use crate::plan::node::{
    How, Node, Place, Remake, Sketched, Visit, Visited, Write, being_deleted, not_read_back,
};
use crate::plan::{Desired, Plan, Planned, Random};

type Make = Arc<dyn Fn(&mut RenewContext<'_>) -> Result<(Desired, Timestamp), PlanError> + Send + Sync>;

const TOUCHED: &str = "somebody changed it";

/// The tolerated difference between the clocks of two replicas: within it, an object that one replica made is
/// not renewed by the other.
const SKEW: Duration = Duration::from_mins(10);

impl Plan {
    /// Adds an object of this name that is renewed before it expires: certificates. `make` runs only if the
    /// object does not exist, if it is due, if somebody has changed its data, if `recipe` (the parameters of
    /// the object: names, lifetimes) has changed, or if a renewed object that it comes after was renewed.
    ///
    /// Unlike an object that is [generated once](Self::create_once), it protects no data: if it is deleted,
    /// another is made. Workloads that come after it are rolled when it is renewed.
    pub fn renew<K: Kind + Serialize>(
        &mut self,
        name: impl AsRef<str>,
        recipe: impl Into<String>,
        make: impl Fn(&mut RenewContext<'_>) -> Result<Renewed<K>, PlanError> + Send + Sync + 'static,
    ) -> Planned {
        let resource = ResourceType::of::<K>();
        let key = self.key(&resource, name.as_ref());
        let (namespace, wanted) = (self.namespace().map(str::to_owned), key.clone());
        let make: Make = Arc::new(move |context: &mut RenewContext<'_>| {
            let Renewed { object, due } = make(context)?;
            let desired = Desired::of(&object, namespace.as_deref())?;
            if desired.key == wanted {
                return Ok((desired, due));
            }
            let (kind, key) = (&desired.resource.kind, &desired.key);
            Err(PlanError::new(format!(
                "the renewed {kind} is named {key}, but its place in the plan is {wanted}"
            )))
        });
        let recipe = recipe.into();
        self.node(id(&resource, &key, self.namespace()), Renew { resource, key, recipe, make })
    }
}

struct Renew {
    resource: ResourceType,
    key: ObjectKey,
    recipe: String,
    make: Make,
}

impl Node for Renew {
    fn describe(&self) -> String {
        "renew".to_owned()
    }

    fn object(&self) -> Option<(&ResourceType, &ObjectKey)> {
        Some((&self.resource, &self.key))
    }

    fn sketch(&self) -> Sketched<'_> {
        Sketched::Renewed(&self.recipe)
    }

    fn is_renewed(&self) -> bool {
        true
    }

    fn visit<'a>(&'a self, place: &'a Place, run: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        self.bring(place, run).boxed()
    }
}

impl Renew {
    async fn bring(&self, place: &Place, run: &dyn Visit) -> Visited {
        let live = run.live(&self.resource, &self.key)?;
        if let Some(live) = &live {
            let live = live.live();
            if !run.owner().has(&live.metadata) && !run.was_left_for_us(live) {
                return Err(run.collision(live));
            }
            if live.metadata.deleting {
                return Ok(being_deleted(live));
            }
        }
        let renewed = place.contents.iter().filter(|index| run.is_renewed(**index));
        let from = made_from(&self.recipe, renewed.map(|index| run.content(*index)));
        let now = Timestamp::now();
        let stale = match &live {
            None => Some("it is missing"),
            Some(live) => stale(&live.live().metadata, &self.resource.api_version(), &from, now),
        };
        if run.is_observing() && live.is_none() {
            // Keys that nobody will use are not generated.
            return Err(NodeError::transient(
                Reason::Paused,
                "it is not generated while the owner is paused",
            ));
        }
        if let Some(why) = stale.filter(|_| !run.is_observing()) {
            if why == TOUCHED {
                run.stop_writers(place, &self.key).await?;
            }
            let present = if live.is_some() { run.read(&self.resource, &self.key).await? } else { None };
            let making = Making { renew: self, place, run, from: &from, now };
            let desired = making.make(present.as_ref()).await?;
            let write = Write { place, desired: &desired, digest: &from, how: How::Remake(&making) };
            match &live {
                None => create(write, run).await?,
                Some(live) => run.update(write, &live.live().metadata, why).await?,
            }
        }
        let Some(live) = run.live(&self.resource, &self.key)? else { return Ok(not_read_back()) };
        let meta = &live.live().metadata;
        if let Some(due) = due(meta) {
            run.note_due(due);
        }
        run.offer(place, content(meta));
        Ok(Progress::Ready)
    }
}

impl Renew {
    /// Makes the object and the time of its next renewal, on a thread of its own.
    async fn made(
        &self,
        now: Timestamp,
        present: Option<Value>,
        before: Vec<Value>,
        dependents: Vec<Value>,
    ) -> Result<(Desired, Timestamp), NodeError> {
        let make = Arc::clone(&self.make);
        let (before, dependents) = (before.into_boxed_slice(), dependents.into_boxed_slice());
        blocking::run(move || {
            let (random, present) = (&mut Random::new(), present.as_ref());
            make(&mut RenewContext { now, random, present, before: &before, dependents: &dependents })
        })
        .await
    }
}

/// Returns the value of the annotation that records what a renewed object is made from: the recipe, and the
/// contents of the renewed objects that it comes after.
pub(crate) fn made_from(recipe: &str, renewed: impl Iterator<Item = Option<Content>>) -> String {
    let mut hash = Sha256::new();
    hash.update(recipe.as_bytes());
    for content in renewed {
        hash.update([0]);
        hash.update(content.map(|content| content.digest).unwrap_or_default());
    }
    hex(&hash.finalize()[..16])
}

/// One visit in which an object is renewed.
struct Making<'a> {
    renew: &'a Renew,
    place: &'a Place,
    run: &'a dyn Visit,
    from: &'a str,
    now: Timestamp,
}

impl Making<'_> {
    /// Makes the object, given the existing one. Objects that are made from it in this run get the new
    /// version.
    async fn make(&self, present: Option<&Value>) -> Result<Desired, NodeError> {
        let mut before = Vec::new();
        for index in &self.place.contents {
            before.extend(self.run.body(*index).await?);
        }
        let dependents = self.run.renewed_after(self.place.index).await?;
        let (mut desired, due) = self.renew.made(self.now, present.cloned(), before, dependents).await?;
        self.run.mutate(self.place, &mut desired)?;
        self.run.mark(self.place, &mut desired)?;
        let data = desired.body.get("data").and_then(Value::as_object);
        let keys: Vec<&str> = data.into_iter().flat_map(Map::keys).map(String::as_str).collect();
        let keys = keys.join(",");
        desired.annotate(mark::DUE, due.to_string());
        desired.annotate(mark::MADE_AT, self.now.to_string());
        desired.annotate(mark::MADE_FROM, format!("{}:{keys}", self.from));
        self.run.offer_body(self.place, desired.body.clone());
        Ok(desired)
    }
}

impl Remake for Making<'_> {
    fn remake<'a>(&'a self, present: &'a Value) -> BoxFuture<'a, Result<Desired, NodeError>> {
        self.make(Some(present)).boxed()
    }
}

/// The context in which a [renewed](crate::Plan::renew) object is made: the time, randomness, and the
/// existing objects.
pub struct RenewContext<'a> {
    pub(crate) now: Timestamp,
    pub(crate) random: &'a mut Random,
    pub(crate) present: Option<&'a Value>,
    pub(crate) before: &'a [Value],
    pub(crate) dependents: &'a [Value],
}

impl<'a> RenewContext<'a> {
    /// Returns a context for tests: at this time, with this existing object, and with these objects that it
    /// comes after.
    pub fn at(
        now: Timestamp,
        random: &'a mut Random,
        present: Option<&'a Value>,
        before: &'a [Value],
    ) -> Self {
        Self { now, random, present, before, dependents: &[] }
    }

    /// Returns the same context with these renewed objects that are made from this one.
    #[must_use]
    pub fn with_dependents(self, dependents: &'a [Value]) -> Self {
        Self { dependents, ..self }
    }

    /// Returns the present time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the source of random numbers.
    pub fn random(&mut self) -> &mut Random {
        self.random
    }

    /// Returns the existing object; `None` if it does not exist or has another type.
    pub fn present<K: DeserializeOwned>(&self) -> Option<K> {
        typed(self.present?).ok()
    }

    /// Returns a renewed object that this one comes after.
    pub fn before<K: Kind + DeserializeOwned>(&self, name: &str) -> Option<K> {
        of_kind(self.before).find(|object: &K| object.name_any() == name)
    }

    /// Returns the existing renewed objects that come after this one.
    ///
    /// An authority sees here which of its certificates have followed its last step. The next step, such as
    /// removing the trust in the previous authority, waits for all of them.
    pub fn dependents<K: Kind + DeserializeOwned>(&self) -> Vec<K> {
        of_kind(self.dependents).collect()
    }
}

fn of_kind<K: Kind + DeserializeOwned>(objects: &[Value]) -> impl Iterator<Item = K> {
    objects.iter().filter(|object| object["kind"] == *K::kind(&())).filter_map(|object| typed(object).ok())
}

impl std::fmt::Debug for RenewContext<'_> {
    // Objects are left out of debug output: they may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RenewContext").field("now", &self.now).finish_non_exhaustive()
    }
}

/// A renewed object, and the time of its next renewal.
pub struct Renewed<K> {
    /// The object. Changes that others make to its `data` are detected.
    pub object: K,
    /// The time of the next renewal. A time in the past causes a renewal in every reconcile.
    pub due: Timestamp,
}

impl<K> std::fmt::Debug for Renewed<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Renewed").field("due", &self.due).finish_non_exhaustive()
    }
}

/// Returns the reason why an object has to be renewed, if there is one.
fn stale(meta: &Meta, api_version: &str, from: &str, now: Timestamp) -> Option<&'static str> {
    if due(meta).is_none_or(|due| due <= now) {
        return Some("it is due");
    }
    if made_at(meta).is_some_and(|made| made > now + SKEW) {
        return Some("it was made by a clock that was ahead");
    }
    let made = meta.annotations.get(mark::MADE_FROM).map(|made| made.as_str().to_owned()).unwrap_or_default();
    let Some(keys) = made.strip_prefix(from).and_then(|rest| rest.strip_prefix(':')) else {
        return Some("what it is made from has changed");
    };
    let Some(entry) = meta.managed.iter().find(|entry| *entry.api_version == *api_version) else {
        return Some("our entry for this API version is missing in its managedFields");
    };
    let data: Map<String, Value> =
        keys.split(',').filter(|key| !key.is_empty()).map(|key| (key.to_owned(), "".into())).collect();
    let lost = !data.is_empty() && ownership::lost(&json!({"data": data}), &entry.fields()).is_some();
    lost.then_some(TOUCHED)
}

fn due(meta: &Meta) -> Option<Timestamp> {
    meta.annotations.get(mark::DUE)?.parse().ok()
}

/// Returns the time at which the object was made. A certificate that was made by a clock which has been set
/// back since is not valid yet, and seems to be valid for longer than it is.
fn made_at(meta: &Meta) -> Option<Timestamp> {
    meta.annotations.get(mark::MADE_AT)?.parse().ok()
}

/// Returns the content of a renewed object that flows into the nodes after it: it changes with every renewal.
pub(crate) fn content(meta: &Meta) -> Vec<u8> {
    let mark = |key| meta.annotations.get(key).map(|value| value.as_str().to_owned()).unwrap_or_default();
    format!("{} {} {}", meta.uid, mark(mark::DUE), mark(mark::MADE_FROM)).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Live;
    use k8s_openapi::api::core::v1::Secret;
    use std::thread;
    use windlass_runtime::meta::Keep;

    #[tokio::test]
    async fn seam_low_a_certificate_is_not_made_on_a_thread_of_the_runtime() {
        let here = thread::current().id();
        let make = move |context: &mut RenewContext<'_>| {
            let place = if thread::current().id() == here { "here" } else { "elsewhere" };
            let seen = (context.before.len(), context.dependents.len(), context.present.is_some());
            Err(PlanError::new(format!("{place} {seen:?}")))
        };
        let (resource, key) = (ResourceType::of::<Secret>(), ObjectKey::namespaced("shop", "tls"));
        let renew = Renew { resource, key, recipe: String::new(), make: Arc::new(make) };
        let objects = |count| vec![Value::Null; count];
        let result = renew.made(Timestamp::UNIX_EPOCH, Some(Value::Null), objects(2), objects(1)).await;
        assert_eq!(result.unwrap_err().to_string(), "elsewhere (2, 1, true)");
    }

    fn secret(due: &str, made: &str, fields: &Value) -> Live {
        let text = json!({"metadata": {"name": "a", "namespace": "n", "uid": "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d", "resourceVersion": "5",
            "annotations": {mark::DUE: due, mark::MADE_FROM: made},
            "managedFields": [{"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}]}})
        .to_string();
        let keep = Keep::default().manager("m").annotation(mark::DUE).annotation(mark::MADE_FROM);
        let keep = keep.annotation(mark::MADE_AT);
        keep.scope(|| serde_json::from_str(&text)).unwrap()
    }

    #[test]
    fn an_object_is_renewed_when_it_is_due_made_from_something_else_or_changed_by_others() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let ours = json!({"f:data": {"f:tls.crt": {}, "f:tls.key": {}}});
        let stale = |due: &str, made: &str, fields: &Value| {
            super::stale(&secret(due, made, fields).metadata, "v1", "abc", now)
        };
        let later = "2026-01-01T00:00:01Z";
        assert_eq!(stale(later, "abc:tls.crt,tls.key", &ours), None);
        assert_eq!(stale("2026-01-01T00:00:00Z", "abc:tls.crt,tls.key", &ours), Some("it is due"));
        assert_eq!(stale("soon", "abc:tls.crt,tls.key", &ours), Some("it is due"));
        assert_eq!(stale(later, "abd:tls.crt,tls.key", &ours), Some("what it is made from has changed"));
        let theirs = json!({"f:data": {"f:tls.key": {}}});
        assert_eq!(stale(later, "abc:tls.crt,tls.key", &theirs), Some("somebody changed it"));
    }

    #[test]
    fn an_object_that_was_made_by_a_clock_ahead_of_ours_is_renewed() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let stale = |made_at: Option<&str>| {
            let mut object = json!({"metadata": {"name": "a", "uid": "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d",
                "annotations": {mark::DUE: "2027-01-01T00:00:00Z", mark::MADE_FROM: "abc:"},
                "managedFields": [{"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]}});
            if let Some(made_at) = made_at {
                object["metadata"]["annotations"][mark::MADE_AT] = made_at.into();
            }
            let keep = Keep::default().manager("m").annotation(mark::DUE).annotation(mark::MADE_FROM);
            let keep = keep.annotation(mark::MADE_AT);
            let text = object.to_string();
            let live: Live = keep.scope(|| serde_json::from_str(&text)).unwrap();
            super::stale(&live.metadata, "v1", "abc", now)
        };
        assert_eq!(stale(None), None, "made before this was written down");
        assert_eq!(stale(Some("2025-12-31T23:59:59Z")), None);
        assert_eq!(stale(Some("2026-01-01T00:10:00Z")), None, "by another replica");
        assert_eq!(stale(Some("2026-01-01T00:10:01Z")), Some("it was made by a clock that was ahead"));
    }
}
