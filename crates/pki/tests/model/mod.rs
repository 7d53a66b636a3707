//! The model of both rotation tests: events, a clock, readers that trust each other, and the promise.
//!
//! The promise: whatever the clock does and wherever the process ends, a pair of a verifier and a server that
//! trusts keeps its trust through every write of the process and every read.

use std::fmt::Debug;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use windlass_pki::Certificate;

const DAY: u64 = 86_400;
const YEAR: i64 = 365 * 86_400;

/// One event of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// Time passes, in seconds.
    Advance(u64),
    /// The clock is set, by seconds.
    Jump(i64),
    /// A reader reads what is written for it.
    Read(usize),
    /// The process starts, and ends after this number of writes.
    Run(usize),
}

/// The settings of both property tests.
pub(crate) fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 96,
        max_shrink_iters: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
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

    /// Verifies as Go and OpenSSL do: the authority must be valid too.
    pub(crate) fn trusts(&self, bundle: &[Certificate], leaf: &Certificate) -> bool {
        leaf.is_valid_at(self.now)
            && bundle.iter().any(|authority| leaf.is_issued_by(authority) && authority.is_valid_at(self.now))
    }
}

/// Pairs of a verifier and a server.
///
/// A pair that trusts when something is written must trust after either of the two has read it. One that does
/// not trust at that moment (nothing was there, or it had ended, or a clock went back before its beginning)
/// is owed nothing until all have read everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    interrupted: Vec<bool>,
}

impl Pairs {
    /// Records a write, and the pairs that trusted at that moment.
    pub(crate) fn written(&mut self, trusting: &[bool]) {
        self.interrupted.resize(trusting.len(), false);
        for (interrupted, trusts) in self.interrupted.iter_mut().zip(trusting) {
            *interrupted |= !trusts;
        }
    }

    /// Checks the pairs that trusted before and after a read: no trust is lost by it.
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

/// An installation whose certificates are rotated: the part of the model in which the two tests differ.
pub(crate) trait Model: Clone + Debug + Default {
    /// The number of readers.
    const READERS: usize;

    /// For each pair of a verifier and a server, whether the verifier trusts the server.
    fn trusting(&self, clock: &Clock) -> Vec<bool>;

    /// The time, as [`Clock::passed`] counts it, at which a reader has read what is written for it.
    fn read_by(&self, reader: usize) -> Option<u64>;

    /// A reader reads what is written for it.
    fn read(&mut self, reader: usize);

    /// Returns true if every reader has read what is written for it.
    fn have_all_read(&self) -> bool;

    /// Does what the process does, up to this number of writes. Returns when to look again if it came to the
    /// end.
    fn run(&mut self, writes: usize, clock: &Clock, pairs: &mut Pairs) -> Option<Timestamp>;
}

/// A model with its clock and the trust that is owed to its pairs.
#[derive(Clone, Debug)]
pub(crate) struct World<M> {
    clock: Clock,
    pairs: Pairs,
    model: M,
}

impl<M: Model> World<M> {
    /// Plays the events from an empty installation and checks the promise after each of them.
    pub(crate) fn play(events: Vec<Event>) -> Result<(), TestCaseError> {
        let mut world = Self { clock: Clock::new(), pairs: Pairs::default(), model: M::default() };
        for event in events {
            match event {
                Event::Advance(seconds) => world.advance(seconds)?,
                // Overlaps and times to settle are measured by the clock: a jump may end one early, so all
                // readers have read before one.
                Event::Jump(seconds) => {
                    world.all_read()?;
                    world.clock.jump(seconds);
                }
                Event::Read(reader) => world.read(reader)?,
                Event::Run(writes) => world.run(writes)?,
            }
        }
        Ok(())
    }

    fn trusting(&self) -> Vec<bool> {
        self.model.trusting(&self.clock)
    }

    /// One reader reads; no pair may lose trust by that.
    fn read(&mut self, reader: usize) -> Result<(), TestCaseError> {
        let before = self.trusting();
        self.model.read(reader);
        let (after, all) = (self.trusting(), self.model.have_all_read());
        self.pairs.read(&before, &after, all, &self.clock)
    }

    fn all_read(&mut self) -> Result<(), TestCaseError> {
        (0..M::READERS).try_for_each(|reader| self.read(reader))
    }

    fn advance(&mut self, seconds: u64) -> Result<(), TestCaseError> {
        self.clock.advance(seconds);
        for reader in 0..M::READERS {
            if self.model.read_by(reader).is_some_and(|time| time <= self.clock.passed()) {
                self.read(reader)?;
            }
        }
        Ok(())
    }

    /// Runs the process. If it came to its end, all pairs trust as soon as all have read.
    fn run(&mut self, writes: usize) -> Result<(), TestCaseError> {
        let Some(due) = self.model.run(writes, &self.clock, &mut self.pairs) else { return Ok(()) };
        prop_assert!(due > self.clock.now(), "the next run is due in the past, at {:?}", self.clock);
        let mut later = self.clone();
        later.all_read()?;
        let trusting = later.trusting();
        prop_assert!(
            trusting.iter().all(|trusts| *trusts),
            "no run would repair {trusting:?}, at {:?}",
            later.clock
        );
        Ok(())
    }
}
