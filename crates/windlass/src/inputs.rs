//! Inputs: objects of others that a plan needs.
//!
//! They are followed by namespace and name, one watch each however many owners want it, and only as long as one does: never all
//! Secrets of a cluster.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use windlass_runtime::cache::{Cache, Cause, Origin, Reader, Selection, Shape, Subscription, SyncState};
use windlass_runtime::intern::Str;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use crate::content::{AsContent, Hashed, Readable, Whole};
use crate::desired::{Kind, id};
use crate::error::DrawError;
use crate::live::Live;
use crate::plan::{Complain, Plan, Planned};
use crate::readiness::{Readiness, by_conditions};
use crate::secrecy::Content;

/// How long a reconcile waits for the first list of a new input before it says so and goes on without.
const FIRST_LIST: Duration = Duration::from_secs(5);

/// Which inputs an owner needs; see [`Blueprint::inputs`](crate::Blueprint::inputs).
pub struct Inputs {
    namespace: Option<String>,
    pub(crate) wanted: Vec<Wanted>,
}

pub(crate) struct Wanted {
    pub(crate) id: String,
    need: Need,
    source: SourceKey,
    open: Open,
    decode: Decode,
}

impl Wanted {
    /// What it is if this is all there is: one of these objects, or missing. For [`sketch`](crate::sketch).
    pub(crate) fn among(&self, objects: &[serde_json::Value]) -> Result<ResolvedInput, DrawError> {
        let text = |object: &serde_json::Value, path: &str| {
            object.pointer(path).and_then(serde_json::Value::as_str).map(str::to_owned)
        };
        let is_it = |object: &&serde_json::Value| {
            text(object, "/kind").as_deref() == Some(&*self.source.resource.kind)
                && text(object, "/metadata/name").as_deref() == Some(self.source.key.name())
        };
        let content = match objects.iter().find(is_it) {
            Some(object) => Some((self.decode)(object.clone())?),
            None => None,
        };
        let given = given(self, content.as_deref(), &SyncState::Synced);
        Ok(ResolvedInput { id: self.id.clone(), given, content })
    }

    pub(crate) fn resource(&self) -> &ResourceType {
        &self.source.resource
    }
}

type Open = Box<dyn Fn(&Cache, &Selection) -> Box<dyn Source> + Send + Sync>;
type Decode = fn(serde_json::Value) -> Result<Arc<dyn AsContent>, serde_json::Error>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    There,
    Ready,
    Perhaps,
    /// Not even its kind.
    Not,
}

/// What makes two owners share a watch.
#[derive(Clone, PartialEq, Eq, Hash)]
struct SourceKey {
    resource: ResourceType,
    key: ObjectKey,
    form: Form,
}

/// What is kept of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    Digest,
    Values,
    Whole,
    Observed,
}

impl Inputs {
    pub(crate) fn new(namespace: Option<&str>) -> Self {
        Self { namespace: namespace.map(str::to_owned), wanted: Vec::new() }
    }

    /// An object in the owner's namespace that must exist, owned by someone else. Its content flows, as a digest, into what comes
    /// after it.
    pub fn require<K: Kind>(&mut self, name: impl AsRef<str>) {
        self.want::<K, Hashed<K>>(None, name.as_ref(), Need::There, Form::Digest);
    }

    /// The same, in another namespace. What an owner may name there is for the author to decide: whoever may write the owner
    /// gets to use that object.
    pub fn require_in<K: Kind>(&mut self, namespace: &str, name: impl AsRef<str>) {
        self.want::<K, Hashed<K>>(Some(namespace), name.as_ref(), Need::There, Form::Digest);
    }

    /// The same, and its conditions must say that it is ready: for kinds of other controllers.
    pub fn require_ready<K: Kind>(&mut self, name: impl AsRef<str>) {
        self.want::<K, Hashed<K>>(None, name.as_ref(), Need::Ready, Form::Digest);
    }

    /// Like [`require`](Self::require), and its values can be [read](Resolved::text) when the plan is drawn: they are then kept in
    /// this process. For ConfigMaps and Secrets.
    pub fn read<K: Kind>(&mut self, name: impl AsRef<str>) {
        self.want::<K, Readable<K>>(None, name.as_ref(), Need::There, Form::Values);
    }

