//! The events of a story, whatever is rotated in it.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use windlass_pki::Certificate;

const DAY: u64 = 86_400;
const YEAR: i64 = 365 * 86_400;

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// Time passes, in seconds.
    Advance(u64),
    /// The clock is set, by seconds.
    Jump(i64),
    /// This reader reads what is written for it.
    Read(usize),
    /// The process starts, and ends after this number of writes.
    Run(usize),
}

fn seconds() -> impl Strategy<Value = u64> {
    prop_oneof![1..600_u64, 600..DAY, DAY..3 * DAY, 3 * DAY..120 * DAY, 120 * DAY..1200 * DAY]
}

pub(crate) fn event(readers: usize) -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => seconds().prop_map(Event::Advance),
        1 => (seconds(), any::<bool>()).prop_map(|(seconds, back)| {
            let seconds = i64::try_from(seconds).unwrap();
            Event::Jump(if back { -seconds } else { seconds })
        }),
        3 => (0..readers).prop_map(Event::Read),
        2 => (0..5_usize).prop_map(Event::Run),
        4 => Just(Event::Run(usize::MAX)),
    ]
}

/// The clock that everybody looks at, and the time that has really passed.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    now: Timestamp,
    passed: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { now: Timestamp::from_second(60 * YEAR).unwrap(), passed: 0 }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }

    pub(crate) fn advance(&mut self, seconds: u64) {
        self.passed += seconds;
        self.jump(i64::try_from(seconds).unwrap());
    }

    pub(crate) fn jump(&mut self, seconds: i64) {
        // Certificates have no years before 1970.
        let floor = Timestamp::from_second(YEAR).unwrap();
        self.now = (self.now + SignedDuration::from_secs(seconds)).max(floor);
    }

    /// As Go's verifier and OpenSSL do: the authority must be valid too.
    pub(crate) fn trusts(&self, bundle: &[Certificate], leaf: &Certificate) -> bool {
        leaf.is_valid_at(self.now)
            && bundle.iter().any(|authority| leaf.is_issued_by(authority) && authority.is_valid_at(self.now))
    }
}

/// Pairs of a verifier and a server.
///
/// A pair that trusts when something is written must trust after either of the two has read it. One that does not trust at that moment
/// (nothing was there, or it had ended, or a clock went back before its beginning) is owed nothing until all have read everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    interrupted: Vec<bool>,
}

impl Pairs {
    /// Something was written while these pairs trusted.
    pub(crate) fn written(&mut self, trusting: &[bool]) {
        self.interrupted.resize(trusting.len(), false);
        for (interrupted, trusts) in self.interrupted.iter_mut().zip(trusting) {
            *interrupted |= !trusts;
        }
    }

    /// Somebody has read, and the pairs that trusted before are these, those that trust after are those.
    pub(crate) fn read(
        &mut self,
        before: &[bool],
        after: &[bool],
        all_have_read: bool,
        clock: &Clock,
    ) -> Result<(), TestCaseError> {
        self.interrupted.resize(before.len(), false);
        let pairs = before.iter().zip(after).zip(&self.interrupted);
        for (pair, ((before, after), interrupted)) in pairs.enumerate() {
            let lost = *before && !*after && !*interrupted;
            prop_assert!(!lost, "pair {pair} lost its trust by reading, at {}", clock.now);
        }
        if all_have_read {
            self.interrupted.fill(false);
        }
        Ok(())
    }
}
