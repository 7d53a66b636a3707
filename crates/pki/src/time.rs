//! Arithmetic of time that cannot overflow.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Certificates are valid from five minutes before they are made, because clocks differ.
pub const BACKDATE: Duration = Duration::from_mins(5);

pub(crate) fn after(time: Timestamp, duration: Duration) -> Timestamp {
    SignedDuration::try_from(duration)
        .ok()
        .and_then(|duration| time.checked_add(duration).ok())
        .unwrap_or(Timestamp::MAX)
}

pub(crate) fn before(time: Timestamp, duration: Duration) -> Timestamp {
    SignedDuration::try_from(duration)
        .ok()
        .and_then(|duration| time.checked_sub(duration).ok())
        .unwrap_or(Timestamp::MIN)
}