    /// An object that need not exist: it is read if it does.
    pub fn read_if_there<K: Kind>(&mut self, name: impl AsRef<str>) {
        self.want::<K, Readable<K>>(None, name.as_ref(), Need::Perhaps, Form::Values);
    }

    /// An object that must exist and can be [looked at](Resolved::object) when the plan is drawn: it is then kept in this process.
    ///
    /// All of its content flows into what comes [after](Planned::after) it; what depends on a part of it only is better drawn from
    /// that part, and left [pending](Plan::pending) without it.
    pub fn read_object<K: Kind>(&mut self, name: impl AsRef<str>) {
        self.want::<K, Whole<K>>(None, name.as_ref(), Need::There, Form::Whole);
    }

    /// An object as it is now, to be [looked at](Resolved::observed) when the plan is drawn: also one that the plan makes itself, and one
    /// that others make of what the plan makes. Nothing waits for it, neither for the object nor for its kind; the plan is drawn again
    /// whenever it changes, its status included. As long as nobody knows whether it is there (it has not been read yet, or may not be), there is no
    /// plan: what is decided by what is there must not be decided as if nothing were.
    pub fn observe<K: Kind>(&mut self, name: impl AsRef<str>) {
        self.want::<K, Whole<K>>(None, name.as_ref(), Need::Not, Form::Observed);
    }

    fn want<K: Kind, S: Shape + AsContent>(
        &mut self,
        namespace: Option<&str>,
        name: &str,
        need: Need,
        form: Form,
    ) {
        let resource = ResourceType::of::<K>();
        let home = self.namespace.as_deref();
        let namespace = namespace.or(home).filter(|_| resource.namespaced).map(Str::new);
        let key = ObjectKey::new(namespace, name);
        let id = id(&resource, &key, home);
        let id = if form == Form::Observed { observed(&id) } else { id };
        if self.wanted.iter().any(|wanted| wanted.id == id && wanted.source.form == form) {
            return;
        }
        let opened = (resource.clone(), key.clone());
        let open = move |cache: &Cache, selection: &Selection| -> Box<dyn Source> {
            let reader: Reader<S> = cache.reader_of(&opened.0, selection);
            Box::new(Opened { reader, key: opened.1.clone(), form })
        };
        self.wanted.push(Wanted {
            id,
            need,
            source: SourceKey { resource, key, form },
            open: Box::new(open),
            decode: |object| Ok(Arc::new(serde_json::from_value::<S>(object)?)),
        });
    }
}

/// What became of an input.
#[derive(Clone)]
pub(crate) enum Given {
    /// It is there, with this content.
    There(Content),
    /// It is not, or not yet; and what to do.
    Missing(String),
    /// It is not ready.
    NotReady(String),
    /// It is not there, and need not be.
    NotNeeded,
}

/// The inputs as they are now, by what was [asked for](Inputs).
pub struct Resolved {
    namespace: Option<String>,
    found: HashMap<String, (Planned, Option<Arc<dyn AsContent>>)>,
    complain: Complain,
    /// For a [preview](crate::preview): inputs are taken to be there, and have no values.
    pub(crate) assumed: bool,
}

impl Resolved {
    /// Gives each input its node in the plan.
    pub(crate) fn place(resolved: Vec<ResolvedInput>, namespace: Option<&str>, plan: &mut Plan) -> Self {
        let mut found: HashMap<String, (Planned, Option<Arc<dyn AsContent>>)> = HashMap::new();
        for ResolvedInput { id, given, content } in resolved {
            // Required and read: one node, with the values.
            if let Some((_, values)) = found.get_mut(&id) {
                *values = content.or(values.take());
            } else {
                let planned = plan.input(id.clone(), given);
                found.insert(id, (planned, content));
            }
        }
        Self { namespace: namespace.map(str::to_owned), found, complain: plan.complaints(), assumed: false }
    }

    /// The node of an input in the owner's namespace, for others to come [after](Planned::after) it. That it was not among the
    /// inputs fails the draw.
    pub fn get<K: Kind>(&self, name: impl AsRef<str>) -> Planned {
        self.planned::<K>(None, name.as_ref())
    }

    /// The same for an input of another namespace.
    pub fn get_in<K: Kind>(&self, namespace: &str, name: impl AsRef<str>) -> Planned {
        self.planned::<K>(Some(namespace), name.as_ref())
    }

    /// Whether this is a [preview](crate::preview): every input is taken to be there, and none has values.
    pub fn is_assumed(&self) -> bool {
        self.assumed
    }

