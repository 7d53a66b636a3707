//! The protocol: what a candidate does next, as a pure function of what it has seen and of the time.
//!
//! Promises: nobody is judged by comparing clocks (a holder is gone when its record did not change *in our eyes* for the
//! duration that the record says); every write names the version that it replaces; who leads has stopped before
//! anybody who follows these rules can lead.
//!
//! Does not: wait, read or write. [`campaign`](super::campaign) does.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::record::{Found, Record, to_micros};
use super::times::Times;

/// So many conflicts in a row are looked into without a pause.
const CALM_CONFLICTS: u32 = 3;

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Read the Lease.
    Read,
    /// Write the Lease: to acquire it, to renew it or to release it.
    Write(Write),
    /// Nothing before this time, unless the Lease is seen to change.
    Wait(Instant),
    /// The lease is lost: stop all work.
    Lost(Loss),
}

/// A write of the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) record: Record,
    /// The version that it replaces; `None`: it creates, and fails if there is one.
    pub(super) replaces: Option<String>,
}

/// How a leader ceased to be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// No renewal worked for the renew deadline.
    Deadline,
    /// The Lease is somebody else's (or, empty, nobody's).
    Taken(String),
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// Somebody wrote since we read; nothing was written.
    Conflict,
    /// Anything else. Whether a write was done is not known.
    Unknown,
}

/// One candidate's view of the election.
#[derive(Clone, Debug)]
pub(super) struct Protocol {
    me: String,
    times: Times,
    sight: Sight,
    /// The last record that was there, also when the Lease is gone by now.
    last: Option<Record>,
    /// Until when the holder of `last` may lead: its duration after it was first seen.
    held_until: Option<Instant>,
    /// When our last write that worked was sent, if that was as a leader.
    renewed: Option<Instant>,
    /// No request before this time, except where something new was seen.
    not_before: Instant,
    /// Whether a write of ours ever went out.
    claimed: bool,
    /// Conflicts since the last write that worked.
    conflicts: u32,
    /// Whether changes of the Lease are told to us.
    watched: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Sight {
    /// Not read yet, or a write went out and its fate is not known.
    Unsure,
    Absent,
    Found(Found),
}

impl Protocol {
    pub(super) fn new(me: String, times: Times, now: Instant) -> Self {
        Self {
            me,
            times,
            sight: Sight::Unsure,
            last: None,
            held_until: None,
            renewed: None,
            not_before: now,
            claimed: false,
            conflicts: 0,
            watched: false,
        }
    }

    /// Whether we lead: from the first write that worked until the lease is released or lost.
    pub(super) fn leads(&self) -> bool {
        self.renewed.is_some()
    }

    /// Who holds the Lease, as far as we know.
    pub(super) fn holder(&self) -> Option<&str> {
        self.last.as_ref().map(|record| &*record.holder).filter(|holder| !holder.is_empty())
    }

    /// The version that was seen last, to watch from.
    pub(super) fn version(&self) -> Option<&str> {
        match &self.sight {
            Sight::Found(found) => Some(&found.version),
            Sight::Unsure | Sight::Absent => None,
        }
    }

    /// When a leader must have stopped, if no renewal works until then.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.renewed.map(|renewed| renewed + self.times.renew_deadline)
    }

    /// What to do now. `wall` is only written down.
    pub(super) fn decide(&self, now: Instant, wall: Timestamp) -> Step {
        match self.renewed {
            Some(renewed) => self.decide_leading(renewed, now, wall),
            None => self.decide_standing_by(now, wall),
        }
    }

    fn decide_leading(&self, renewed: Instant, now: Instant, wall: Timestamp) -> Step {
        let deadline = renewed + self.times.renew_deadline;
        if let Sight::Found(found) = &self.sight
            && found.record.holder != self.me
        {
            return Step::Lost(Loss::Taken(found.record.holder.clone()));
        }
        if now >= deadline {
            return Step::Lost(Loss::Deadline);
        }
        let (due, step) = match &self.sight {
            Sight::Unsure => (self.not_before, Step::Read),
            Sight::Absent => (self.not_before, Step::Write(self.claim(None, wall))),
            Sight::Found(found) => (
                self.not_before.max(renewed + self.times.retry_period),
                Step::Write(self.claim(Some(&found.version), wall)),
            ),
        };
        if now >= due { step } else { Step::Wait(due.min(deadline)) }
    }

