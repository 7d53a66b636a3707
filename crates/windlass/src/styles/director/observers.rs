//! The tasks that observe the software, one for each owner.
//!
//! They promise: one observation of an owner at a time, at most one a second, each with a deadline; an
//! observation that hangs delays no other owner; nothing is observed without the lease; the end of an
//! observation wakes the owner if it found a change or somebody waits for it; a task ends with its owner or
//! with the controller.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::leader::Fence;
use windlass_runtime::meta::Uid;

use super::Director;
use super::snapshot::{Depth, Observed};
use super::timing::Timing;
use super::trace::DecisionStatus;
use crate::live::Known;
use crate::needs::Wake;

/// The number of observations that start at the same time: a new leader has many owners.
const STARTS: usize = 64;
/// The time after which an observation no longer counts among those that start, so that hanging software of
/// some owners does not delay the others.
const START: Duration = Duration::from_secs(1);
/// The shortest time between the beginnings of two observations of one owner.
const APART: Duration = Duration::from_secs(1);
/// The longest time between two observations that were given up.
const BACKOFF: Duration = Duration::from_mins(5);

/// The observers of all owners of a director.
pub(super) struct Observers<D: Director> {
    director: Arc<D>,
    fence: Fence,
    wake: Wake,
    starts: Arc<Semaphore>,
    owners: Mutex<HashMap<ObjectKey, Observer<D>>>,
}

/// The observer of one owner. Dropping it ends its task.
struct Observer<D: Director> {
    uid: Uid,
    shared: Arc<Shared<D>>,
    task: AbortHandle,
}

impl<D: Director> Drop for Observer<D> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Shared<D: Director> {
    state: Mutex<State<D>>,
    changed: Notify,
}

struct State<D: Director> {
    target: D::Target,
    wanted: Wanted,
    /// The factor of all intervals of this owner, so that owners are not observed in step.
    spread: f64,
    /// Counts events, so that their order is known even if two of them happen at the same instant.
    events: u64,
    /// The generation of the owner, and the event of its first sight by this process.
    generation: (i64, u64),
    last: Option<PastObservation<D::Observation>>,
    before: Option<Arc<Observed<D::Observation>>>,
    /// The event of the end of our last effect, and the effect in words.
    effect: Option<(u64, String)>,
    /// The decisions that the status shows, and since when.
    shown: Option<(Instant, Vec<DecisionStatus>)>,
}

/// The wishes of the last pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) timing: Timing,
    pub(super) depth: Depth,
    /// True if an actor works or waits.
    pub(super) moving: bool,
}

/// An observation that has ended.
struct PastObservation<O> {
    /// The event of its beginning.
    event: u64,
    began: Instant,
    ended: Instant,
    /// The observation, or the reason why it was given up.
    result: Result<Arc<Observed<O>>, String>,
    /// The number of observations in a row that were given up.
    failures: u32,
}

/// The last observation of an owner, from the view of a pass.
pub(super) enum View<O> {
    /// This process has not observed this target yet.
    Never,
    /// It has been observed: the observation, or the reason why it cannot be used.
    Ended(Known<Arc<Observed<O>>>),
}

impl<O> Clone for View<O> {
    fn clone(&self) -> Self {
        match self {
            Self::Never => Self::Never,
            Self::Ended(observed) => Self::Ended(observed.clone()),
        }
    }
}

impl<D: Director> State<D> {
    fn new(uid: Uid, target: D::Target, generation: i64, wanted: Wanted) -> Self {
        let dice = uid.to_string().bytes().fold(0_u8, |dice, byte| dice.wrapping_mul(31).wrapping_add(byte));
        let spread = 0.9 + 0.2 * f64::from(dice) / f64::from(u8::MAX);
        let generation = (generation, 0);
        Self {
            target,
            wanted,
            spread,
            events: 0,
            generation,
            last: None,
            before: None,
            effect: None,
            shown: None,
        }
    }

    /// Returns the number of a new event.
    fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    /// Returns whether an observation is needed at once.
    fn is_urgent(&self) -> bool {
        let Some(last) = &self.last else { return true };
        let too_shallow = last.result.as_ref().is_ok_and(|seen| seen.depth < self.wanted.depth);
        too_shallow || self.why_outdated(last).is_some()
    }

    /// Returns the reason why an observation cannot be used any more.
    fn why_outdated(&self, last: &PastObservation<D::Observation>) -> Option<String> {
        if let Some((ended, effect)) = &self.effect
            && *ended > last.event
        {
            return Some(format!("{effect} was sent after the last observation began"));
        }
        let (generation, since) = self.generation;
        (since > last.event).then(|| format!("generation {generation} has not been observed yet"))
    }

