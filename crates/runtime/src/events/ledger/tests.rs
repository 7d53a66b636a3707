use super::*;
use crate::events::EventType;
use crate::key::ObjectKey;
use crate::meta::Uid;
use crate::resource::ResourceType;
use k8s_openapi::api::core::v1::ConfigMap;

const SECOND: Duration = Duration::from_secs(1);

fn rules() -> Rules {
    Rules { window: 360 * SECOND, pause: 32 * SECOND, rate: Rate { burst: 4, refill: 300 * SECOND }, most: 5 }
}

fn regarding(name: &str) -> Regarding {
    let key = ObjectKey::namespaced("shop", name);
    Regarding::new(&ResourceType::of::<ConfigMap>(), &key, Uid::default())
}

fn event(object: &str, note: &str) -> Event {
    Event::new(&regarding(object), EventType::Normal, "Reason", "Act", note)
}

/// A ledger and a clock.
struct Bench {
    ledger: Ledger,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        Self { ledger: Ledger::new(rules()), now: Instant::now() }
    }

    fn record(&mut self, object: &str, note: &str) -> Entry {
        let entry = self.ledger.record(event(object, note), Timestamp::UNIX_EPOCH, self.now);
        assert_eq!(self.ledger.waiting(), self.counted());
        entry
    }

    fn next(&mut self) -> Option<Write> {
        assert_eq!(self.ledger.waiting(), self.counted());
        self.ledger.next(self.now)
    }

    /// Takes the next write; returns whether the Event object exists already, and the count.
    fn write(&mut self) -> Option<(bool, u32)> {
        let write = self.next()?;
        assert_eq!(self.ledger.done(&write, WriteResult::Done, self.now), 0);
        Some((write.exists, write.count))
    }

    /// The number of events that wait, counted series by series.
    fn counted(&self) -> u64 {
        self.ledger.series.values().map(|series| u64::from(series.count - series.written)).sum()
    }

    fn pass(&mut self, seconds: u32) {
        self.now += SECOND * seconds;
    }
}

#[test]
fn equal_events_become_one_object_whose_count_is_written_from_time_to_time() {
    let mut bench = Bench::new();
    assert_eq!(bench.record("a", "hello"), Entry::New);
    assert_eq!(bench.write(), Some((false, 1)));
    for _ in 0..10 {
        assert_eq!(bench.record("a", "hello"), Entry::Repeated);
    }
    assert_eq!(bench.write(), None);
    assert_eq!(bench.ledger.due(), Some(bench.now + SECOND));
    bench.pass(1);
    assert_eq!(bench.write(), Some((true, 11)));
    assert_eq!((bench.write(), bench.ledger.due()), (None, None));
    bench.pass(100);
    bench.record("a", "hello");
    assert_eq!(bench.write(), Some((true, 12)), "after a pause, the next one is written at once");
}

#[test]
fn the_longer_a_series_goes_on_the_less_often_it_is_written() {
    let rules = Bench::new().ledger.rules;
    let pauses: Vec<u64> = (1..=8).map(|writes| rules.pause_after(writes).as_secs()).collect();
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 32, 32]);
}

#[test]
fn a_different_note_object_or_reason_starts_another_series() {
    let mut bench = Bench::new();
    bench.record("a", "hello");
    assert_eq!(bench.record("a", "world"), Entry::New);
    assert_eq!(bench.record("b", "hello"), Entry::New);
    let related = event("a", "hello").related(&regarding("b"));
    assert_eq!(bench.ledger.record(related, Timestamp::UNIX_EPOCH, bench.now), Entry::New);
    let writes = std::iter::from_fn(|| bench.write()).collect::<Vec<_>>();
    assert_eq!(writes, [(false, 1); 4]);
}

#[test]
fn an_event_repeated_before_its_first_write_is_created_with_its_count() {
    let mut bench = Bench::new();
    bench.record("a", "hello");
    bench.record("a", "hello");
    let write = bench.next().unwrap();
    assert_eq!((write.exists, write.count), (false, 2));
    bench.record("a", "hello");
    assert_eq!(bench.next(), None, "one write of a series at a time");
    bench.ledger.done(&write, WriteResult::Done, bench.now);
    bench.pass(30);
    assert_eq!(bench.write(), Some((true, 3)));
}

