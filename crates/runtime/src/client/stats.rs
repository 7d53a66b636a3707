//! What a client has done, counted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::Method;
use parking_lot::RwLock;

/// Counters of a client, shared by its clones. Watches are counted by the cache.
#[derive(Debug, Default)]
pub struct ClientStats {
    requests: RwLock<BTreeMap<(String, u16), AtomicU64>>,
    retries: AtomicU64,
    timeouts: AtomicU64,
}

impl ClientStats {
    /// Requests by method and status code (0: no answer), every attempt counted.
    pub fn requests(&self) -> Vec<(String, u16, u64)> {
        let requests = self.requests.read();
        requests.iter().map(|((method, code), count)| (method.clone(), *code, count.load(Relaxed))).collect()
    }

    /// Attempts after a first one.
    pub fn retries(&self) -> u64 {
        self.retries.load(Relaxed)
    }

    /// Calls that met their deadline.
    pub fn timeouts(&self) -> u64 {
        self.timeouts.load(Relaxed)
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
    fn requests_are_counted_by_method_and_code() {
        let stats = ClientStats::default();
        stats.answered(&Method::GET, 200);
        stats.answered(&Method::GET, 200);
        stats.answered(&Method::PATCH, 409);
        assert_eq!(stats.requests(), [("GET".to_owned(), 200, 2), ("PATCH".to_owned(), 409, 1)]);
    }
}