    /// Returns the time of the next observation, if there is one without a change.
    fn due(&self) -> Option<Instant> {
        let Some(last) = &self.last else { return Some(Instant::now()) };
        let earliest = last.began + APART;
        // Software that does not answer is asked less and less often, whatever is urgent.
        let backoff = match last.failures {
            0 => Duration::ZERO,
            failures => (APART * 2_u32.saturating_pow(failures.min(16))).min(BACKOFF),
        };
        if self.is_urgent() {
            return Some(earliest.max(last.ended + backoff));
        }
        let Wanted { timing, moving, .. } = self.wanted;
        let interval = if moving { Some(timing.moving) } else { timing.at_rest };
        interval.map(|interval| earliest.max(last.ended + interval.mul_f64(self.spread).max(backoff)))
    }
}

impl<D: Director> Observers<D> {
    pub(super) fn new(director: Arc<D>, fence: Fence, wake: Wake) -> Self {
        let starts = Arc::new(Semaphore::new(STARTS));
        Self { director, fence, wake, starts, owners: Mutex::default() }
    }

    /// Returns the last observation of an owner's target that decisions may use. A new generation is noticed
    /// here: an observation that began before it is outdated.
    pub(super) fn view(
        &self,
        key: &ObjectKey,
        uid: Uid,
        generation: i64,
        target: &D::Target,
    ) -> View<D::Observation> {
        let owners = self.owners.lock();
        let Some(observer) = owners.get(key).filter(|observer| observer.uid == uid) else {
            return View::Never;
        };
        let mut state = observer.shared.state.lock();
        if state.generation.0 != generation {
            state.generation = (generation, state.event());
            observer.shared.changed.notify_one();
        }
        match &state.last {
            Some(last) if state.target == *target => {
                View::Ended(match (&last.result, state.why_outdated(last)) {
                    (_, Some(why)) => Known::Unknown(why),
                    (Ok(seen), None) => Known::Known(Arc::clone(seen)),
                    (Err(why), None) => Known::Unknown(why.clone()),
                })
            }
            _ => View::Never,
        }
    }

    /// Observes an owner from now on, as its last pass wants it.
    pub(super) fn follow(
        &self,
        key: &ObjectKey,
        uid: Uid,
        generation: i64,
        target: D::Target,
        wanted: Wanted,
    ) {
        let mut owners = self.owners.lock();
        if let Some(observer) = owners.get(key).filter(|observer| observer.uid == uid) {
            let mut state = observer.shared.state.lock();
            if state.target == target && state.wanted == wanted {
                return;
            }
            if state.target != target {
                // Facts about another target are no facts about this one.
                (state.last, state.before) = (None, None);
                state.target = target;
            }
            state.wanted = wanted;
            observer.shared.changed.notify_one();
            return;
        }
        let state = Mutex::new(State::new(uid, target, generation, wanted));
        let shared = Arc::new(Shared { state, changed: Notify::new() });
        let task = Task {
            director: Arc::clone(&self.director),
            shared: Arc::clone(&shared),
            key: key.clone(),
            wake: self.wake.clone(),
            fence: self.fence.clone(),
            starts: Arc::clone(&self.starts),
        };
        let task = tokio::spawn(task.run()).abort_handle();
        owners.insert(key.clone(), Observer { uid, shared, task });
    }

    /// Ends the observation of an owner.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.owners.lock().remove(key);
    }

    /// Records an effect: its end, whatever it is, makes earlier observations outdated and starts another.
    pub(super) fn effect(&self, key: &ObjectKey, words: &str) -> EffectEnd<D> {
        let owners = self.owners.lock();
        let shared = owners.get(key).map(|observer| Arc::clone(&observer.shared));
        EffectEnd { shared, words: words.to_owned() }
    }

    /// Makes a call to the software, within its deadline and the lease.
    pub(super) async fn perform(
        &self,
        target: &D::Target,
        effect: &D::Effect,
        deadline: Duration,
    ) -> Result<(), windlass_runtime::controller::Error> {
        use windlass_runtime::controller::Error;
        let left = self.fence.remaining().ok_or_else(|| {
            Error::transient(
                "not sent: this process does not hold the lease, or the lease deadline has passed",
            )
        })?;
        match timeout(deadline.min(left), self.director.perform(target, effect)).await {
            Ok(done) => done,
            Err(_) => Err(Error::transient(format!(
                "no answer within {} s; the next observation shows if it happened",
                deadline.min(left).as_secs()
            ))),
        }
    }

    /// Returns the decisions for the status: changes are shown with some time between them. Returns also the
    /// time after which a change that is held back can be shown.
    pub(super) fn shown(
        &self,
        key: &ObjectKey,
        decisions: Vec<DecisionStatus>,
    ) -> (Vec<DecisionStatus>, Option<Duration>) {
        let owners = self.owners.lock();
        let Some(observer) = owners.get(key) else { return (decisions, None) };
        let mut state = observer.shared.state.lock();
        match &state.shown {
            Some((_, shown)) if *shown == decisions => (decisions, None),
            Some((since, shown)) if since.elapsed() < state.wanted.timing.decisions_apart => {
                let left = state.wanted.timing.decisions_apart.saturating_sub(since.elapsed());
                (shown.clone(), Some(left))
            }
            _ => {
                state.shown = Some((Instant::now(), decisions.clone()));
                (decisions, None)
            }
        }
    }
}