#[test]
fn a_series_ends_after_a_window_without_an_event() {
    let mut bench = Bench::new();
    bench.record("a", "hello");
    bench.write();
    bench.pass(359);
    assert_eq!(bench.record("a", "hello"), Entry::Repeated);
    bench.write();
    bench.pass(360);
    assert_eq!(bench.record("a", "hello"), Entry::New);
    assert_eq!(bench.write(), Some((false, 1)));
}

#[test]
fn event_writes_per_object_are_limited_and_counts_are_delayed() {
    let mut bench = Bench::new();
    for note in ["1", "2", "3"] {
        bench.record("a", note);
        bench.write();
    }
    bench.record("a", "3");
    bench.pass(30);
    assert_eq!(bench.write(), Some((true, 2)), "the fourth of a burst of four");
    assert_eq!(bench.record("a", "4"), Entry::Limited);
    assert_eq!(bench.record("b", "4"), Entry::New, "others are not held up");
    bench.write();
    for _ in 0..5 {
        bench.record("a", "3");
    }
    bench.pass(30);
    assert_eq!(bench.write(), None);
    bench.pass(240);
    assert_eq!(bench.write(), Some((true, 7)), "late, and none is lost");
}

#[test]
fn an_expired_event_object_is_recreated_with_its_count() {
    let mut bench = Bench::new();
    bench.record("a", "hello");
    bench.write();
    bench.pass(60);
    bench.record("a", "hello");
    let write = bench.next().unwrap();
    assert!(write.exists);
    bench.ledger.done(&write, WriteResult::Gone, bench.now);
    let again = bench.next().unwrap();
    assert_eq!((again.exists, again.count, again.edition), (false, 2, write.edition + 1));
}

#[test]
fn a_failed_event_write_is_retried_and_lost_events_are_counted() {
    let mut bench = Bench::new();
    bench.record("a", "hello");
    bench.record("a", "hello");
    let mut attempts = 0;
    let lost = loop {
        let write = bench.next().unwrap();
        attempts += 1;
        let lost = bench.ledger.done(&write, WriteResult::Failed, bench.now);
        if lost > 0 {
            break lost;
        }
        assert_eq!(bench.next(), None, "not at once");
        bench.now = bench.ledger.due().unwrap();
    };
    assert_eq!((attempts, lost, bench.ledger.waiting()), (ATTEMPTS, 2, 0));

    bench.record("a", "hello");
    let write = bench.next().unwrap();
    assert_eq!(
        bench.ledger.done(&write, WriteResult::Refused, bench.now),
        1,
        "at once where it makes no sense"
    );
}

#[test]
fn the_ledger_is_bounded_and_ended_series_make_room() {
    let mut bench = Bench::new();
    for object in ["a", "b", "c", "d", "e"] {
        assert_eq!(bench.record(object, "hello"), Entry::New);
    }
    assert_eq!(bench.record("f", "hello"), Entry::Full);
    while bench.write().is_some() {}
    assert_eq!(bench.record("f", "hello"), Entry::Full, "within the window, they may be repeated");
    bench.pass(360);
    assert_eq!(bench.record("f", "hello"), Entry::New);
    assert_eq!((bench.ledger.series.len(), bench.ledger.known.len(), bench.ledger.buckets.len()), (1, 1, 1));
}

#[test]
fn a_cancelled_event_write_is_repeated() {
    let mut bench = Bench::new();
    bench.record("a", "hello");
    let cut_off = bench.next();
    assert!(cut_off.is_some() && bench.next().is_none());
    bench.ledger.recover(bench.now);
    assert_eq!(bench.next(), cut_off);
}

#[test]
fn a_flush_makes_all_event_writes_due() {
    let mut bench = Bench::new();
    for note in ["1", "2", "3", "4"] {
        bench.record("a", note);
        bench.write();
        bench.record("a", note);
    }
    assert_eq!((bench.write(), bench.ledger.waiting()), (None, 4));
    bench.ledger.flush(bench.now);
    let writes = std::iter::from_fn(|| bench.write()).collect::<Vec<_>>();
    assert_eq!((writes, bench.ledger.waiting()), (vec![(true, 2); 4], 0));
}
