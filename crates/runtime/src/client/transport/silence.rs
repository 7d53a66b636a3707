//! The judgement of a connection that is silent while a request waits for response headers.
//!
//! Silence is counted in steps that this process was able to make, not by the clock: a process that had no
//! processor for seconds has not read what has arrived meanwhile, and must not blame the connection.
//!
//! A server may be as busy. A client that closes its connections to a busy server and opens new ones, each
//! with a TLS handshake, keeps it busy. So a connection that was found silent makes the client more patient
//! with the next ones, until a response arrives.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

/// The time between two looks at a connection.
pub(super) const STEP: Duration = Duration::from_millis(250);
/// Steps of silence after which a connection is suspect: one second.
const SUSPECT: u32 = 4;
/// Steps of silence after which a request fails: 3.5 seconds. A ping was sent after two of them, and its
/// answer is overdue.
const SILENT: u32 = 14;
/// The largest number of times that the patience doubles: up to 56 seconds.
const MOST: u32 = 4;

/// The patience with silent connections, shared by all connections to one server.
#[derive(Debug, Default)]
pub(super) struct Patience(AtomicU32);

impl Patience {
    /// Returns the number of times that the patience has doubled.
    pub(super) fn level(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// A request failed by silence that began to wait at this level. Of many requests that fail together, one
    /// counts.
    pub(super) fn found_silent(&self, level: u32) {
        let _ = self.0.compare_exchange(level, (level + 1).min(MOST), Relaxed, Relaxed);
    }

    /// A response has arrived.
    pub(super) fn answered(&self) {
        if self.level() > 0 {
            let _ = self.0.fetch_update(Relaxed, Relaxed, |level| level.checked_sub(1));
        }
    }
}

/// The liveness of a connection at one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Liveness {
    /// The connection gives signs of life, or is not open yet.
    Alive,
    /// The connection is silent: new requests should use another one.
    Suspect,
    /// The connection is silent for so long that its request fails.
    Silent,
}

/// The silence of a connection since its last sign of life.
#[derive(Debug)]
pub(super) struct Silence {
    sign: Option<Instant>,
    steps: u32,
}

impl Silence {
    /// Begins to count. `sign` is the last sign of life; `None` without an open HTTP/2 connection.
    pub(super) fn since(sign: Option<Instant>) -> Self {
        Self { sign, steps: 0 }
    }

    /// Counts one step and judges.
    pub(super) fn step(&mut self, sign: Option<Instant>, level: u32) -> Liveness {
        if sign.is_none() || sign != self.sign {
            *self = Self::since(sign);
            return Liveness::Alive;
        }
        self.steps += 1;
        match self.steps {
            steps if steps >= SILENT << level => Liveness::Silent,
            steps if steps >= SUSPECT << level => Liveness::Suspect,
            _ => Liveness::Alive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgements(silence: &mut Silence, sign: Option<Instant>, level: u32, steps: usize) -> Vec<Liveness> {
        (0..steps).map(|_| silence.step(sign, level)).collect()
    }

    #[test]
    fn a_silent_connection_becomes_suspect_and_then_silent() {
        let sign = Some(Instant::now());
        let mut silence = Silence::since(sign);
        assert_eq!(judgements(&mut silence, sign, 0, 3), [Liveness::Alive; 3]);
        assert_eq!(judgements(&mut silence, sign, 0, 10), [Liveness::Suspect; 10]);
        assert_eq!(silence.step(sign, 0), Liveness::Silent);
    }

    #[test]
    fn a_sign_of_life_begins_the_count_again() {
        let sign = Some(Instant::now());
        let mut silence = Silence::since(sign);
        judgements(&mut silence, sign, 0, 13);
        let next = sign.map(|sign| sign + STEP);
        assert_eq!(judgements(&mut silence, next, 0, 4), [Liveness::Alive; 4]);
        assert_eq!(silence.step(next, 0), Liveness::Suspect);
    }

    #[test]
    fn a_connection_that_is_not_open_is_never_suspect() {
        assert_eq!(judgements(&mut Silence::since(None), None, 0, 100), [Liveness::Alive; 100]);
    }

    #[test]
    fn every_silent_connection_in_a_row_doubles_the_patience_and_a_response_halves_it() {
        let patience = Patience::default();
        for level in 0..9 {
            assert_eq!(patience.level(), level.min(MOST));
            patience.found_silent(patience.level());
        }
        // Many requests that began at the same level count as one.
        patience.answered();
        for _ in 0..64 {
            patience.found_silent(MOST - 1);
        }
        assert_eq!(patience.level(), MOST);
        for _ in 0..9 {
            patience.answered();
        }
        assert_eq!(patience.level(), 0);
        let sign = Some(Instant::now());
        let mut silence = Silence::since(sign);
        assert_eq!(judgements(&mut silence, sign, 2, 15), [Liveness::Alive; 15]);
        assert_eq!(judgements(&mut silence, sign, 2, 40), [Liveness::Suspect; 40]);
        assert_eq!(silence.step(sign, 2), Liveness::Silent);
    }
}
