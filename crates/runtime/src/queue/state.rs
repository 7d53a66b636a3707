//! The rules of the queue, without a clock, a lock or an await.
//!
//! Time is a [`Duration`] since the queue began and is passed to every call; it must not run backwards.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use hashbrown::HashMap;

use super::{Add, Backoff, Next, Priority, Stats};

/// A key that was handed out, with its priority and failures.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Handed<K> {
    pub(super) key: K,
    pub(super) priority: Priority,
    pub(super) failures: u32,
}

#[derive(Debug)]
pub(super) struct QueueState<K> {
    /// Every key that is ready, delayed, running or has failed.
    entries: HashMap<K, Entry>,
    /// Keys to hand out, in that order. A running key is not in here, even if it was added again.
    ready: BTreeMap<Rank, K>,
    timers: BTreeMap<Alarm, K>,
    backoff: Backoff,
    /// A sequence number, so that no two entries compare equal.
    sequence: u64,
    running: Vec<Run>,
    stats: Stats,
    closed: bool,
}

/// The position of a key in the queue: higher priorities first, then first come, first served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    priority: Reverse<Priority>,
    sequence: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Alarm {
    at: Duration,
    sequence: u64,
}

#[derive(Debug, Default)]
struct Entry {
    wanted: Option<Wanted>,
    /// The timer of a delayed add. It always fires.
    appointment: Option<Timer>,
    /// The timer of the key's own last run. It is dropped if the key runs earlier: the next run sets it
    /// again.
    retry: Option<Timer>,
    running: Option<Run>,
    failures: u32,
    /// The end of the backoff after the last counted failure.
    patience: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
struct Wanted {
    rank: Rank,
    since: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    alarm: Alarm,
    priority: Priority,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    sequence: u64,
    since: Duration,
    priority: Priority,
}

impl Entry {
    fn is_empty(&self) -> bool {
        self.wanted.is_none()
            && self.appointment.is_none()
            && self.retry.is_none()
            && self.running.is_none()
            && self.failures == 0
    }
}

impl<K: Clone + Eq + Hash> QueueState<K> {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self {
            entries: HashMap::new(),
            ready: BTreeMap::new(),
            timers: BTreeMap::new(),
            backoff,
            sequence: 0,
            running: Vec::new(),
            stats: Stats::default(),
            closed: false,
        }
    }

    /// Adds a key. Returns true if a sleeping worker should wake.
    pub(super) fn add(&mut self, key: K, add: Add, now: Duration) -> bool {
        if self.closed {
            return false;
        }
        if add.fresh {
            self.forgive(&key);
        }
        if add.after.is_zero() {
            self.want(key, add.priority, now)
        } else {
            self.stats.retries += 1;
            self.appoint(key, add.priority, now.saturating_add(add.after))
        }
    }

    /// Hands out the next key, if one is ready.
    pub(super) fn take(&mut self, now: Duration) -> Option<Handed<K>> {
        if self.closed {
            return None;
        }
        self.ring(now);
        let (rank, key) = self.ready.pop_first()?;
        let sequence = self.next();
        let Some(entry) = self.entries.get_mut(&key) else {
            debug_assert!(false, "a ready key has no entry");
            return None;
        };
        if let Some(wanted) = entry.wanted.take() {
            self.stats.queue_time.observe(now.saturating_sub(wanted.since));
        }
        let priority = rank.priority.0;
        let run = Run { sequence, since: now, priority };
        entry.running = Some(run);
        self.running.push(run);
        self.stats.depth.leave(priority);
        Some(Handed { key, priority, failures: entry.failures })
    }

    /// Ends the run of a key that was handed out. Returns true if a sleeping worker should wake.
    pub(super) fn finish(&mut self, key: &K, next: Next, now: Duration) -> bool {
        let Some(run) = self.entries.get_mut(key).and_then(|entry| entry.running.take()) else {
            debug_assert!(false, "a key was finished that was not running");
            return false;
        };
        self.running.retain(|other| other.sequence != run.sequence);
        self.stats.work_time.observe(now.saturating_sub(run.since));
        if self.closed {
            self.entries.remove(key);
            return false;
        }
        let again = match next {
            Next::Release => Some(now),
            Next::Forget => None,
            Next::After(delay) => Some(now.saturating_add(delay)),
            Next::Retry { at_most } => Some(self.retry_at(key, run, at_most, now)),
        };
        if matches!(next, Next::Forget | Next::After(_)) {
            self.forgive(key);
        }
        if matches!(next, Next::After(_) | Next::Retry { .. }) {
            self.stats.retries += 1;
        }
        let wake = self.resume(key, run.priority, again, now);
        self.tidy(key);
        wake
    }

    /// Returns the time at which the next timer fires.
    pub(super) fn next_alarm(&self) -> Option<Duration> {
        self.timers.first_key_value().map(|(alarm, _)| alarm.at)
    }

    /// Returns true if another worker would find something to do, now or later.
    pub(super) fn has_more(&self) -> bool {
        !self.ready.is_empty() || !self.timers.is_empty()
    }

    /// Drops everything that is not running and ignores later adds.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.ready.clear();
        self.timers.clear();
        self.stats.depth.clear();
        self.entries.retain(|_, entry| entry.running.is_some());
        for entry in self.entries.values_mut() {
            *entry = Entry { running: entry.running, ..Entry::default() };
        }
        self.entries.shrink_to_fit();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Returns the number of keys in progress.
    pub(super) fn in_flight(&self) -> usize {
        self.running.len()
    }

