//! Counters of a client.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::Method;
use parking_lot::RwLock;

/// Counters of a client, shared by its clones. Watches are counted by the cache.
#[derive(Debug, Default)]
pub struct ClientStats {
    requests: RwLock<BTreeMap<(String, u16), AtomicU64>>,
    durations: RwLock<BTreeMap<String, Durations>>,
    retries: AtomicU64,
    timeouts: AtomicU64,
}

/// Upper bounds of the buckets of request durations in seconds, as in client-go.
const BOUNDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// The durations of requests until the response headers, counted in buckets.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Durations {
    /// Numbers of requests by upper bound; the last bound is infinite.
    counts: [u64; BOUNDS.len() + 1],
    sum: Duration,
}

impl Durations {
    fn observe(&mut self, duration: Duration) {
        self.counts[BOUNDS.partition_point(|bound| *bound < duration.as_secs_f64())] += 1;
        self.sum += duration;
    }

    /// The sum of all durations, in seconds.
    pub fn sum(&self) -> f64 {
        self.sum.as_secs_f64()
    }

    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The upper bound of each bucket in seconds (the last is infinite), with its own count.
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        BOUNDS.into_iter().chain([f64::MAX]).zip(self.counts).collect()
    }
}

impl ClientStats {
    /// Requests by method and status code (0: no response); every attempt counts.
    pub fn requests(&self) -> Vec<(String, u16, u64)> {
        let requests = self.requests.read();
        requests.iter().map(|((method, code), count)| (method.clone(), *code, count.load(Relaxed))).collect()
    }

    /// Retries of requests to the API server.
    pub fn retries(&self) -> u64 {
        self.retries.load(Relaxed)
    }

    /// Calls that exceeded their deadline.
    pub fn timeouts(&self) -> u64 {
        self.timeouts.load(Relaxed)
    }

    /// Durations of requests until the response headers, by method; every attempt counts.
    pub fn durations(&self) -> Vec<(String, Durations)> {
        self.durations.read().iter().map(|(method, durations)| (method.clone(), durations.clone())).collect()
    }

    pub(crate) fn observe(&self, method: &Method, duration: Duration) {
        self.durations.write().entry(method.as_str().to_owned()).or_default().observe(duration);
    }

    pub(crate) fn answered(&self, method: &Method, code: u16) {
        let key = (method.as_str().to_owned(), code);
        if let Some(count) = self.requests.read().get(&key) {
            count.fetch_add(1, Relaxed);
            return;
        }
        self.requests.write().entry(key).or_default().fetch_add(1, Relaxed);
    }

    pub(crate) fn retried(&self) {
        self.retries.fetch_add(1, Relaxed);
    }

    pub(crate) fn timed_out(&self) {
        self.timeouts.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seam_m14_request_durations_are_counted_by_method() {
        let stats = ClientStats::default();
        for millis in [3, 5, 700, 90_000] {
            stats.observe(&Method::GET, Duration::from_millis(millis));
        }
        let durations = stats.durations();
        assert_eq!((durations.len(), &*durations[0].0), (1, "GET"));
        let filled = |(_, count): &(f64, u64)| *count > 0;
        let filled: Vec<_> = durations[0].1.buckets().into_iter().filter(filled).collect();
        assert_eq!(filled, [(0.005, 2), (1.0, 1), (f64::MAX, 1)]);
        assert_eq!(durations[0].1.count(), 4);
    }

    #[test]
    fn requests_are_counted_by_method_and_code() {
        let stats = ClientStats::default();
        stats.answered(&Method::GET, 200);
        stats.answered(&Method::GET, 200);
        stats.answered(&Method::PATCH, 409);
        assert_eq!(stats.requests(), [("GET".to_owned(), 200, 2), ("PATCH".to_owned(), 409, 1)]);
    }
}
