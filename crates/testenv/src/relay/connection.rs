//! One connection through the relay, as a test sees it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// The present fault of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fault {
    #[default]
    None,
    /// Nothing is delivered.
    Frozen,
    /// Everything is delivered later by this time.
    Delayed(Duration),
    /// The connection ends with a reset on both sides. Final.
    Reset,
}

/// Bytes that were delivered.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// The direction from the client to the server.
    pub(super) sent: AtomicU64,
    /// The direction from the server to the client.
    pub(super) received: AtomicU64,
}

/// One connection through a [`Relay`](super::Relay). Cheap to clone; a clone is the same connection.
#[derive(Clone)]
pub struct RelayConnection {
    number: usize,
    fault: Arc<watch::Sender<Fault>>,
    counters: Arc<Counters>,
    ended: Arc<AtomicBool>,
}

impl RelayConnection {
    pub(super) fn new(number: usize, fault: watch::Sender<Fault>) -> Self {
        Self { number, fault: Arc::new(fault), counters: Arc::default(), ended: Arc::default() }
    }

    /// The number of the connection, counted from 1 in the order of arrival.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns true until the connection has ended. A frozen connection is open, also if its client has
    /// closed its side: the relay reads nothing of it.
    pub fn is_open(&self) -> bool {
        !self.ended.load(Ordering::Acquire)
    }

    /// Returns true if the connection is frozen.
    pub fn is_frozen(&self) -> bool {
        *self.fault.borrow() == Fault::Frozen
    }

    /// The number of bytes that were delivered to the server.
    pub fn sent(&self) -> u64 {
        self.counters.sent.load(Ordering::Acquire)
    }

    /// The number of bytes that were delivered to the client.
    pub fn received(&self) -> u64 {
        self.counters.received.load(Ordering::Acquire)
    }

    /// Stops delivery in both directions. The connection stays open, and neither side is notified.
    pub fn freeze(&self) {
        self.set(Fault::Frozen);
    }

    /// Delivers what was held back, in order, and everything after it without a delay.
    pub fn thaw(&self) {
        self.set(Fault::None);
    }

    /// Delivers everything later by this time, in both directions.
    pub fn delay(&self, time: Duration) {
        self.set(Fault::Delayed(time));
    }

    /// Ends the connection with a reset on both sides. What was held back is lost.
    pub fn reset(&self) {
        self.set(Fault::Reset);
    }

    fn set(&self, fault: Fault) {
        // A reset is final, and an ended connection has no listener.
        self.fault.send_if_modified(|present| {
            let changes = *present != Fault::Reset && *present != fault;
            if changes {
                *present = fault;
            }
            changes
        });
    }

    pub(super) fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }
}

impl fmt::Debug for RelayConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayConnection")
            .field("number", &self.number)
            .field("open", &self.is_open())
            .field("fault", &*self.fault.borrow())
            .field("sent", &self.sent())
            .field("received", &self.received())
            .finish_non_exhaustive()
    }
}
