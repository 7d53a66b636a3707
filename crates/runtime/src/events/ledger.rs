//! What to write next: a pure account of what was recorded.
//!
//! Promises: equal events within the window are one Event object with a count; one object is written about no more than
//! its [rate](Rate) allows; a count that waits is never lost, only late; memory is bounded.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::bucket::{Bucket, Rate};
use super::event::{Event, Regarding};
use crate::queue::Backoff;

/// How often a write is tried, and how long between.
const ATTEMPTS: u32 = 8;
const RETRY: Backoff =
    Backoff { base: Duration::from_millis(500), cap: Duration::from_secs(30), jitter: 0.2 };

/// How events are gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// A series ends when nothing was added for so long.
    pub(super) window: Duration,
    /// The longest pause between two writes of one series.
    pub(super) pause: Duration,
    pub(super) rate: Rate,
    /// How many series, and how many objects, are remembered.
    pub(super) most: usize,
}

impl Rules {
    /// The pause after so many writes of one series. It begins short and doubles: what happens twice is told at once, and nothing is
    /// written any more when all has come to rest; what goes on and on is told now and then.
    fn pause_after(&self, writes: u32) -> Duration {
        (self.pause / 32).saturating_mul(1 << writes.saturating_sub(1).min(5)).min(self.pause)
    }
}

/// What became of a recorded event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// It will be written.
    New,
    /// It is counted in a series.
    Repeated,
    /// Dropped: its object was written about too much.
    Limited,
    /// Dropped: too much waits to be written.
    Full,
}

/// A write to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) series: u64,
    pub(super) event: Arc<Event>,
    /// Whether there is an Event object already.
    pub(super) exists: bool,
    /// How often the object was made anew: part of its name.
    pub(super) edition: u32,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    pub(super) count: u32,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// The Event object has expired meanwhile.
    Gone,
    /// Perhaps later.
    Failed,
    /// Never.
    Refused,
}

#[derive(Debug)]
struct Series {
    event: Arc<Event>,
    first: Timestamp,
    last: Timestamp,
    count: u32,
    /// How many of them the Event object says; 0: there is none.
    written: u32,
    /// How often it was written.
    writes: u32,
    edition: u32,
    attempts: u32,
    touched: Instant,
    not_before: Instant,
    turn: Turn,
}

/// Where a series stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Nothing to write.
    Idle,
    /// In the schedule.
    At(Instant),
    /// A write is underway.
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
        }
    }

    /// Enters an event.
    pub(super) fn record(&mut self, event: Event, at: Timestamp, now: Instant) -> Entry {
        if let Some(&id) = self.known.get(&event)
            && !self.forget_if_over(id, now)
            && let Some(series) = self.series.get_mut(&id)
        {
            series.count = series.count.saturating_add(1);
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
        self.plan(id, now);
        Entry::New
    }

    /// The next write, if one is due. Tell its [outcome](Self::done).
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
            // A creation took its token when it was recorded.
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

    /// When the next write is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.schedule.first().map(|(due, _)| *due)
    }

    /// What became of a write; the answer is how many recorded events are lost by it.
    pub(super) fn done(&mut self, write: &Write, outcome: Outcome, now: Instant) -> u32 {
        let Some(series) = self.series.get_mut(&write.series) else { return 0 };
        series.turn = Turn::Idle;
        match outcome {
            Outcome::Done => {
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
            Outcome::Gone => {
                series.written = 0;
                series.edition += 1;
                self.plan(write.series, now);
                0
            }
            Outcome::Failed if series.attempts + 1 < ATTEMPTS => {
                series.attempts += 1;
                // Any number that differs between series.
                let dice = write.series.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let due = now + RETRY.delay(series.attempts, dice);
                self.plan(write.series, due);
                0
            }
            Outcome::Failed | Outcome::Refused => {
                let lost = series.count - series.written;
                self.forget(write.series);
                lost
            }
        }
    }

    /// Nothing is underway: a write that was, and was cut off, is due again.
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

    /// This is the end: everything that waits is due, and rates do not count any more. Failures still have their pauses.
    pub(super) fn flush(&mut self, now: Instant) {
        self.flushing = true;
        for (_, id) in std::mem::take(&mut self.schedule) {
            if let Some(series) = self.series.get_mut(&id) {
                series.turn = Turn::Idle;
            }
            self.plan(id, now);
        }
    }

    /// How many recorded events are not written yet.
    pub(super) fn waiting(&self) -> u64 {
        self.series.values().map(|series| u64::from(series.count - series.written)).sum()
    }

    /// Forgets what is over.
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
            self.known.remove(&series.event);
            if let Turn::At(due) = series.turn {
                self.schedule.remove(&(due, id));
            }
        }
    }
}

#[cfg(test)]
mod tests;