    fn decide_standing_by(&self, now: Instant, wall: Timestamp) -> Step {
        let free_at = self.held_until.unwrap_or(now);
        let replaces = match &self.sight {
            Sight::Unsure if now >= self.not_before => return Step::Read,
            Sight::Unsure => return Step::Wait(self.not_before),
            // Somebody deleted the Lease, not its holder: who was seen to hold it may not know yet.
            Sight::Absent => None,
            Sight::Found(found) => Some(&*found.version),
        };
        if now >= free_at {
            return Step::Write(self.claim(replaces, wall));
        }
        match (self.watched, now >= self.not_before) {
            (true, _) => Step::Wait(free_at),
            (false, true) => Step::Read,
            (false, false) => Step::Wait(free_at.min(self.not_before)),
        }
    }

    /// The record that makes us the holder, or keeps us so.
    fn claim(&self, replaces: Option<&str>, wall: Timestamp) -> Write {
        let renewed = match &self.last {
            Some(last) => last.next_renewal(wall),
            None => to_micros(wall),
        };
        let (acquired, transitions) = match &self.last {
            Some(last) if last.holder == self.me => (last.acquired, last.transitions),
            Some(last) => (Some(renewed), last.transitions.saturating_add(1)),
            None => (Some(renewed), 0),
        };
        let record = Record {
            holder: self.me.clone(),
            duration: Some(self.times.lease_duration),
            acquired,
            renewed: Some(renewed),
            transitions,
        };
        Write { record, replaces: replaces.map(str::to_owned) }
    }

    /// What to do to release the lease, after all work has ended; `None` when there is nothing to do.
    pub(super) fn release(&self, now: Instant, wall: Timestamp) -> Option<Step> {
        if !self.claimed {
            return None;
        }
        let found = match &self.sight {
            Sight::Unsure if now < self.not_before => return Some(Step::Wait(self.not_before)),
            Sight::Unsure => return Some(Step::Read),
            Sight::Found(found) if found.record.holder == self.me => found,
            Sight::Absent | Sight::Found(_) => return None,
        };
        let now = found.record.next_renewal(wall);
        let record = Record {
            holder: String::new(),
            // Not zero, which the API server would not take.
            duration: Some(Duration::from_secs(1)),
            acquired: Some(now),
            renewed: Some(now),
            transitions: found.record.transitions,
        };
        Some(Step::Write(Write { record, replaces: Some(found.version.clone()) }))
    }

    /// The Lease was seen: read, watched, or as the answer to a write. `pause` is how long to wait before we look again
    /// by ourselves.
    pub(super) fn saw(&mut self, found: Option<Found>, now: Instant, pause: Duration) {
        self.not_before = match self.renewed {
            // What to do now is known, and a leader has no time to lose.
            Some(_) => now,
            None => now + pause,
        };
        let Some(found) = found else {
            self.sight = Sight::Absent;
            return;
        };
        let record = &found.record;
        if self.last.as_ref() != Some(record) {
            let duration = record.duration.unwrap_or(self.times.lease_duration);
            let held = !record.holder.is_empty() && record.holder != self.me;
            self.held_until = held.then(|| now + duration);
            self.last = Some(record.clone());
        }
        self.sight = Sight::Found(found);
    }

    /// Whether changes of the Lease are told to us from now on; looking is then needed only when it seems to be free.
    pub(super) fn watched(&mut self, watched: bool) {
        self.watched = watched;
    }

    /// A write goes out. Until its fate is known, nothing is: also if nobody waits for the answer.
    pub(super) fn sending(&mut self) {
        self.claimed = true;
        self.sight = Sight::Unsure;
    }

    /// A write that was sent then was done, and this is the Lease now.
    pub(super) fn wrote(&mut self, found: Found, sent: Instant, now: Instant) {
        self.renewed = (found.record.holder == self.me).then_some(sent);
        self.conflicts = 0;
        self.saw(Some(found), now, Duration::ZERO);
    }

