//! Counters of a queue.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Priority;

/// Maximum number of priorities that are counted separately.
///
/// A metric label made from an arbitrary number could otherwise grow without limit.
pub const PRIORITIES_COUNTED: usize = 25;

/// A snapshot of a queue's figures, as the `workqueue_*` metrics show them.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Number of ready keys, or that wait only for their own running reconcile.
    pub depth: Depth,
    /// The number of times a key became ready.
    pub adds: u64,
    /// The number of times a key was added with a delay.
    pub retries: u64,
    /// The time for which keys were ready before they were handed out.
    pub queue_time: Histogram,
    /// The time that keys took from being handed out to being finished.
    pub work_time: Histogram,
    /// The time spent so far, summed over what is running now.
    pub unfinished: Duration,
    /// The time that the oldest running key has taken so far.
    pub longest_running: Duration,
}

/// The number of ready keys, by priority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    by_priority: BTreeMap<Priority, usize>,
    beyond: Option<usize>,
}

impl Depth {
    /// Returns the ready keys of one priority.
    pub fn at(&self, priority: Priority) -> usize {
        self.by_priority.get(&priority).copied().unwrap_or_default()
    }

    /// Iterates over every priority that was seen, with its present number of ready keys.
    pub fn iter(&self) -> impl Iterator<Item = (Priority, usize)> {
        self.by_priority.iter().map(|(priority, count)| (*priority, *count))
    }

    /// Returns the ready keys of all priorities beyond the first [`PRIORITIES_COUNTED`]; `None` if there
    /// never was one.
    pub fn beyond(&self) -> Option<usize> {
        self.beyond
    }

    /// Returns the number of all ready keys.
    pub fn total(&self) -> usize {
        self.by_priority.values().sum::<usize>() + self.beyond.unwrap_or_default()
    }

    pub(super) fn enter(&mut self, priority: Priority) {
        if let Some(count) = self.by_priority.get_mut(&priority) {
            *count += 1;
        } else if self.by_priority.len() < PRIORITIES_COUNTED {
            self.by_priority.insert(priority, 1);
        } else {
            *self.beyond.get_or_insert(0) += 1;
        }
    }

    pub(super) fn leave(&mut self, priority: Priority) {
        let count = self.by_priority.get_mut(&priority).or(self.beyond.as_mut());
        debug_assert!(
            count.as_ref().is_some_and(|count| **count > 0),
            "a key left a priority that it was not in"
        );
        if let Some(count) = count {
            *count = count.saturating_sub(1);
        }
    }

    pub(super) fn clear(&mut self) {
        self.by_priority.values_mut().for_each(|count| *count = 0);
        self.beyond = self.beyond.map(|_| 0);
    }
}

/// Durations counted in twelve buckets from 10 ns to 1000 s, one per decade.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: [u64; Self::BOUNDS.len() + 1],
    sum: Duration,
}

impl Histogram {
    const BOUNDS: [f64; 12] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3];

    /// The sum of all observed durations, in seconds.
    pub fn sum(&self) -> f64 {
        self.sum.as_secs_f64()
    }

    /// The number of observed durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Iterates over the upper bound of each bucket in seconds (the last is infinite), with its own count.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        Self::BOUNDS.into_iter().chain([f64::MAX]).zip(self.counts)
    }

    pub(super) fn observe(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        self.counts[Self::BOUNDS.partition_point(|bound| *bound < seconds)] += 1;
        self.sum += duration;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pq29_the_twenty_sixth_priority_is_counted_under_a_placeholder() {
        let mut depth = Depth::default();
        for priority in 0..25 {
            depth.enter(Priority(priority));
            depth.enter(Priority(priority));
        }
        assert_eq!((depth.iter().count(), depth.beyond()), (25, None));

        depth.enter(Priority(25));
        assert_eq!((depth.iter().count(), depth.beyond()), (25, Some(1)));
        depth.leave(Priority(25));
        assert_eq!((depth.beyond(), depth.total()), (Some(0), 50));
    }

    #[test]
    fn a_priority_that_emptied_stays_visible_with_zero() {
        let mut depth = Depth::default();
        depth.enter(Priority(3));
        depth.leave(Priority(3));
        assert_eq!(depth.iter().collect::<Vec<_>>(), [(Priority(3), 0)]);
    }

    #[test]
    fn durations_fall_into_the_decade_that_bounds_them() {
        let mut histogram = Histogram::default();
        for nanos in [10, 11, 1_000_000_000, 2_000_000_000_000] {
            histogram.observe(Duration::from_nanos(nanos));
        }
        let hit: Vec<_> =
            histogram.buckets().filter(|(_, count)| *count > 0).map(|(bound, _)| bound).collect();
        assert_eq!(hit, [1e-8, 1e-7, 1.0, f64::MAX]);
        assert_eq!(histogram.count(), 4);
    }
}
