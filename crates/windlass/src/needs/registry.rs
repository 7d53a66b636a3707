//! All objects that are watched because a plan asked for them, and the owners that asked.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use windlass_runtime::cache::{Cache, Selection, Subscription, SyncState};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::ask::Ask;
use super::form::{Form, SourceKey};
use super::labelled::{Labelled, ListAsk};
use super::made::Made;
use super::source::Source;
use super::sources::SourceMap;
use super::wake::Wake;

/// The end of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassEnd {
    /// Everything that the plan asked for is known.
    Complete,
    /// An object is not known yet, or is required and missing.
    Incomplete,
    /// The plan asked for new objects in every round.
    OutOfRounds,
}

/// A watched object, with the owners that asked for it.
pub(super) struct Followed {
    // Declared before the source: its handler must be dropped before the watch. An object that another
    // controller creates needs none.
    subscription: Option<Subscription>,
    pub(super) source: Box<dyn Source>,
    interested: Arc<Interested>,
    key: Arc<SourceKey>,
    /// True if a task waits for the end of its first list.
    awaited: AtomicBool,
}

/// Owners in order. Usually there is one: a tree would take ten times the memory.
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

/// All objects that are watched for the owners of a controller.
pub(crate) struct Registry {
    cache: Cache,
    wake: Wake,
    sources: Arc<Sources>,
    held: Mutex<HashMap<ObjectKey, Held>>,
    made: Vec<(Made, Subscription)>,
    lists: Vec<List>,
}

/// A list by label, with its subscription.
struct List {
    // Declared before the list: its handler must be dropped before the watch.
    _subscription: Subscription,
    labelled: Arc<Labelled>,
    awaited: Arc<AtomicBool>,
}

#[derive(Default)]
struct Sources(Mutex<SourceMap<Followed>>);

impl Sources {
    /// Returns the owners that asked for an object which another controller creates: including those that
    /// watch it by name, so that they switch over when it appears here.
    fn interested_in(&self, resource: &ResourceType, key: &ObjectKey) -> BTreeSet<ObjectKey> {
        let of = |form| SourceKey { resource: resource.clone(), key: key.clone(), form };
        // Dropped only after the lock is released: the last holder of one of them ends a watch.
        let followed: Vec<Arc<Followed>> = {
            let sources = self.0.lock();
            Form::ALL.iter().filter_map(|form| sources.get(&of(*form))).collect()
        };
        followed.iter().flat_map(|followed| followed.interested.all()).collect()
    }
}

/// The watches that an owner holds from one pass to the next.
#[derive(Default)]
struct Held {
    /// The requests of the last complete pass: released only by the next complete one.
    complete: Holds,
    /// Requests of the last pass since then.
    since: Holds,
    /// True if the last pass ran out of rounds.
    endless: bool,
}

/// Watched objects, and lists by their index and value.
#[derive(Default)]
pub(super) struct Holds {
    pub(super) objects: Vec<Arc<Followed>>,
    pub(super) lists: Vec<(usize, String)>,
}

impl Holds {
    pub(super) fn has(&self, followed: &Arc<Followed>) -> bool {
        self.objects.iter().any(|other| Arc::ptr_eq(other, followed))
    }

    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.lists.is_empty()
    }
}

impl Registry {
    pub(crate) fn new(cache: &Cache, wake: Wake, made: Vec<Made>, lists: Vec<Labelled>) -> Self {
        let sources: Arc<Sources> = Arc::default();
        let subscribe = |made: Made| {
            let (sources, wake, resource) = (Arc::clone(&sources), wake.clone(), made.resource().clone());
            let subscription = made.subscribe(Box::new(move |key| {
                sources.interested_in(&resource, key).into_iter().for_each(|owner| wake.send(owner));
            }));
            (made, subscription)
        };
        let made = made.into_iter().map(subscribe).collect();
        let list = |labelled: Labelled| {
            let wake = wake.clone();
            let subscription = labelled.subscribe(move |owner| wake.send(owner));
            List { _subscription: subscription, labelled: Arc::new(labelled), awaited: Arc::default() }
        };
        let lists = lists.into_iter().map(list).collect();
        Self { cache: cache.clone(), wake, sources, held: Mutex::default(), made, lists }
    }