/// Records the end of an effect when it is dropped: also if the effect is cancelled, because it may have
/// happened.
pub(super) struct EffectEnd<D: Director> {
    shared: Option<Arc<Shared<D>>>,
    words: String,
}

impl<D: Director> Drop for EffectEnd<D> {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            let mut state = shared.state.lock();
            state.effect = Some((state.event(), std::mem::take(&mut self.words)));
            drop(state);
            shared.changed.notify_one();
        }
    }
}

/// The task of one owner.
struct Task<D: Director> {
    director: Arc<D>,
    shared: Arc<Shared<D>>,
    key: ObjectKey,
    wake: Wake,
    fence: Fence,
    starts: Arc<Semaphore>,
}

impl<D: Director> Task<D> {
    async fn run(self) {
        loop {
            self.until_due().await;
            if self.fence.check().is_err() {
                // Without the lease nobody is asked; the task ends with the process or with its controller.
                tokio::time::sleep(APART).await;
                continue;
            }
            self.observe_once().await;
        }
    }

    /// Waits until the next observation is due.
    async fn until_due(&self) {
        loop {
            let due = self.shared.state.lock().due();
            match due {
                Some(at) if at <= Instant::now() => return,
                Some(at) => {
                    tokio::select! {
                        () = sleep_until(at) => {}
                        () = self.shared.changed.notified() => {}
                    }
                }
                None => self.shared.changed.notified().await,
            }
        }
    }

    async fn observe_once(&self) {
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&self.starts).acquire_owned().await else { return };
        let (event, target, depth, deadline, before, awaited) = {
            let mut state = self.shared.state.lock();
            let Wanted { timing, depth, .. } = state.wanted;
            let (target, before) = (state.target.clone(), state.before.clone());
            (state.event(), target, depth, timing.deadline, before, state.is_urgent())
        };
        let limit = self.fence.remaining().map_or(Duration::ZERO, |left| left.min(deadline));
        let (began, began_at) = (Instant::now(), Timestamp::now());
        let observing = self.director.observe(&target, depth, before.as_deref());
        let observing = timeout(limit, AssertUnwindSafe(observing).catch_unwind());
        tokio::pin!(observing);
        let ended = tokio::select! {
            ended = &mut observing => ended,
            () = tokio::time::sleep(START) => {
                drop(permit);
                observing.await
            }
        };
        let result = match ended {
            Ok(Ok(facts)) => Ok(Arc::new(Observed { facts, depth, began: began_at })),
            Ok(Err(_)) => Err("the observation failed with a panic, which the log shows".to_owned()),
            Err(_) => Err(format!("the software was not observed within {} s", limit.as_secs())),
        };
        if self.record(&target, event, began, result) || awaited {
            self.wake.send(self.key.clone());
        }
    }

    /// Records an observation, and returns whether it found a change.
    fn record(
        &self,
        target: &D::Target,
        event: u64,
        began: Instant,
        result: Result<Arc<Observed<D::Observation>>, String>,
    ) -> bool {
        let mut state = self.shared.state.lock();
        if state.target != *target {
            return false;
        }
        let changed = match (state.last.as_ref().map(|last| &last.result), &result) {
            (Some(Ok(old)), Ok(new)) => old.facts != new.facts || old.depth < new.depth,
            (Some(Err(old)), Err(new)) => old != new,
            _ => true,
        };
        let failures = match (&state.last, &result) {
            (_, Ok(_)) => 0,
            (Some(last), Err(_)) => last.failures.saturating_add(1),
            (None, Err(_)) => 1,
        };
        if let Err(why) = &result {
            tracing::debug!(owner = %self.key, why, failures, "the software could not be observed");
        }
        if let Ok(seen) = &result {
            state.before = Some(Arc::clone(seen));
        }
        state.last = Some(PastObservation { event, began, ended: Instant::now(), result, failures });
        changed
    }
}
