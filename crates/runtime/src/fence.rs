//! The fence around a leader's writes. Public as part of [`leader`](crate::leader).
//!
//! Promises: after the lease deadline nothing passes, by a clock that counts suspension. A process that was
//! stopped (SIGSTOP) or a virtual machine that was suspended runs again before its timers notice that the
//! time is over; the fence notices it at the next check.
//!
//! Does not: recall a request that was sent before the deadline and is executed late. Destructive requests
//! therefore also carry preconditions (uid, resource version).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The deadline of a fence that is closed.
const CLOSED: u64 = 0;
/// The deadline of a fence without an election.
const UNLIMITED: u64 = u64::MAX;

/// The right of this process to write, as long as it holds the lease. Clones are the same fence.
///
/// [`Client::fenced`](crate::client::Client::fenced) checks it right before each write is sent. Other I/O of
/// a leader (a call to a database, an HTTP request to a server that it manages) checks it by itself, as the
/// last step before it sends:
///
/// ```
/// use windlass_runtime::leader::{Fence, Fenced};
///
/// async fn decommission(fence: &Fence, node: u32) -> Result<(), Fenced> {
///     // Prepare everything first: connect, begin, build the statement.
///     fence.check()?;
///     // Send it, within `fence.remaining()`.
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Fence {
    /// The deadline in nanoseconds of the clock.
    deadline: Arc<AtomicU64>,
    clock: Arc<dyn Fn() -> Duration + Send + Sync>,
}

/// This process does not hold the lease, or the lease deadline has passed: nothing was sent.
///
/// The error is transient: it ends when the process becomes the leader again, or with the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this process does not hold the lease, or the lease deadline has passed; nothing was sent")]
pub struct Fenced;

impl Fence {
    /// Creates a fence that is always open, for a process without leader election.
    pub fn unlimited() -> Self {
        Self { deadline: Arc::new(AtomicU64::new(UNLIMITED)), clock: Arc::new(since_boot) }
    }

    /// Creates a fence that is closed until [`open_until`](Self::open_until).
    pub(crate) fn closed() -> Self {
        Self::with_clock(since_boot)
    }

    pub(crate) fn with_clock(clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { deadline: Arc::new(AtomicU64::new(CLOSED)), clock: Arc::new(clock) }
    }

    /// Fails if the lease deadline has passed. Call it right before each send.
    pub fn check(&self) -> Result<(), Fenced> {
        self.remaining().map(drop).ok_or(Fenced)
    }

    /// Returns the time until the lease deadline; `None` if it has passed.
    pub fn remaining(&self) -> Option<Duration> {
        match self.deadline.load(SeqCst) {
            UNLIMITED => Some(Duration::MAX),
            deadline => Duration::from_nanos(deadline).checked_sub(self.now()).filter(|left| !left.is_zero()),
        }
    }

    /// The time of the fence's clock, which counts suspension.
    pub(crate) fn now(&self) -> Duration {
        (self.clock)()
    }

    /// Opens the fence until this time of its clock.
    pub(crate) fn open_until(&self, deadline: Duration) {
        let nanos = u64::try_from(deadline.as_nanos()).unwrap_or(UNLIMITED - 1);
        self.deadline.store(nanos, SeqCst);
    }

    /// Closes the fence.
    pub(crate) fn close(&self) {
        self.deadline.store(CLOSED, SeqCst);
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fence").field("remaining", &self.remaining()).finish_non_exhaustive()
    }
}

/// The time since boot. Unlike `Instant`, it counts the time for which the machine was suspended.
fn since_boot() -> Duration {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let clock = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let clock = ClockId::Monotonic;
    let time = clock_gettime(clock);
    // Neither is negative.
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

/// The check of one request, which the transport does when the connection is open and the body is about to be
/// sent. Passed with the request as an extension.
#[derive(Clone, Debug)]
pub(crate) struct SendCheck {
    fence: Fence,
    withheld: Arc<AtomicBool>,
}

impl SendCheck {
    pub(crate) fn new(fence: &Fence) -> Self {
        Self { fence: fence.clone(), withheld: Arc::default() }
    }

    pub(crate) fn check(&self) -> Result<(), Fenced> {
        let checked = self.fence.check();
        self.withheld.fetch_or(checked.is_err(), SeqCst);
        checked
    }

    /// Returns true if a check has failed: the body was not sent.
    pub(crate) fn withheld(&self) -> bool {
        self.withheld.load(SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seam_m3_a_fence_closes_at_its_deadline_by_its_own_clock() {
        let time = Arc::new(AtomicU64::new(100));
        let clock = Arc::clone(&time);
        let fence = Fence::with_clock(move || Duration::from_secs(clock.load(SeqCst)));
        assert_eq!(fence.check(), Err(Fenced), "closed until it is opened");
        fence.open_until(Duration::from_secs(110));
        assert_eq!((fence.check(), fence.remaining()), (Ok(()), Some(Duration::from_secs(10))));
        time.store(110, SeqCst);
        assert_eq!((fence.check(), fence.remaining()), (Err(Fenced), None));
        fence.open_until(Duration::from_mins(2));
        assert_eq!(fence.check(), Ok(()));
        fence.close();
        assert_eq!(fence.check(), Err(Fenced));
        assert_eq!(Fence::unlimited().check(), Ok(()));
    }

    #[test]
    fn the_clock_of_a_fence_advances() {
        let fence = Fence::closed();
        let before = fence.now();
        while fence.now() == before {}
        assert!(fence.now() > before);
    }
}