    /// Returns whether the last pass of an owner ran out of rounds.
    pub(super) fn ran_out(&self, owner: &ObjectKey) -> bool {
        self.held.lock().get(owner).is_some_and(|held| held.endless)
    }

    /// Lets the owner hold the watches that its pass asked for, and, if the pass was not complete, those that
    /// the last complete one asked for. The end of a first list wakes the owner if the object was answered as
    /// unknown.
    pub(super) fn hold(&self, owner: &ObjectKey, mut asked: Holds, unknown: &Holds, end: PassEnd) {
        asked.objects.shrink_to_fit();
        let dropped = {
            let mut all = self.held.lock();
            let mut before = all.remove(owner).unwrap_or_default();
            let (kept, dropped) = match end {
                PassEnd::Complete => (
                    Held { complete: asked, since: Holds::default(), endless: false },
                    [before.complete, before.since],
                ),
                PassEnd::Incomplete | PassEnd::OutOfRounds => {
                    let since = std::mem::replace(&mut before.since, asked);
                    before.endless = end == PassEnd::OutOfRounds;
                    (before, [since, Holds::default()])
                }
            };
            self.lose_interest(owner, &kept, &dropped);
            if !(kept.complete.is_empty() && kept.since.is_empty()) {
                all.insert(owner.clone(), kept);
            }
            dropped
        };
        let objects = dropped.iter().flat_map(|holds| &holds.objects);
        let released: Vec<_> = objects.map(|followed| Arc::clone(&followed.key)).collect();
        drop(dropped);
        self.sources.0.lock().release(&released);
        // A plan that asks for other objects each time would never end: only a change of an object continues
        // it.
        if end == PassEnd::Incomplete {
            unknown.objects.iter().for_each(|followed| self.wake_when_read(followed));
            unknown.lists.iter().for_each(|(index, _)| self.wake_when_listed(*index));
        }
    }

    /// Releases everything that an owner holds: it is gone, or another instance is responsible for it.
    pub(crate) fn forget(&self, owner: &ObjectKey) {
        self.hold(owner, Holds::default(), &Holds::default(), PassEnd::Complete);
    }

    fn lose_interest(&self, owner: &ObjectKey, kept: &Held, dropped: &[Holds]) {
        for followed in dropped.iter().flat_map(|holds| &holds.objects) {
            if !kept.complete.has(followed) && !kept.since.has(followed) {
                followed.interested.remove(owner);
            }
        }
        for list in dropped.iter().flat_map(|holds| &holds.lists) {
            if !kept.complete.lists.contains(list)
                && !kept.since.lists.contains(list)
                && let Some(List { labelled, .. }) = self.lists.get(list.0)
            {
                labelled.remove(&list.1, owner);
            }
        }
    }

    /// Returns whether the last complete pass of an owner asked for this object.
    pub(super) fn was_complete_with(&self, owner: &ObjectKey, followed: &Arc<Followed>) -> bool {
        self.held.lock().get(owner).is_some_and(|held| held.complete.has(followed))
    }

    /// Returns the watches of other controllers' objects that would answer a request, and have not been
    /// listed yet.
    pub(super) fn unlisted(&self, ask: &Ask) -> impl Iterator<Item = (usize, watch::Receiver<SyncState>)> {
        let fitting = self.made.iter().enumerate().filter(|(_, (made, _))| made.fits(&ask.source));
        let states = fitting.map(|(index, (made, _))| (index, made.state()));
        states.filter(|(_, state)| matches!(*state.borrow(), SyncState::Starting))
    }

    /// Returns the list that answers a request, with its index.
    pub(super) fn list(&self, ask: &ListAsk) -> Option<(usize, &Labelled)> {
        let lists = self.lists.iter().map(|list| &*list.labelled).enumerate();
        lists.into_iter().find(|(_, labelled)| labelled.answers(ask))
    }