    /// Returns the number of ready keys, including timers that fired by `now`.
    pub(super) fn depth(&mut self, now: Duration) -> usize {
        self.ring(now);
        self.stats.depth.total()
    }

    pub(super) fn stats(&mut self, now: Duration) -> Stats {
        self.ring(now);
        let ages = self.running.iter().map(|run| now.saturating_sub(run.since));
        Stats {
            unfinished: ages.clone().sum(),
            longest_running: ages.max().unwrap_or_default(),
            ..self.stats.clone()
        }
    }

    fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Makes a key ready, or marks a running key to run again.
    fn want(&mut self, key: K, priority: Priority, now: Duration) -> bool {
        let sequence = self.next();
        let entry = self.entries.entry(key.clone()).or_default();
        // The run that is requested now replaces the retry and inherits its priority.
        let priority = match entry.retry.take() {
            Some(retry) => {
                self.timers.remove(&retry.alarm);
                priority.max(retry.priority)
            }
            None => priority,
        };
        let rank = Rank { priority: Reverse(priority), sequence };
        match &mut entry.wanted {
            Some(wanted) if wanted.rank.priority.0 >= priority => return false,
            Some(wanted) => {
                self.stats.depth.leave(wanted.rank.priority.0);
                self.ready.remove(&wanted.rank);
                wanted.rank = rank;
            }
            none => {
                self.stats.adds += 1;
                *none = Some(Wanted { rank, since: now });
            }
        }
        self.stats.depth.enter(priority);
        let idle = entry.running.is_none();
        if idle {
            self.ready.insert(rank, key);
        }
        idle
    }

    /// Sets the timer of a delayed add: the earliest wins, with the highest priority.
    fn appoint(&mut self, key: K, priority: Priority, at: Duration) -> bool {
        let alarm = Alarm { at, sequence: self.next() };
        let entry = self.entries.entry(key.clone()).or_default();
        match &mut entry.appointment {
            Some(timer) => {
                timer.priority = timer.priority.max(priority);
                if timer.alarm.at <= at {
                    return false;
                }
                self.timers.remove(&timer.alarm);
                timer.alarm = alarm;
            }
            none => *none = Some(Timer { alarm, priority }),
        }
        self.set(alarm, key)
    }

    /// Returns the time to retry a key whose run failed, and counts the failure if it counts.
    fn retry_at(&mut self, key: &K, run: Run, at_most: Option<Duration>, now: Duration) -> Duration {
        let hasher = self.entries.hasher().clone();
        let Some(entry) = self.entries.get_mut(key) else {
            return now;
        };
        match entry.patience {
            // The key ran before its backoff had ended, because something changed. That failure does not tell
            // anything about the pending retry: it is neither counted nor does it move the retry.
            Some(patience) if run.since < patience => patience.max(now),
            _ => {
                entry.failures = entry.failures.saturating_add(1);
                let delay = self.backoff.delay(entry.failures, hasher.hash_one((key, entry.failures)));
                let at = now.saturating_add(at_most.map_or(delay, |limit| delay.min(limit)));
                entry.patience = Some(at);
                at
            }
        }
    }

    fn forgive(&mut self, key: &K) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.failures = 0;
            entry.patience = None;
        }
    }

    /// After a run: queues a key that was added meanwhile, or else sets its own timer.
    fn resume(&mut self, key: &K, priority: Priority, again: Option<Duration>, now: Duration) -> bool {
        let Some(entry) = self.entries.get_mut(key) else {
            return false;
        };
        match (entry.wanted, again) {
            (None, None) => false,
            (None, Some(at)) if at > now => {
                self.sequence += 1;
                let alarm = Alarm { at, sequence: self.sequence };
                entry.retry = Some(Timer { alarm, priority });
                self.set(alarm, key.clone())
            }
            (None, Some(_)) => self.want(key.clone(), priority, now),
            (Some(wanted), again) => {
                self.ready.insert(wanted.rank, key.clone());
                if again.is_some() {
                    // The coming run replaces the retry, and must have at least its priority.
                    self.want(key.clone(), priority, now);
                }
                true
            }
        }
    }

    fn set(&mut self, alarm: Alarm, key: K) -> bool {
        self.timers.insert(alarm, key);
        self.timers.first_key_value().is_some_and(|(first, _)| *first == alarm)
    }

    /// Makes keys ready whose timers have fired, in the order of their times.
    fn ring(&mut self, now: Duration) {
        while let Some(first) = self.timers.first_entry() {
            if first.key().at > now {
                return;
            }
            let (alarm, key) = first.remove_entry();
            let Some(entry) = self.entries.get_mut(&key) else {
                continue;
            };
            let rings = |timer: &mut Timer| timer.alarm == alarm;
            let timer = entry.appointment.take_if(rings).or_else(|| entry.retry.take_if(rings));
            if let Some(timer) = timer {
                self.want(key, timer.priority, alarm.at);
            }
        }
    }

    /// Removes a key without any state, and shrinks the map after a burst.
    fn tidy(&mut self, key: &K) {
        if self.entries.get(key).is_some_and(Entry::is_empty) {
            self.entries.remove(key);
            if self.entries.capacity() > 1024 && self.entries.len() < self.entries.capacity() / 8 {
                self.entries.shrink_to(self.entries.len() * 2);
            }
        }
    }
}
