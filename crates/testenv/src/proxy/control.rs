//! The state that a running proxy and its handles share: faults, held requests and open streams.
//!
//! One lock guards it, and nothing awaits under it. A valve's own lock may be taken while this one is held,
//! never the other way round.

mod record;
mod waits;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::sync::watch;

use super::fault::{Action, Fault};
use super::log::{Delivery, Log, LoggedRequest};
use super::matching::Match;
use super::request::{RequestSeen, RequestVerb};
use super::script::{Cast, FaultId, Script};
use super::sync::lock;
use super::valve::Valve;

pub(super) use record::Record;

/// The decision about a request that was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Release,
    Discard,
}

/// The gate at which a held request waits: [`Gate::verdict`] returns at the next verdict on its fault.
pub(super) struct Gate(watch::Receiver<Verdict>);

impl Gate {
    pub(super) async fn verdict(mut self) -> Verdict {
        match self.0.changed().await {
            Ok(()) => *self.0.borrow(),
            Err(_) => Verdict::Release,
        }
    }
}

/// The counters of a fault that outlive its time in the script, because its handle may still read them.
#[derive(Debug)]
pub(super) struct Tally {
    hits: AtomicU64,
    gate: watch::Sender<Verdict>,
}

impl Tally {
    pub(super) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Acquire)
    }
}

#[derive(Debug)]
pub(super) struct Control {
    state: Mutex<ControlState>,
    /// Changes whenever something happened that a caller may wait for.
    happened: watch::Sender<()>,
    patience: Duration,
    names_creates: AtomicBool,
    replica: OnceLock<String>,
}

#[derive(Debug)]
struct ControlState {
    cast: Cast,
    faults: BTreeMap<FaultId, (Fault, Arc<Tally>)>,
    log: Log,
    /// Answers whose bodies flow, by the request's number.
    streams: BTreeMap<u64, (RequestSeen, Arc<Valve>)>,
    /// Watches that stand still as long as a guard lives, also those not opened yet.
    freezes: BTreeMap<FaultId, Match>,
    next_id: u64,
}

impl ControlState {
    fn next_id(&mut self) -> FaultId {
        self.next_id += 1;
        FaultId(self.next_id)
    }

    fn add(&mut self, fault: Fault) -> (FaultId, Arc<Tally>) {
        let id = self.next_id();
        let tally = Arc::new(Tally { hits: AtomicU64::new(0), gate: watch::Sender::new(Verdict::Release) });
        self.cast.add(id, fault.clone());
        self.faults.insert(id, (fault, Arc::clone(&tally)));
        (id, tally)
    }

    fn clear(&mut self) {
        self.cast.clear();
        for (id, (_, tally)) in std::mem::take(&mut self.faults) {
            self.judge(id, &tally, Verdict::Release);
        }
    }

    fn judge(&self, id: FaultId, tally: &Tally, verdict: Verdict) {
        tally.gate.send_replace(verdict);
        for (_, valve) in self.streams.values() {
            match verdict {
                Verdict::Release => valve.thaw(id),
                Verdict::Discard => valve.cut_if_frozen_by(id),
            }
        }
    }

    fn watches<'a>(&'a self, wanted: &'a Match) -> impl Iterator<Item = (u64, &'a Arc<Valve>)> {
        self.streams
            .iter()
            .filter(|(_, (request, _))| request.verb == RequestVerb::Watch && wanted.matches(request))
            .map(|(sequence, (_, valve))| (*sequence, valve))
    }
}

impl Control {
    pub(super) fn new(remember: usize, patience: Duration) -> Self {
        let state = ControlState {
            cast: Cast::default(),
            faults: BTreeMap::new(),
            log: Log::new(remember),
            streams: BTreeMap::new(),
            freezes: BTreeMap::new(),
            next_id: 0,
        };
        Self {
            state: Mutex::new(state),
            happened: watch::Sender::new(()),
            patience,
            names_creates: AtomicBool::new(false),
            replica: OnceLock::new(),
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut ControlState) -> T) -> T {
        let result = change(&mut lock(&self.state));
        self.happened.send_replace(());
        result
    }

    // What tests do.

    pub(super) fn add(&self, fault: Fault) -> (FaultId, Arc<Tally>) {
        self.change(|state| state.add(fault))
    }

    pub(super) fn set(&self, script: Script) -> Vec<(FaultId, Arc<Tally>, Fault)> {
        self.change(|state| {
            state.clear();
            let add = |fault: Fault| {
                let (id, tally) = state.add(fault.clone());
                (id, tally, fault)
            };
            script.faults.into_iter().map(add).collect()
        })
    }

    pub(super) fn clear(&self) {
        self.change(ControlState::clear);
    }

    pub(super) fn remove(&self, id: FaultId, tally: &Tally) {
        self.change(|state| {
            state.cast.remove(id);
            state.faults.remove(&id);
            state.judge(id, tally, Verdict::Release);
        });
    }

    pub(super) fn judge(&self, id: FaultId, tally: &Tally, verdict: Verdict) {
        self.change(|state| state.judge(id, tally, verdict));
    }

    pub(super) fn freeze(&self, wanted: Match) -> FaultId {
        self.change(|state| {
            let id = state.next_id();
            for (_, valve) in state.watches(&wanted) {
                valve.freeze(id);
            }
            state.freezes.insert(id, wanted);
            id
        })
    }