    pub(super) fn follow(&self, owner: &ObjectKey, ask: &Ask) -> Arc<Followed> {
        let followed = self.follow_now(owner, ask);
        if followed.is_by_name() || followed.source.get().is_some() {
            return followed;
        }
        // The object left the other controller's objects before the owner was registered: no event would
        // report it.
        self.follow_now(owner, ask)
    }

    fn follow_now(&self, owner: &ObjectKey, ask: &Ask) -> Arc<Followed> {
        // An object that leaves the other controller's objects wakes the owners that asked for it: the next
        // pass finds it by its name, or not at all.
        let made = self.made.iter().find_map(|(made, _)| made.source(&ask.source));
        let mut sources = self.sources.0.lock();
        let known = sources.get(&ask.source);
        let known = known.filter(|followed| followed.is_by_name() == made.is_none());
        let followed = known.unwrap_or_else(|| {
            let selection = by_name(&ask.source.key);
            let source = made.unwrap_or_else(|| (ask.open)(&self.cache, &selection, &ask.source));
            let interested: Arc<Interested> = Arc::default();
            let (concerned, wake) = (Arc::clone(&interested), self.wake.clone());
            let subscription = source.subscribe(Box::new(move || {
                concerned.all().into_iter().for_each(|owner| wake.send(owner));
            }));
            let key = Arc::new(ask.source.clone());
            let awaited = false.into();
            let followed =
                Arc::new(Followed { subscription, source, interested, key: Arc::clone(&key), awaited });
            sources.insert(key, &followed);
            followed
        });
        followed.interested.add(owner);
        followed
    }

    /// Wakes the owners of an object when its watch has been listed, with or without the object.
    fn wake_when_read(&self, followed: &Arc<Followed>) {
        if followed.awaited.swap(true, Ordering::AcqRel) {
            return;
        }
        let (state, weak, wake) = (followed.source.state(), Arc::downgrade(followed), self.wake.clone());
        // An owner that was answered "unknown" was registered before, so that it is among those woken.
        tokio::spawn(listed(state, move |is_synced| {
            let Some(followed) = weak.upgrade() else { return };
            followed.interested.all().into_iter().for_each(|owner| wake.send(owner));
            if is_synced {
                followed.awaited.store(false, Ordering::Release);
            }
        }));
    }

    fn wake_when_listed(&self, index: usize) {
        let Some(List { labelled, awaited, .. }) = self.lists.get(index) else { return };
        if awaited.swap(true, Ordering::AcqRel) {
            return;
        }
        let (state, wake) = (labelled.state(), self.wake.clone());
        let (labelled, awaited) = (Arc::downgrade(labelled), Arc::clone(awaited));
        tokio::spawn(listed(state, move |is_synced| {
            let Some(labelled) = labelled.upgrade() else { return };
            labelled.owners().into_iter().for_each(|owner| wake.send(owner));
            if is_synced {
                awaited.store(false, Ordering::Release);
            }
        }));
    }
}

/// Calls `notify` when a watch is known to be blocked, and finally when it has been listed. Ends with the
/// watch.
async fn listed(mut state: watch::Receiver<SyncState>, notify: impl Fn(bool)) {
    let mut starting = true;
    loop {
        let now = state.borrow_and_update().clone();
        match now {
            SyncState::Synced => return notify(true),
            SyncState::Blocked(_) if starting => {
                starting = false;
                notify(false);
            }
            SyncState::Blocked(_) | SyncState::Starting => {}
        }
        if state.changed().await.is_err() {
            return;
        }
    }
}

fn by_name(key: &ObjectKey) -> Selection {
    let selection = match key.namespace() {
        Some(namespace) => Selection::all().in_namespace(namespace),
        None => Selection::all(),
    };
    // A name contains no character with a meaning in a selector.
    selection.clone().fields(&format!("metadata.name={}", key.name())).unwrap_or(selection)
}
