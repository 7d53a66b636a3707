//! A valve in the flow of an answer's body, which others turn.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::task::{Context, Waker};

use super::script::FaultId;
use super::sync::lock;

/// A switch that stops and releases the bytes of a stream.
#[derive(Debug, Default)]
pub(super) struct Valve(Mutex<ValveState>);

#[derive(Debug, Default)]
struct ValveState {
    /// The faults that freeze the stream; data flows again when none is left.
    frozen_by: BTreeSet<FaultId>,
    /// Final: a broken stream stays broken.
    fate: Option<Fate>,
    waker: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Cut,
    Dead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Open,
    Frozen,
    Broken(Fate),
}

impl Valve {
    pub(super) fn freeze(&self, by: FaultId) {
        self.turn(|state| {
            state.frozen_by.insert(by);
        });
    }

    pub(super) fn thaw(&self, by: FaultId) {
        self.turn(|state| {
            state.frozen_by.remove(&by);
        });
    }

    pub(super) fn cut(&self) {
        self.turn(|state| state.fate = state.fate.or(Some(Fate::Cut)));
    }

    pub(super) fn cut_if_frozen_by(&self, by: FaultId) {
        self.turn(|state| {
            if state.frozen_by.contains(&by) {
                state.fate = state.fate.or(Some(Fate::Cut));
            }
        });
    }

    /// Leaves the client on a connection on which nothing comes any more.
    pub(super) fn half_open(&self) {
        self.turn(|state| state.fate = state.fate.or(Some(Fate::Dead)));
    }

    fn turn(&self, turn: impl FnOnce(&mut ValveState)) {
        let waker = {
            let mut state = lock(&self.0);
            turn(&mut state);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The present position; the task is woken at the next turn.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Flow {
        let mut state = lock(&self.0);
        state.waker = Some(cx.waker().clone());
        match (state.fate, state.frozen_by.is_empty()) {
            (Some(fate), _) => Flow::Broken(fate),
            (None, true) => Flow::Open,
            (None, false) => Flow::Frozen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valve_opens_when_the_last_one_lets_go_and_never_after_a_cut() {
        let valve = Valve::default();
        let cx = Context::from_waker(Waker::noop());
        valve.freeze(FaultId(1));
        valve.freeze(FaultId(2));
        valve.thaw(FaultId(1));
        assert_eq!(valve.poll(&cx), Flow::Frozen);
        valve.thaw(FaultId(2));
        assert_eq!(valve.poll(&cx), Flow::Open);
        valve.cut_if_frozen_by(FaultId(1));
        assert_eq!(valve.poll(&cx), Flow::Open, "it is not frozen any more");
        valve.cut();
        valve.half_open();
        assert_eq!(valve.poll(&cx), Flow::Broken(Fate::Cut));
    }
}