    pub(super) fn thaw(&self, id: FaultId) {
        self.change(|state| {
            state.freezes.remove(&id);
            for (_, valve) in state.streams.values() {
                valve.thaw(id);
            }
        });
    }

    /// Breaks the open watches, and returns their number.
    pub(super) fn break_watches(&self, wanted: &Match, how: impl Fn(&Valve)) -> usize {
        self.change(|state| {
            let broken: Vec<u64> =
                state.watches(wanted).map(|(sequence, valve)| (sequence, how(valve)).0).collect();
            for sequence in &broken {
                broken_off(&mut state.log, *sequence);
            }
            broken.len()
        })
    }

    pub(super) fn open_watches(&self, wanted: &Match) -> usize {
        lock(&self.state).watches(wanted).count()
    }

    pub(super) fn seen(&self) -> Vec<LoggedRequest> {
        lock(&self.state).log.entries().cloned().collect()
    }

    pub(super) fn count(&self, counts: impl Fn(&LoggedRequest) -> bool) -> usize {
        lock(&self.state).log.entries().filter(|seen| counts(seen)).count()
    }

    pub(super) fn last_where(&self, holds: impl Fn(&LoggedRequest) -> bool) -> Option<u64> {
        lock(&self.state).log.entries().rev().find(|seen| holds(seen)).map(|seen| seen.sequence)
    }

    pub(super) fn name_creates(&self) {
        self.names_creates.store(true, Ordering::Release);
    }

    pub(super) fn names_creates(&self) -> bool {
        self.names_creates.load(Ordering::Acquire)
    }

    pub(super) fn name_replica(&self, name: String) {
        // The first name stays: the audit log must not have two for one replica.
        let _ = self.replica.set(name);
    }

    pub(super) fn replica(&self) -> Option<&str> {
        self.replica.get().map(String::as_str)
    }

    pub(super) fn last(&self) -> u64 {
        lock(&self.state).log.last()
    }

    // What the proxy tells.

    /// Writes a request down and asks the script about it, in one step: the log's order is the order in which
    /// faults count.
    pub(super) fn arrived(self: &Arc<Self>, request: &RequestSeen) -> (Record, Option<(FaultId, Action)>) {
        let (sequence, taken) =
            self.change(|state| (state.log.arrived(request.clone()), state.cast.offer(request)));
        (Record::new(Arc::clone(self), sequence), taken)
    }

    /// A fault takes effect now. `None`: it was removed meanwhile and does not.
    pub(super) fn hit(&self, id: FaultId, sequence: u64) -> Option<Gate> {
        self.change(|state| {
            let (fault, tally) = state.faults.get(&id)?;
            // Before the hit is known, so that a request is not released before it waits.
            let gate = Gate(tally.gate.subscribe());
            tally.hits.fetch_add(1, Ordering::AcqRel);
            if let Some(seen) = state.log.entry(sequence) {
                seen.fault = Some(fault.clone());
            }
            Some(gate)
        })
    }

    pub(super) fn server_answered(&self, sequence: u64, code: u16) {
        self.change(|state| {
            if let Some(seen) = state.log.entry(sequence) {
                seen.server = Some(code);
            }
        });
    }

    /// An answer's body begins to flow.
    pub(super) fn stream_opened(&self, sequence: u64, request: &RequestSeen) -> Arc<Valve> {
        let valve = Arc::new(Valve::default());
        self.change(|state| {
            let frozen = state
                .freezes
                .iter()
                .filter(|(_, wanted)| request.verb == RequestVerb::Watch && wanted.matches(request));
            for (id, _) in frozen {
                valve.freeze(*id);
            }
            state.streams.insert(sequence, (request.clone(), Arc::clone(&valve)));
        });
        valve
    }

    pub(super) fn stream_closed(&self, sequence: u64) {
        self.change(|state| state.streams.remove(&sequence));
    }

    pub(super) fn stream_broken(&self, sequence: u64) {
        self.change(|state| broken_off(&mut state.log, sequence));
    }
}

fn broken_off(log: &mut Log, sequence: u64) {
    if let Some(seen) = log.entry(sequence)
        && let Delivery::Answered(code) = seen.client
    {
        seen.client = Delivery::Broken(code);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn control() -> Arc<Control> {
        Arc::new(Control::new(100, Duration::from_secs(30)))
    }

    #[tokio::test]
    async fn a_verdict_is_only_for_those_who_wait_already() {
        let control = control();
        let (id, tally) = control.add(Fault::on(Match::any()).then(Action::Hold));
        control.judge(id, &tally, Verdict::Discard);
        let early = control.hit(id, 1).unwrap().verdict();
        let mut early = Box::pin(early);
        assert_eq!(early.as_mut().now_or_never(), None, "the verdict before it does not count");
        control.judge(id, &tally, Verdict::Release);
        assert_eq!(early.await, Verdict::Release);
    }

    #[tokio::test]
    async fn removing_a_fault_lets_go_of_what_it_held_and_hits_no_more() {
        let control = control();
        let (id, tally) = control.add(Fault::on(Match::any()).then(Action::Hold));
        let gate = control.hit(id, 1).unwrap();
        control.remove(id, &tally);
        assert_eq!(gate.verdict().await, Verdict::Release);
        assert!(control.hit(id, 2).is_none());
        assert_eq!(tally.hits(), 1);
    }
}
