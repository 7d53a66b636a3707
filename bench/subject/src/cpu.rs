//! How much time this process has spent on a processor.

use rustix::time::{ClockId, clock_gettime};

/// In nanoseconds: all threads together, up to this moment. (What `/proc` says of a thread that runs is as old as the last tick.)
pub(crate) fn spent_ns() -> u64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    let nanos = spent.tv_sec.saturating_mul(1_000_000_000).saturating_add(spent.tv_nsec);
    u64::try_from(nanos).unwrap_or_default()
}