    /// Whether the input is there.
    pub fn has<K: Kind>(&self, name: impl AsRef<str>) -> bool {
        self.found::<K>(None, name.as_ref()).is_some_and(|(_, content)| content.is_some())
    }

    /// An input that was asked for with [`Inputs::read_object`]; `None` if it is not there, or not what its type says.
    pub fn object<K: Kind + DeserializeOwned>(&self, name: impl AsRef<str>) -> Option<K> {
        let (_, content) = self.found::<K>(None, name.as_ref())?;
        serde_json::from_value(content.as_ref()?.object()?.clone()).ok()
    }

    /// An object that is [observed](Inputs::observe); `None` if it is not there, or not what its type says.
    pub fn observed<K: Kind + DeserializeOwned>(&self, name: impl AsRef<str>) -> Option<K> {
        let (_, content) = self.found_as::<K>(None, name.as_ref(), observed)?;
        serde_json::from_value(content.as_ref()?.object()?.clone()).ok()
    }

    /// The same as far as its readiness goes, for the checks of [`readiness`](crate::readiness).
    pub fn observed_live<K: Kind, T>(
        &self,
        name: impl AsRef<str>,
        look: impl FnOnce(&Live) -> T,
    ) -> Option<T> {
        let (_, content) = self.found_as::<K>(None, name.as_ref(), observed)?;
        content.as_ref().map(|content| look(content.live()))
    }

    /// The same as far as its readiness goes, for the checks of [`readiness`](crate::readiness).
    pub fn live<K: Kind, T>(&self, name: impl AsRef<str>, look: impl FnOnce(&Live) -> T) -> Option<T> {
        let (_, content) = self.found::<K>(None, name.as_ref())?;
        content.as_ref().map(|content| look(content.live()))
    }

    /// The value of a key of an input that was asked for with [`Inputs::read`], as bytes.
    pub fn bytes<K: Kind>(&self, name: impl AsRef<str>, key: &str) -> Option<Vec<u8>> {
        self.found::<K>(None, name.as_ref()).and_then(|(_, content)| content.as_ref()?.value(key))
    }

    /// The value of a key of an input that was asked for with [`Inputs::read`]; `None` if it is missing or no text.
    pub fn text<K: Kind>(&self, name: impl AsRef<str>, key: &str) -> Option<String> {
        String::from_utf8(self.bytes::<K>(name, key)?).ok()
    }

    /// The keys of an input that was asked for with [`Inputs::read`]; none if it is not there.
    pub fn keys<K: Kind>(&self, name: impl AsRef<str>) -> Vec<String> {
        let content = self.found::<K>(None, name.as_ref()).and_then(|(_, content)| content.as_ref());
        content.map(|content| content.keys()).unwrap_or_default()
    }

    fn planned<K: Kind>(&self, namespace: Option<&str>, name: &str) -> Planned {
        match self.found::<K>(namespace, name) {
            Some((planned, _)) => planned.clone(),
            None => self.complain.nowhere(),
        }
    }

    fn found<K: Kind>(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<&(Planned, Option<Arc<dyn AsContent>>)> {
        self.found_as::<K>(namespace, name, str::to_owned)
    }

    fn found_as<K: Kind>(
        &self,
        namespace: Option<&str>,
        name: &str,
        form: fn(&str) -> String,
    ) -> Option<&(Planned, Option<Arc<dyn AsContent>>)> {
        let resource = ResourceType::of::<K>();
        let home = self.namespace.as_deref();
        let key = ObjectKey::new(namespace.or(home).filter(|_| resource.namespaced).map(Str::new), name);
        let id = form(&id(&resource, &key, home));
        let found = self.found.get(&id);
        if found.is_none() {
            let said =
                format!("{id} is used by the plan but not among its inputs: ask for it in Blueprint::inputs");
            self.complain.error(DrawError::new(said));
        }
        found
    }
}

/// What an observed object is called in a plan, which may have the object itself under its own name.
fn observed(id: &str) -> String {
    format!("{id}, as it is")
}

/// One input, read.
#[derive(Clone)]
pub(crate) struct ResolvedInput {
    pub(crate) id: String,
    pub(crate) given: Given,
    pub(crate) content: Option<Arc<dyn AsContent>>,
}

/// A single object that is followed.
trait Source: Send + Sync {
    fn get(&self) -> Option<Arc<dyn AsContent>>;
    fn state(&self) -> SyncState;
    fn synced(&self) -> BoxFuture<'_, ()>;
    fn subscribe(&self, wake: Box<dyn Fn() + Send + Sync>) -> Subscription;
}

struct Opened<S> {
    reader: Reader<S>,
    key: ObjectKey,
    form: Form,
}

impl<S: Shape + AsContent> Source for Opened<S> {
    fn get(&self) -> Option<Arc<dyn AsContent>> {
        self.reader.get(&self.key).map(|object| object as Arc<dyn AsContent>)
    }