    /// A request that was sent then failed. The next one comes `pause` after that, not after the failure: time that went by
    /// while it hung is time lost already.
    pub(super) fn failed(&mut self, failed: &Failed, sent: Instant, now: Instant, pause: Duration) {
        // What we believed to know may be what failed.
        self.sight = Sight::Unsure;
        self.conflicts += u32::from(*failed == Failed::Conflict);
        // A conflict or two are a race that somebody won. More are something else, and must not become a storm.
        let at_once = *failed == Failed::Conflict && self.conflicts <= CALM_CONFLICTS;
        self.not_before = if at_once { now } else { now.max(sent + pause) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A candidate named `me`, with the default times, and a clock.
    struct Bench {
        protocol: Protocol,
        began: Instant,
        now: Instant,
        version: u32,
    }

    fn wall() -> Timestamp {
        "2026-11-15T10:00:00Z".parse().unwrap()
    }

    fn held_by(holder: &str, renewed: i64) -> Record {
        Record {
            holder: holder.into(),
            duration: Some(Duration::from_secs(15)),
            acquired: Some(wall()),
            renewed: Some(Timestamp::from_second(wall().as_second() + renewed).unwrap()),
            transitions: 4,
        }
    }

    impl Bench {
        fn new() -> Self {
            let now = Instant::now();
            let protocol = Protocol::new("me".into(), Times::default(), now);
            Self { protocol, began: now, now, version: 0 }
        }

        fn leading() -> Self {
            let mut bench = Self::new();
            bench.sees(None);
            let write = bench.write();
            bench.writes(&write);
            assert!(bench.protocol.leads());
            bench
        }

        fn pass(&mut self, seconds: f32) {
            self.now += Duration::from_secs_f32(seconds);
        }

        fn decide(&self) -> Step {
            self.protocol.decide(self.now, wall())
        }

        fn write(&self) -> Write {
            match self.decide() {
                Step::Write(write) => write,
                other => panic!("not a write: {other:?}"),
            }
        }

        /// The seconds since the beginning until which it waits.
        fn waits_until(&self) -> f32 {
            match self.decide() {
                Step::Wait(until) => (until - self.began).as_secs_f32(),
                other => panic!("it does not wait: {other:?}"),
            }
        }

        fn found(&mut self, record: Record) -> Found {
            self.version += 1;
            Found { record, version: self.version.to_string() }
        }

        fn sees(&mut self, record: Option<Record>) {
            let found = record.map(|record| self.found(record));
            self.protocol.saw(found, self.now, 2 * SECOND);
        }

        fn writes(&mut self, write: &Write) {
            self.protocol.sending();
            let found = self.found(write.record.clone());
            self.protocol.wrote(found, self.now, self.now);
        }

        fn fails(&mut self, failed: &Failed) {
            self.protocol.failed(failed, self.now, self.now, 2 * SECOND);
        }
    }

    #[test]
    fn a_candidate_reads_first_and_creates_a_lease_that_is_not_there() {
        let mut bench = Bench::new();
        assert_eq!(bench.decide(), Step::Read);
        bench.sees(None);
        let write = bench.write();
        assert_eq!(write.replaces, None);
        assert_eq!((&*write.record.holder, write.record.transitions), ("me", 0));
        assert_eq!(write.record.acquired, write.record.renewed);
        assert!(!bench.protocol.leads(), "not before the write has worked");
        bench.writes(&write);
        assert!(bench.protocol.leads());
    }

    #[test]
    fn a_released_lease_is_taken_at_once() {
        let mut bench = Bench::new();
        bench.sees(Some(held_by("", 0)));
        let write = bench.write();
        assert_eq!(write.replaces.as_deref(), Some("1"));
        assert_eq!((&*write.record.holder, write.record.transitions), ("me", 5));
    }

    #[test]
    fn a_holder_is_gone_when_its_record_did_not_change_for_its_duration_whatever_its_clock_says() {
        for renewed in [-100_000, 0, 100_000] {
            let mut bench = Bench::new();
            bench.sees(Some(held_by("other", renewed)));
            assert_eq!(bench.waits_until(), 2.0, "it looks again");
            for _ in 0..7 {
                bench.pass(2.0);
                assert_eq!(bench.decide(), Step::Read);
                bench.sees(Some(held_by("other", renewed)));
            }
            assert_eq!(bench.waits_until(), 15.0);
            bench.pass(1.0);
            assert_eq!(bench.write().record.holder, "me");
        }
    }

    #[test]
    fn a_renewal_of_another_is_a_sign_of_life() {
        let mut bench = Bench::new();
        bench.sees(Some(held_by("other", 0)));
        bench.pass(14.0);
        bench.sees(Some(held_by("other", 2)));
        bench.protocol.watched(true);
        assert_eq!(bench.waits_until(), 29.0, "watched, it need not look before");
    }

    #[test]
    fn a_change_of_something_else_in_the_lease_is_no_sign_of_life() {
        let mut bench = Bench::new();
        bench.sees(Some(held_by("other", 0)));
        bench.pass(14.0);
        bench.sees(Some(held_by("other", 0)));
        bench.pass(1.0);
        assert_eq!(bench.write().replaces.as_deref(), Some("2"), "with the version of that change");
    }

    #[test]
    fn a_record_that_says_no_duration_gets_ours() {
        let mut bench = Bench::new();
        bench.sees(Some(Record { duration: None, ..held_by("other", 0) }));
        bench.protocol.watched(true);
        assert_eq!(bench.waits_until(), 15.0);
    }

    #[test]
    fn a_lease_that_was_deleted_is_created_anew_only_when_its_holder_must_have_noticed() {
        let mut bench = Bench::new();
        bench.sees(Some(held_by("other", 0)));
        bench.pass(2.0);
        bench.sees(None);
        bench.protocol.watched(true);
        assert_eq!(bench.waits_until(), 15.0);
        bench.pass(13.0);
        let write = bench.write();
        assert_eq!((write.replaces, write.record.transitions), (None, 5));
    }

    #[test]
    fn a_leader_renews_every_retry_period_and_keeps_when_it_acquired() {
        let mut bench = Bench::leading();
        let acquired = bench.protocol.last.clone().unwrap().acquired;
        for n in 1..4_u8 {
            assert_eq!(bench.waits_until(), 2.0 * f32::from(n));
            bench.pass(2.0);
            let write = bench.write();
            assert_eq!(write.replaces, Some(n.to_string()));
            assert_eq!((write.record.acquired, write.record.transitions), (acquired, 0));
            assert!(write.record.renewed > bench.protocol.last.clone().unwrap().renewed);
            bench.writes(&write);
        }
    }

    #[test]
    fn a_leader_whose_renewals_fail_goes_on_trying_and_is_lost_at_the_deadline() {
        let mut bench = Bench::leading();
        bench.pass(2.0);
        bench.write();
        bench.protocol.sending();
        bench.fails(&Failed::Unknown);
        assert_eq!(bench.waits_until(), 4.0);
        bench.pass(2.0);
        assert_eq!(bench.decide(), Step::Read);
        let sent = bench.now;
        bench.pass(5.0);
        bench.protocol.failed(&Failed::Unknown, sent, bench.now, 2 * SECOND);
        assert_eq!(bench.decide(), Step::Read, "at once, since it hung for so long");
        bench.fails(&Failed::Unknown);
        assert_eq!(bench.waits_until(), 10.0, "the deadline, not the next try");
        bench.pass(1.0);
        assert_eq!(bench.decide(), Step::Lost(Loss::Deadline));
    }

    #[test]
    fn the_deadline_counts_from_when_the_renewal_was_sent() {
        let mut bench = Bench::leading();
        bench.pass(2.0);
        let write = bench.write();
        let (sent, found) = (bench.now, bench.found(write.record));
        bench.pass(4.0);
        bench.protocol.wrote(found, sent, bench.now);
        assert_eq!(bench.protocol.deadline(), Some(sent + 10 * SECOND));
    }

    #[test]
    fn a_conflict_is_looked_into_at_once() {
        let mut bench = Bench::leading();
        bench.pass(2.0);
        bench.protocol.sending();
        bench.fails(&Failed::Conflict);
        assert_eq!(bench.decide(), Step::Read);
        let ours = bench.protocol.last.clone();
        bench.sees(ours);
        assert_eq!(bench.write().replaces.as_deref(), Some("2"), "somebody set a label, say");
    }

    #[test]
    fn conflicts_without_end_are_no_storm_of_requests() {
        let mut bench = Bench::leading();
        bench.pass(2.0);
        for _ in 0..CALM_CONFLICTS {
            bench.fails(&Failed::Conflict);
            assert_eq!(bench.decide(), Step::Read);
        }
        bench.fails(&Failed::Conflict);
        assert_eq!(bench.waits_until(), 4.0);
    }

    #[test]
    fn a_lease_that_is_anothers_is_lost_at_once() {
        for thief in ["thief", ""] {
            let mut bench = Bench::leading();
            bench.pass(2.0);
            bench.protocol.sending();
            bench.fails(&Failed::Conflict);
            bench.sees(Some(held_by(thief, 1)));
            assert_eq!(bench.decide(), Step::Lost(Loss::Taken(thief.into())));
        }
    }

    #[test]
    fn a_leader_creates_its_lease_anew_when_somebody_deleted_it() {
        let mut bench = Bench::leading();
        bench.pass(2.0);
        bench.protocol.sending();
        bench.fails(&Failed::Unknown);
        bench.pass(2.0);
        bench.sees(None);
        let write = bench.write();
        assert_eq!((write.replaces.clone(), write.record.transitions), (None, 0));
        bench.writes(&write);
        assert!(bench.protocol.leads());
    }

    #[test]
    fn an_acquisition_whose_answer_was_lost_leads_only_after_a_write_that_is_known_to_have_worked() {
        let mut bench = Bench::new();
        bench.sees(None);
        let write = bench.write();
        bench.protocol.sending();
        bench.pass(5.0);
        bench.fails(&Failed::Unknown);
        bench.pass(2.0);
        bench.sees(Some(write.record.clone()));
        assert!(!bench.protocol.leads());
        let again = bench.write();
        assert_eq!(again.record.transitions, write.record.transitions);
        bench.writes(&again);
        assert!(bench.protocol.leads());
    }

    #[test]
    fn a_release_empties_the_holder_and_lasts_a_second() {
        let mut bench = Bench::leading();
        let Some(Step::Write(write)) = bench.protocol.release(bench.now, wall()) else { panic!("no write") };
        assert_eq!(write.replaces.as_deref(), Some("1"));
        assert_eq!((&*write.record.holder, write.record.duration), ("", Some(SECOND)));
        assert_eq!(write.record.transitions, 0);
        bench.writes(&write);
        assert!(!bench.protocol.leads());
        assert_eq!(bench.protocol.release(bench.now, wall()), None);
    }

    #[test]
    fn who_never_claimed_a_lease_has_nothing_to_release() {
        let mut bench = Bench::new();
        assert_eq!(bench.protocol.release(bench.now, wall()), None);
        bench.fails(&Failed::Unknown);
        assert_eq!(bench.protocol.release(bench.now, wall()), None);
        bench.protocol.sending();
        bench.fails(&Failed::Unknown);
        let again = bench.now + 2 * SECOND;
        assert_eq!(bench.protocol.release(bench.now, wall()), Some(Step::Wait(again)), "not in a storm");
    }

    #[test]
    fn a_release_after_a_renewal_that_was_cut_off_looks_first() {
        let mut bench = Bench::leading();
        bench.pass(2.0);
        let write = bench.write();
        bench.protocol.sending();
        assert_eq!(bench.protocol.release(bench.now, wall()), Some(Step::Read));
        bench.sees(Some(write.record));
        assert!(matches!(bench.protocol.release(bench.now, wall()), Some(Step::Write(_))));
        bench.sees(Some(held_by("other", 0)));
        assert_eq!(bench.protocol.release(bench.now, wall()), None, "it is not ours to release");
    }
}
