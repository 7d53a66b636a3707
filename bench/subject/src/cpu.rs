//! The processor time of this process.

use rustix::time::{ClockId, clock_gettime};

/// The processor time in nanoseconds: all threads together, up to this moment. (`/proc` is as old as the last
/// tick for a running thread.)
pub(crate) fn spent_ns() -> u64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    let nanos = spent.tv_sec.saturating_mul(1_000_000_000).saturating_add(spent.tv_nsec);
    u64::try_from(nanos).unwrap_or_default()
}
