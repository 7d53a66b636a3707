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

    fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    fn decide(&self) -> LeaseAction {
        self.protocol.decide(self.now, wall())
    }

    fn write(&self) -> Write {
        match self.decide() {
            LeaseAction::Write(write) => write,
            other => panic!("not a write: {other:?}"),
        }
    }

    /// The seconds since the start until which the candidate waits.
    fn waits_until(&self) -> u64 {
        match self.decide() {
            LeaseAction::Wait(until) => (until - self.began).as_secs(),
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
fn a_candidate_reads_first_and_creates_a_missing_lease() {
    let mut bench = Bench::new();
    assert_eq!(bench.decide(), LeaseAction::Read);
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
fn a_holder_expires_when_its_record_did_not_change_for_its_duration_whatever_its_clock_says() {
    for renewed in [-100_000, 0, 100_000] {
        let mut bench = Bench::new();
        bench.sees(Some(held_by("other", renewed)));
        assert_eq!(bench.waits_until(), 2, "it looks again");
        for _ in 0..7 {
            bench.pass(2);
            assert_eq!(bench.decide(), LeaseAction::Read);
            bench.sees(Some(held_by("other", renewed)));
        }
        assert_eq!(bench.waits_until(), 15);
        bench.pass(1);
        assert_eq!(bench.write().record.holder, "me");
    }
}

#[test]
fn a_renewal_by_another_holder_extends_its_lease() {
    let mut bench = Bench::new();
    bench.sees(Some(held_by("other", 0)));
    bench.pass(14);
    bench.sees(Some(held_by("other", 2)));
    bench.protocol.watched(true);
    assert_eq!(bench.waits_until(), 29, "watched, it need not look before");
}

#[test]
fn a_change_of_another_field_does_not_extend_the_lease() {
    let mut bench = Bench::new();
    bench.sees(Some(held_by("other", 0)));
    bench.pass(14);
    bench.sees(Some(held_by("other", 0)));
    bench.pass(1);
    assert_eq!(bench.write().replaces.as_deref(), Some("2"), "with the version of that change");
}

#[test]
fn a_record_without_a_duration_gets_our_own() {
    let mut bench = Bench::new();
    bench.sees(Some(Record { duration: None, ..held_by("other", 0) }));
    bench.protocol.watched(true);
    assert_eq!(bench.waits_until(), 15);
}

#[test]
fn a_deleted_lease_is_recreated_only_when_its_holder_must_have_noticed() {
    let mut bench = Bench::new();
    bench.sees(Some(held_by("other", 0)));
    bench.pass(2);
    bench.sees(None);
    bench.protocol.watched(true);
    assert_eq!(bench.waits_until(), 15);
    bench.pass(13);
    let write = bench.write();
    assert_eq!((write.replaces, write.record.transitions), (None, 5));
}

#[test]
fn a_leader_renews_every_retry_period_and_keeps_when_it_acquired() {
    let mut bench = Bench::leading();
    let acquired = bench.protocol.last.clone().unwrap().acquired;
    for n in 1..4_u8 {
        assert_eq!(bench.waits_until(), 2 * u64::from(n));
        bench.pass(2);
        let write = bench.write();
        assert_eq!(write.replaces, Some(n.to_string()));
        assert_eq!((write.record.acquired, write.record.transitions), (acquired, 0));
        assert!(write.record.renewed > bench.protocol.last.clone().unwrap().renewed);
        bench.writes(&write);
    }
}

#[test]
fn a_leader_whose_renewals_fail_retries_and_loses_the_lease_at_the_deadline() {
    let mut bench = Bench::leading();
    bench.pass(2);
    bench.write();
    bench.protocol.sending();
    bench.fails(&Failed::Unknown);
    assert_eq!(bench.waits_until(), 4);
    bench.pass(2);
    assert_eq!(bench.decide(), LeaseAction::Read);
    let sent = bench.now;
    bench.pass(5);
    bench.protocol.failed(&Failed::Unknown, sent, bench.now, 2 * SECOND);
    assert_eq!(bench.decide(), LeaseAction::Read, "at once, since it hung for so long");
    bench.fails(&Failed::Unknown);
    assert_eq!(bench.waits_until(), 10, "the deadline, not the next try");
    bench.pass(1);
    assert_eq!(bench.decide(), LeaseAction::Lost(Loss::Deadline));
}

#[test]
fn the_deadline_counts_from_when_the_renewal_was_sent() {
    let mut bench = Bench::leading();
    bench.pass(2);
    let write = bench.write();
    let (sent, found) = (bench.now, bench.found(write.record));
    bench.pass(4);
    bench.protocol.wrote(found, sent, bench.now);
    assert_eq!(bench.protocol.deadline(), Some(sent + 10 * SECOND));
}

#[test]
fn a_conflict_is_followed_by_a_read_at_once() {
    let mut bench = Bench::leading();
    bench.pass(2);
    bench.protocol.sending();
    bench.fails(&Failed::Conflict);
    assert_eq!(bench.decide(), LeaseAction::Read);
    let ours = bench.protocol.last.clone();
    bench.sees(ours);
    assert_eq!(bench.write().replaces.as_deref(), Some("2"), "somebody set a label, say");
}

#[test]
fn endless_conflicts_do_not_cause_a_storm_of_requests() {
    let mut bench = Bench::leading();
    bench.pass(2);
    for _ in 0..CALM_CONFLICTS {
        bench.fails(&Failed::Conflict);
        assert_eq!(bench.decide(), LeaseAction::Read);
    }
    bench.fails(&Failed::Conflict);
    assert_eq!(bench.waits_until(), 4);
}

#[test]
fn a_lease_with_another_holder_is_lost_at_once() {
    for thief in ["thief", ""] {
        let mut bench = Bench::leading();
        bench.pass(2);
        bench.protocol.sending();
        bench.fails(&Failed::Conflict);
        bench.sees(Some(held_by(thief, 1)));
        assert_eq!(bench.decide(), LeaseAction::Lost(Loss::Taken(thief.into())));
    }
}

#[test]
fn a_leader_recreates_its_deleted_lease() {
    let mut bench = Bench::leading();
    bench.pass(2);
    bench.protocol.sending();
    bench.fails(&Failed::Unknown);
    bench.pass(2);
    bench.sees(None);
    let write = bench.write();
    assert_eq!((write.replaces.clone(), write.record.transitions), (None, 0));
    bench.writes(&write);
    assert!(bench.protocol.leads());
}

#[test]
fn a_candidate_whose_acquisition_response_was_lost_leads_only_after_a_confirmed_write() {
    let mut bench = Bench::new();
    bench.sees(None);
    let write = bench.write();
    bench.protocol.sending();
    bench.pass(5);
    bench.fails(&Failed::Unknown);
    bench.pass(2);
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
    let Some(LeaseAction::Write(write)) = bench.protocol.release(bench.now, wall()) else {
        panic!("no write")
    };
    assert_eq!(write.replaces.as_deref(), Some("1"));
    assert_eq!((&*write.record.holder, write.record.duration), ("", Some(SECOND)));
    assert_eq!(write.record.transitions, 0);
    bench.writes(&write);
    assert!(!bench.protocol.leads());
    assert_eq!(bench.protocol.release(bench.now, wall()), None);
}

#[test]
fn a_candidate_that_never_held_the_lease_has_nothing_to_release() {
    let mut bench = Bench::new();
    assert_eq!(bench.protocol.release(bench.now, wall()), None);
    bench.fails(&Failed::Unknown);
    assert_eq!(bench.protocol.release(bench.now, wall()), None);
    bench.protocol.sending();
    bench.fails(&Failed::Unknown);
    let again = bench.now + 2 * SECOND;
    assert_eq!(bench.protocol.release(bench.now, wall()), Some(LeaseAction::Wait(again)), "not in a storm");
}

#[test]
fn a_release_after_a_cancelled_renewal_reads_the_lease_first() {
    let mut bench = Bench::leading();
    bench.pass(2);
    let write = bench.write();
    bench.protocol.sending();
    assert_eq!(bench.protocol.release(bench.now, wall()), Some(LeaseAction::Read));
    bench.sees(Some(write.record));
    assert!(matches!(bench.protocol.release(bench.now, wall()), Some(LeaseAction::Write(_))));
    bench.sees(Some(held_by("other", 0)));
    assert_eq!(bench.protocol.release(bench.now, wall()), None, "it is not ours to release");
}
