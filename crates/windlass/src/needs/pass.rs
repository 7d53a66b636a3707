//! One pass of one owner: the objects that its plan asks for, over several rounds.
//!
//! A plan is drawn in rounds. An object that it asks for and that is not known yet is watched from then on,
//! and the plan is drawn again once it has been read. Every object that a pass asks for is watched until the
//! next pass ends.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use windlass_runtime::cache::SyncState;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::answers::Answers;
use super::ask::{Answer, Ask, NOT_READ};
use super::form::Form;
use super::labelled::{AnyObjects, ListAsk};
use super::registry::{Followed, Holds, PassEnd, Registry};
use crate::live::Known;

/// Answers the requests of one owner's plan from the cluster.
pub(crate) struct Pass<'r> {
    registry: &'r Registry,
    owner: &'r ObjectKey,
    /// True if the last pass ran out of rounds. Then only the objects that the last complete pass asked for
    /// are known in the first round, so that an endless plan asks for the same few objects in every pass.
    endless: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    objects: Vec<Asked<Arc<Followed>>>,
    lists: Vec<Asked<(usize, String)>>,
    /// The watches of other controllers' objects that were waited for, by their index.
    awaited: BTreeSet<usize>,
    round: usize,
    /// Requests that this round made first and that have no answer yet.
    new: Vec<New>,
    /// True if the time of this pass is over.
    late: bool,
}

struct Asked<T> {
    what: T,
    /// The round in which the object was first asked for.
    first: usize,
    /// True if the object was unknown in the last round in which it was asked for.
    unknown: bool,
}

struct New {
    title: String,
    state: watch::Receiver<SyncState>,
}

impl<'r> Pass<'r> {
    /// Begins a pass of an owner. [End](Self::end) it.
    pub(crate) fn begin(registry: &'r Registry, owner: &'r ObjectKey) -> Self {
        Self { registry, owner, endless: registry.ran_out(owner), state: Mutex::default() }
    }

    /// Ends the pass: from now on the owner holds the watches of the objects that it asked for.
    pub(crate) fn end(self, end: PassEnd) {
        let (registry, owner) = (self.registry, self.owner);
        let (asked, unknown) = self.into_parts();
        registry.hold(owner, asked, &unknown, end);
    }

    /// Returns the requests that this round made first and that have no answer yet, as `Secret password`.
    pub(crate) fn new_asks(&self) -> Vec<String> {
        self.state.lock().new.iter().map(|new| new.title.clone()).collect()
    }

    /// Waits until all new objects have been read, or cannot be read, but not beyond the deadline; then the
    /// next round begins.
    ///
    /// Cancel safe: only the wait is lost.
    pub(crate) async fn settle(&self, deadline: Instant) {
        let new = std::mem::take(&mut self.state.lock().new);
        let read = new.into_iter().map(|mut new| async move {
            // Fails only after the watch has ended.
            let _ = new.state.wait_for(|state| !matches!(state, SyncState::Starting)).await;
        });
        let in_time = timeout_at(deadline, join_all(read)).await.is_ok();
        let mut state = self.state.lock();
        state.late |= !in_time;
        state.round += 1;
    }

    /// Watches an object that has the name of a planned one, or that should exist, so that its change wakes
    /// the owner. Returns whether it exists now: it may have been deleted or created between the last read
    /// and the start of the watch, and no event would report that.
    pub(crate) async fn watch_foreign(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        deadline: Instant,
    ) -> bool {
        let ask = Ask::new(resource.clone(), key.clone(), Form::Presence);
        let followed = self.registry.follow(self.owner, &ask);
        let round = self.state.lock().round;
        self.state.lock().note(&followed, round, false);
        let mut state = followed.source.state();
        let _ = timeout_at(deadline, state.wait_for(SyncState::is_synced)).await;
        followed.source.get().is_some()
    }

    /// Returns everything that was asked for, and the part of it that was last answered as unknown.
    fn into_parts(self) -> (Holds, Holds) {
        let State { objects, lists, .. } = self.state.into_inner();
        let unknown = Holds {
            objects: objects.iter().filter(|one| one.unknown).map(|one| Arc::clone(&one.what)).collect(),
            lists: lists.iter().filter(|one| one.unknown).map(|one| one.what.clone()).collect(),
        };
        let asked = Holds {
            objects: objects.into_iter().map(|one| one.what).collect(),
            lists: lists.into_iter().map(|one| one.what).collect(),
        };
        (asked, unknown)
    }

    /// Returns whether an object that is first asked for in this round is answered as unknown, although it is
    /// watched.
    fn is_withheld(&self, state: &State, first: usize, followed: &Arc<Followed>) -> bool {
        self.endless && first == state.round && !self.registry.was_complete_with(self.owner, followed)
    }
}

impl State {
    /// Records that an object was asked for; returns the round in which it was first asked for.
    fn note(&mut self, followed: &Arc<Followed>, round: usize, unknown: bool) -> usize {
        if let Some(asked) = self.objects.iter_mut().find(|asked| Arc::ptr_eq(&asked.what, followed)) {
            asked.unknown = unknown;
            return asked.first;
        }
        self.objects.push(Asked { what: Arc::clone(followed), first: round, unknown });
        round
    }
}

impl Answers for Pass<'_> {
    fn answer(&self, ask: &Ask) -> Answer {
        let mut state = self.state.lock();
        if !state.late {
            // Until the other controller's objects have been listed, every object would be watched by name.
            let mut unlisted = self.registry.unlisted(ask).peekable();
            if unlisted.peek().is_some() {
                for (index, receiver) in unlisted {
                    if state.awaited.insert(index) {
                        state.new.push(New { title: ask.title(), state: receiver });
                    }
                }
                return Answer::Unknown(NOT_READ.to_owned());
            }
        }
        let followed = self.registry.follow(self.owner, ask);
        let watched = followed.source.state();
        // The state is read before the content, so that an object that arrives in between is found.
        let now = watched.borrow().clone();
        let answer = Answer::of(followed.source.get(), &now, ask.source.form);
        let starting = matches!(now, SyncState::Starting);
        let round = state.round;
        let first = state.note(&followed, round, matches!(answer, Answer::Unknown(_)));
        let withheld = self.is_withheld(&state, first, &followed);
        if withheld || (starting && first == round && matches!(answer, Answer::Unknown(_))) {
            let title = ask.title();
            if !state.new.iter().any(|new| new.title == title) {
                state.new.push(New { title, state: watched });
            }
        }
        if withheld { Answer::Unknown(NOT_READ.to_owned()) } else { answer }
    }

    fn list(&self, ask: &ListAsk) -> Known<AnyObjects> {
        let Some((index, labelled)) = self.registry.list(ask) else {
            return Known::Unknown("it is not declared".to_owned());
        };
        labelled.add(&ask.value, self.owner);
        let found = labelled.get(&ask.value);
        let mut state = self.state.lock();
        let (round, what) = (state.round, (index, ask.value.clone()));
        let asked = state.lists.iter().position(|asked| asked.what == what);
        let first = asked.map_or(round, |at| state.lists[at].first);
        match asked {
            Some(at) => state.lists[at].unknown = !found.is_known(),
            None => state.lists.push(Asked { what, first, unknown: !found.is_known() }),
        }
        let watched = labelled.state();
        if first == round && !found.is_known() && matches!(*watched.borrow(), SyncState::Starting) {
            state.new.push(New { title: ask.title(), state: watched });
        }
        found
    }
}