    fn state(&self) -> SyncState {
        self.reader.state().borrow().clone()
    }

    fn synced(&self) -> BoxFuture<'_, ()> {
        if self.form != Form::Observed {
            return Box::pin(self.reader.synced());
        }
        // Of a kind that is not installed there is nothing to be seen, and nothing to wait for.
        let mut state = self.reader.state();
        Box::pin(async move {
            let _ = state.wait_for(|state| !matches!(state, SyncState::Starting)).await;
        })
    }

    fn subscribe(&self, wake: Box<dyn Fn() + Send + Sync>) -> Subscription {
        // Who opened it reads it anyway; but nobody waited for the kind of what is only observed.
        let listed = self.form == Form::Observed;
        self.reader.subscribe(move |change| {
            if listed || change.origin != Origin::InitialList {
                wake();
            }
        })
    }
}

/// An object that is followed, and for whom.
struct Followed {
    // Before the source: its handler must be gone before the watch is.
    _subscription: Subscription,
    source: Box<dyn Source>,
    interested: Arc<Mutex<BTreeSet<ObjectKey>>>,
}

/// All objects that are followed by name.
pub(crate) struct Registry {
    cache: Cache,
    wake: mpsc::Sender<ObjectKey>,
    sources: Mutex<HashMap<SourceKey, Weak<Followed>>>,
    held: Mutex<HashMap<ObjectKey, BTreeMap<String, Arc<Followed>>>>,
}

/// What an owner holds on to from one reconcile to the next.
#[derive(Default)]
pub(crate) struct Held(Mutex<BTreeMap<String, Arc<Followed>>>);

impl Registry {
    pub(crate) fn new(cache: &Cache, wake: mpsc::Sender<ObjectKey>) -> Self {
        Self { cache: cache.clone(), wake, sources: Mutex::default(), held: Mutex::default() }
    }

    /// Reads all inputs of an owner, following those that are new. Waits for their first lists, within bounds.
    pub(crate) async fn resolve(
        &self,
        owner: &ObjectKey,
        inputs: Inputs,
        held: &Held,
    ) -> Result<Vec<ResolvedInput>, Unknown> {
        let mut resolved = Vec::with_capacity(inputs.wanted.len());
        for wanted in &inputs.wanted {
            let followed = self.follow(owner, &wanted.source, &wanted.open);
            let slot = format!("{} {:?}", wanted.id, wanted.source.form);
            held.0.lock().insert(slot, Arc::clone(&followed));
            let _ = tokio::time::timeout(FIRST_LIST, followed.source.synced()).await;
            let (content, state) = (followed.source.get(), followed.source.state());
            if wanted.need == Need::Not && content.is_none() {
                let SourceKey { resource, key, .. } = &wanted.source;
                known(&format!("{} {}", resource.kind, key.name()), &state)?;
            }
            let given = given(wanted, content.as_deref(), &state);
            resolved.push(ResolvedInput { id: wanted.id.clone(), given, content });
        }
        Ok(resolved)
    }

    /// Follows an object that is in the way, or that should be there, so that its owner learns when that changes. Says whether it
    /// is there now: between our look and the watch it may have gone or come, and then nobody would tell.
    pub(crate) async fn follow_foreign(
        &self,
        owner: &ObjectKey,
        resource: &ResourceType,
        key: &ObjectKey,
        held: &Held,
    ) -> bool {
        // The kind is known at run time only; which type stands for it in the shape does not matter then.
        type Any = crate::live::Bare<k8s_openapi::api::core::v1::Pod>;
        let source = SourceKey { resource: resource.clone(), key: key.clone(), form: Form::Digest };
        let opened = (resource.clone(), key.clone());
        let open: Open = Box::new(move |cache, selection| {
            let reader: Reader<Any> = cache.reader_of(&opened.0, selection);
            Box::new(Opened { reader, key: opened.1.clone(), form: Form::Digest })
        });
        let followed = self.follow(owner, &source, &open);
        held.0.lock().insert(format!("in the way: {} {key}", resource.kind), Arc::clone(&followed));
        let _ = tokio::time::timeout(FIRST_LIST, followed.source.synced()).await;
        followed.source.get().is_some()
    }

