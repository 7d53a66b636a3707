//! The ledger of recorded events: decides, without I/O, which Event object is written next.
//!
//! Promises: equal events within the window are one Event object with a count; writes about one object are
//! limited by its [rate](Rate); a count that waits is delayed, never lost; memory is bounded.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::bucket::{Bucket, Rate};
use super::event::{Event, Regarding};
use crate::queue::Backoff;

/// The number of attempts of a write, and the delays between them.
const ATTEMPTS: u32 = 8;
const RETRY: Backoff =
    Backoff { base: Duration::from_millis(500), cap: Duration::from_secs(30), jitter: 0.2 };

/// Limits of series and their writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// A series ends when no equal event was recorded for this long.
    pub(super) window: Duration,
    /// The longest delay between two writes of one series.
    pub(super) pause: Duration,
    pub(super) rate: Rate,
    /// The maximum number of series, and of objects, that are remembered.
    pub(super) most: usize,
}

impl Rules {
    /// Returns the delay after this many writes of one series. It starts short and doubles: a second
    /// occurrence is written soon, nothing is written after events stop, and events that go on are written
    /// from time to time.
    fn pause_after(&self, writes: u32) -> Duration {
        (self.pause / 32).saturating_mul(1 << writes.saturating_sub(1).min(5)).min(self.pause)
    }
}

/// The result of recording an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The event starts a series and will be written.
    New,
    /// The event is counted in an existing series.
    Repeated,
    /// Dropped: the rate limit of its object is exceeded.
    Limited,
    /// Dropped: too many events wait to be written.
    Full,
}

/// A write of an Event object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) series: u64,
    pub(super) event: Arc<Event>,
    /// True if the Event object exists already.
    pub(super) exists: bool,
    /// The number of times the Event object was recreated: part of its name.
    pub(super) edition: u32,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    pub(super) count: u32,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteResult {
    Done,
    /// The Event object has expired meanwhile.
    Gone,
    /// The write may succeed later.
    Failed,
    /// The write will never succeed.
    Refused,
}

#[derive(Debug)]
struct Series {
    event: Arc<Event>,
    first: Timestamp,
    last: Timestamp,
    count: u32,
    /// The count in the Event object; 0 if there is none.
    written: u32,
    /// The number of writes so far.
    writes: u32,
    edition: u32,
    attempts: u32,
    touched: Instant,
    not_before: Instant,
    turn: Turn,
}

/// The schedule of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Nothing to write.
    Idle,
    /// A write is scheduled.
    At(Instant),
    /// A write is in flight.
    Now,
}

#[derive(Debug)]
pub(super) struct Ledger {
    rules: Rules,
    known: HashMap<Arc<Event>, u64>,
    series: HashMap<u64, Series>,
    schedule: BTreeSet<(Instant, u64)>,
    buckets: HashMap<Regarding, Bucket>,
    next: u64,
    flushing: bool,
    /// The number of recorded events that are not written yet, over all series.
    waiting: u64,
}

