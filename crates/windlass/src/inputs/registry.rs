//! Who follows what.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use windlass_runtime::cache::{Cache, Cause, Selection, Subscription, SyncState};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::made::Made;
use super::source::{ByName, Source};
use super::{Form, Inputs, Need, Open, ResolvedInput, SourceKey, given};
use crate::live::Bare;

/// How long a reconcile waits for the first list of a new input before it says so and goes on without.
const FIRST_LIST: Duration = Duration::from_secs(5);

/// An object that is followed, and for whom.
struct Followed {
    // Before the source: its handler must be gone before the watch is. What is among those made needs none.
    subscription: Option<Subscription>,
    source: Box<dyn Source>,
    interested: Arc<Interested>,
}

/// Owners, in order. Mostly it is one: a tree would take ten times the room.
#[derive(Default)]
struct Interested(Mutex<Vec<ObjectKey>>);

impl Interested {
    fn add(&self, owner: &ObjectKey) {
        let mut owners = self.0.lock();
        if let Err(at) = owners.binary_search(owner) {
            owners.insert(at, owner.clone());
        }
    }

    fn remove(&self, owner: &ObjectKey) {
        self.0.lock().retain(|other| other != owner);
    }

    fn all(&self) -> Vec<ObjectKey> {
        self.0.lock().clone()
    }
}

impl Followed {
    fn is_by_name(&self) -> bool {
        self.subscription.is_some()
    }
}

/// All objects that are followed.
pub(crate) struct Registry {
    cache: Cache,
    wake: mpsc::Sender<ObjectKey>,
    sources: Arc<Sources>,
    held: Mutex<HashMap<ObjectKey, Vec<Arc<Followed>>>>,
    made: Vec<(Made, Subscription)>,
}

#[derive(Default)]
struct Sources(Mutex<HashMap<SourceKey, Weak<Followed>>>);

impl Sources {
    /// Who is interested in an object that another blueprint makes: also who follows it by name, so as to come over when it appears here.
    fn interested_in(&self, resource: &ResourceType, key: &ObjectKey) -> BTreeSet<ObjectKey> {
        let of = |form| SourceKey { resource: resource.clone(), key: key.clone(), form };
        // Let go only after the lock: the last to hold one of them ends a watch.
        let followed: Vec<Arc<Followed>> = {
            let sources = self.0.lock();
            Form::ALL.iter().filter_map(|form| sources.get(&of(*form))?.upgrade()).collect()
        };
        followed.iter().flat_map(|followed| followed.interested.all()).collect()
    }
}

/// What an owner holds on to from one reconcile to the next.
#[derive(Default)]
pub(crate) struct Held(Mutex<Vec<Arc<Followed>>>);

impl Held {
    fn add(&self, followed: &Arc<Followed>) {
        let mut held = self.0.lock();
        if !held.iter().any(|other| Arc::ptr_eq(other, followed)) {
            held.push(Arc::clone(followed));
        }
    }
}

impl Registry {
    pub(crate) fn new(cache: &Cache, wake: mpsc::Sender<ObjectKey>, made: Vec<Made>) -> Self {
        let sources: Arc<Sources> = Arc::default();
        let subscribed = made.into_iter().map(|made| {
            let (sources, wake, resource) = (Arc::clone(&sources), wake.clone(), made.resource().clone());
            let subscription = made.subscribe(Box::new(move |key| {
                let interested = sources.interested_in(&resource, key);
                for owner in interested {
                    send(&wake, owner);
                }
            }));
            (made, subscription)
        });
        let made = subscribed.collect();
        Self { cache: cache.clone(), wake, sources, held: Mutex::default(), made }
    }

    /// Reads all inputs of an owner, following those that are new. Waits for their first lists, within bounds.
    pub(crate) async fn resolve(
        &self,
        owner: &ObjectKey,
        inputs: Inputs,
        held: &Held,
    ) -> Result<Vec<ResolvedInput>, Unknown> {
        let mut resolved = Vec::with_capacity(inputs.wanted.len());
        // Before it is known what there is, all would be followed by name.
        let looked_through =
            futures::future::join_all(self.made.iter().map(|(made, _)| made.looked_through()));
        let _ = tokio::time::timeout(FIRST_LIST, looked_through).await;
        for wanted in &inputs.wanted {
            let followed = self.follow(owner, &wanted.source, &wanted.open);
            held.add(&followed);
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
        let source = SourceKey { resource: resource.clone(), key: key.clone(), form: Form::Presence };
        let opened = (resource.clone(), key.clone());
        let open: Open = Box::new(move |cache, selection| {
            let reader = cache.reader_of::<Bare>(&opened.0, selection);
            Box::new(ByName { reader, key: opened.1.clone(), form: Form::Presence })
        });
        let followed = self.follow(owner, &source, &open);
        held.add(&followed);
        let _ = tokio::time::timeout(FIRST_LIST, followed.source.synced()).await;
        followed.source.get().is_some()
    }

    /// From now on the owner holds this, and nothing that it held before.
    pub(crate) fn keep(&self, owner: &ObjectKey, held: Held) {
        let mut held = held.0.into_inner();
        held.shrink_to_fit();
        let before = if held.is_empty() {
            self.held.lock().remove(owner)
        } else {
            self.held.lock().insert(owner.clone(), held)
        };
        let Some(before) = before else { return };
        let all = self.held.lock();
        let now = all.get(owner);
        for followed in &before {
            let still = now.is_some_and(|now| now.iter().any(|other| Arc::ptr_eq(other, followed)));
            if !still {
                followed.interested.remove(owner);
            }
        }
        drop(all);
        drop(before);
        self.sources.0.lock().retain(|_, source| source.strong_count() > 0);
    }

    fn follow(&self, owner: &ObjectKey, key: &SourceKey, open: &Open) -> Arc<Followed> {
        let followed = self.follow_now(owner, key, open);
        if followed.is_by_name() || followed.source.get().is_some() {
            return followed;
        }
        // It left the ones made before anybody knew of our interest: nobody will tell.
        self.follow_now(owner, key, open)
    }

    fn follow_now(&self, owner: &ObjectKey, key: &SourceKey, open: &Open) -> Arc<Followed> {
        // What leaves the ones made wakes who follows it there: who looks again then finds it by its name, or not at all.
        let made = self.made.iter().find_map(|(made, _)| made.source(key));
        let mut sources = self.sources.0.lock();
        let known = sources.get(key).and_then(Weak::upgrade);
        let known = known.filter(|followed| followed.is_by_name() == made.is_none());
        let followed = known.unwrap_or_else(|| {
            let source = made.unwrap_or_else(|| open(&self.cache, &by_name(&key.key)));
            let interested: Arc<Interested> = Arc::default();
            let (concerned, wake) = (Arc::clone(&interested), self.wake.clone());
            let subscription = source.subscribe(Box::new(move || {
                for owner in concerned.all() {
                    send(&wake, owner);
                }
            }));
            let followed = Arc::new(Followed { subscription, source, interested });
            sources.insert(key.clone(), Arc::downgrade(&followed));
            followed
        });
        followed.interested.add(owner);
        followed
    }
}

fn by_name(key: &ObjectKey) -> Selection {
    let selection = match key.namespace() {
        Some(namespace) => Selection::all().in_namespace(namespace),
        None => Selection::all(),
    };
    // A name has nothing in it that a selector could misread.
    selection.clone().fields(&format!("metadata.name={}", key.name())).unwrap_or(selection)
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