    /// From now on the owner holds this, and nothing that it held before.
    pub(crate) fn keep(&self, owner: &ObjectKey, held: Held) {
        let held = held.0.into_inner();
        let before = if held.is_empty() {
            self.held.lock().remove(owner)
        } else {
            self.held.lock().insert(owner.clone(), held)
        };
        let Some(before) = before else { return };
        let all = self.held.lock();
        let now = all.get(owner);
        for followed in before.values() {
            let still = now.is_some_and(|now| now.values().any(|other| Arc::ptr_eq(other, followed)));
            if !still {
                followed.interested.lock().remove(owner);
            }
        }
        drop(all);
        drop(before);
        self.sources.lock().retain(|_, source| source.strong_count() > 0);
    }

    fn follow(&self, owner: &ObjectKey, key: &SourceKey, open: &Open) -> Arc<Followed> {
        let mut sources = self.sources.lock();
        let followed = sources.get(key).and_then(Weak::upgrade).unwrap_or_else(|| {
            let selection = Selection::all();
            let selection = match key.key.namespace() {
                Some(namespace) => selection.in_namespace(namespace),
                None => selection,
            };
            // A name has nothing in it that a selector could misread.
            let selection =
                selection.clone().fields(&format!("metadata.name={}", key.key.name())).unwrap_or(selection);
            let source = open(&self.cache, &selection);
            let interested = Arc::new(Mutex::new(BTreeSet::<ObjectKey>::new()));
            let (concerned, wake) = (Arc::clone(&interested), self.wake.clone());
            let subscription = source.subscribe(Box::new(move || {
                concerned.lock().iter().for_each(|owner| send(&wake, owner.clone()));
            }));
            let followed = Arc::new(Followed { _subscription: subscription, source, interested });
            sources.insert(key.clone(), Arc::downgrade(&followed));
            followed
        });
        followed.interested.lock().insert(owner.clone());
        followed
    }
}

/// Sends a key without waiting, and never loses it.
fn send(wake: &mpsc::Sender<ObjectKey>, owner: ObjectKey) {
    if let Err(TrySendError::Full(owner)) = wake.try_send(owner)
        && let Ok(runtime) = tokio::runtime::Handle::try_current()
    {
        let wake = wake.clone();
        runtime.spawn(async move { wake.send(owner).await });
    }
}

/// Of something that is [observed](Inputs::observe) nobody knows whether it is there: why.
pub(crate) struct Unknown(pub(crate) String);

/// Whether it is known that something is not there. What is of no kind is not.
fn known(id: &str, state: &SyncState) -> Result<(), Unknown> {
    match state {
        SyncState::Synced => Ok(()),
        SyncState::Blocked(problem) if problem.cause == Cause::Missing => Ok(()),
        SyncState::Blocked(problem) => Err(Unknown(format!("{id} cannot be read: {problem}"))),
        SyncState::Starting => Err(Unknown(format!("{id} has not been read yet"))),
    }
}

fn given(wanted: &Wanted, content: Option<&dyn AsContent>, state: &SyncState) -> Given {
    match (content, state) {
        (Some(content), _) => match by_conditions(content.live()) {
            Readiness::Waiting(why) | Readiness::Failed(why) if wanted.need == Need::Ready => {
                Given::NotReady(why)
            }
            _ => {
                Given::There(Content { id: wanted.id.clone(), digest: content.digest().as_bytes().to_vec() })
            }
        },
        (None, _) if wanted.need == Need::Not => Given::NotNeeded,
        (None, SyncState::Synced) if wanted.need == Need::Perhaps => Given::NotNeeded,
        (None, SyncState::Synced) => {
            Given::Missing("it does not exist: create it, or change the reference to it".to_owned())
        }
        (None, SyncState::Blocked(problem)) => Given::Missing(format!("it cannot be read: {problem}")),
        (None, SyncState::Starting) => Given::Missing("it has not been read yet".to_owned()),
    }
}