impl Ledger {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            known: HashMap::new(),
            series: HashMap::new(),
            schedule: BTreeSet::new(),
            buckets: HashMap::new(),
            next: 0,
            flushing: false,
            waiting: 0,
        }
    }

    /// Records an event.
    pub(super) fn record(&mut self, event: Event, at: Timestamp, now: Instant) -> Entry {
        if let Some(&id) = self.known.get(&event)
            && !self.forget_if_over(id, now)
            && let Some(series) = self.series.get_mut(&id)
        {
            if let Some(count) = series.count.checked_add(1) {
                series.count = count;
                self.waiting += 1;
            }
            series.last = at;
            series.touched = now;
            let due = series.not_before.max(now);
            self.plan(id, due);
            return Entry::Repeated;
        }
        if self.series.len() >= self.rules.most || self.buckets.len() >= self.rules.most {
            self.sweep(now);
        }
        if self.series.len() >= self.rules.most || self.buckets.len() >= self.rules.most {
            return Entry::Full;
        }
        if self.bucket(&event.regarding, now).is_err() {
            return Entry::Limited;
        }
        let (id, event) = (self.next, Arc::new(event));
        self.next += 1;
        self.known.insert(Arc::clone(&event), id);
        let series = Series {
            event,
            first: at,
            last: at,
            count: 1,
            written: 0,
            writes: 0,
            edition: 0,
            attempts: 0,
            touched: now,
            not_before: now,
            turn: Turn::Idle,
        };
        self.series.insert(id, series);
        self.waiting += 1;
        self.plan(id, now);
        Entry::New
    }

    /// Returns the next write, if one is due. Report its [result](Self::done).
    pub(super) fn next(&mut self, now: Instant) -> Option<Write> {
        while let Some(&(due, id)) = self.schedule.first() {
            if due > now {
                return None;
            }
            self.schedule.pop_first();
            let Some(series) = self.series.get_mut(&id) else { continue };
            series.turn = Turn::Idle;
            let exists = series.written > 0;
            let event = Arc::clone(&series.event);
            // A creation took its token when the event was recorded.
            if exists
                && !self.flushing
                && let Err(later) = self.bucket(&event.regarding, now)
            {
                self.plan(id, later);
                continue;
            }
            let Some(series) = self.series.get_mut(&id) else { continue };
            series.turn = Turn::Now;
            return Some(Write {
                series: id,
                event,
                exists,
                edition: series.edition,
                first: series.first,
                last: series.last,
                count: series.count,
            });
        }
        None
    }

    /// The time at which the next write is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.schedule.first().map(|(due, _)| *due)
    }

    /// Reports the result of a write; returns the number of recorded events that are lost by it.
    pub(super) fn done(&mut self, write: &Write, outcome: WriteResult, now: Instant) -> u32 {
        let Some(series) = self.series.get_mut(&write.series) else { return 0 };
        series.turn = Turn::Idle;
        match outcome {
            WriteResult::Done => {
                self.waiting -= u64::from(write.count - series.written);
                series.written = write.count;
                series.attempts = 0;
                series.writes = series.writes.saturating_add(1);
                series.not_before = now + self.rules.pause_after(series.writes);
                if series.count > series.written {
                    let due = series.not_before;
                    self.plan(write.series, due);
                }
                0
            }
            WriteResult::Gone => {
                self.waiting += u64::from(series.written);
                series.written = 0;
                series.edition += 1;
                self.plan(write.series, now);
                0
            }
            WriteResult::Failed if series.attempts + 1 < ATTEMPTS => {
                series.attempts += 1;
                // Any number that differs between series.
                let dice = write.series.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let due = now + RETRY.delay(series.attempts, dice);
                self.plan(write.series, due);
                0
            }
            WriteResult::Failed | WriteResult::Refused => {
                let lost = series.count - series.written;
                self.forget(write.series);
                lost
            }
        }
    }

    /// Makes a write that was cancelled in flight due again.
    pub(super) fn recover(&mut self, now: Instant) {
        let cut_off: Vec<u64> =
            self.series.iter().filter(|(_, series)| series.turn == Turn::Now).map(|(id, _)| *id).collect();
        for id in cut_off {
            if let Some(series) = self.series.get_mut(&id) {
                series.turn = Turn::Idle;
            }
            self.plan(id, now);
        }
    }

    /// Makes everything that waits due and disables the rate limits, for the end of the process. Delays after
    /// failures still apply.
    pub(super) fn flush(&mut self, now: Instant) {
        self.flushing = true;
        for (_, id) in std::mem::take(&mut self.schedule) {
            if let Some(series) = self.series.get_mut(&id) {
                series.turn = Turn::Idle;
            }
            self.plan(id, now);
        }
    }

    /// The number of recorded events that are not written yet.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Forgets series that have ended and buckets that are full.
    pub(super) fn sweep(&mut self, now: Instant) {
        let ids: Vec<u64> = self.series.keys().copied().collect();
        for id in ids {
            self.forget_if_over(id, now);
        }
        let rate = self.rules.rate;
        self.buckets.retain(|_, bucket| !bucket.is_full(rate, now));
    }

    fn bucket(&mut self, regarding: &Regarding, now: Instant) -> Result<(), Instant> {
        let rate = self.rules.rate;
        if !self.buckets.contains_key(regarding) {
            self.buckets.insert(regarding.clone(), Bucket::full(rate, now));
        }
        self.buckets.get_mut(regarding).map_or(Ok(()), |bucket| bucket.take(rate, now))
    }

    fn plan(&mut self, id: u64, due: Instant) {
        if let Some(series) = self.series.get_mut(&id)
            && series.turn == Turn::Idle
        {
            series.turn = Turn::At(due);
            self.schedule.insert((due, id));
        }
    }

    fn forget_if_over(&mut self, id: u64, now: Instant) -> bool {
        let over = self.series.get(&id).is_some_and(|series| {
            series.turn == Turn::Idle && now.saturating_duration_since(series.touched) >= self.rules.window
        });
        if over {
            self.forget(id);
        }
        over
    }

    fn forget(&mut self, id: u64) {
        if let Some(series) = self.series.remove(&id) {
            self.waiting -= u64::from(series.count - series.written);
            self.known.remove(&series.event);
            if let Turn::At(due) = series.turn {
                self.schedule.remove(&(due, id));
            }
        }
    }
}

#[cfg(test)]
mod tests;
