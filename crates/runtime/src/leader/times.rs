//! The lease duration and the renewal times.

use std::time::Duration;

/// The jitter factor of a standby's retry period: client-go's, so that standbys do not read in step.
pub(super) const JITTER: f64 = 1.2;

/// The times of an election. All candidates for one Lease should use the same.
///
/// A leader renews every `retry_period`. It has stopped `renew_deadline` after the last successful renewal
/// was *sent*; no other candidate leads until `lease_duration` after that renewal was *seen*. The difference
/// of the two is the margin for clocks that run at different speeds and for a future that takes its time to
/// be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The time that others wait without a renewal before they take over. Whole seconds: a Lease holds no
    /// fractions.
    pub lease_duration: Duration,
    /// The time for which a leader works without a successful renewal.
    pub renew_deadline: Duration,
    /// The delay between two renewals, and between two reads of a standby that cannot watch the Lease.
    pub retry_period: Duration,
}

/// The times of controller-runtime: 15 s, 10 s, 2 s.
impl Default for Times {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// The reason why times cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTimes {
    /// The lease duration is not a whole number of seconds from 1 up.
    #[error(
        "the lease duration must be whole seconds and at least one, because a Lease holds no fractions; it is {0:?}"
    )]
    LeaseDuration(Duration),
    /// The leader would not stop before another may lead.
    #[error(
        "the renew deadline ({renew_deadline:?}) must be shorter than the lease duration ({lease_duration:?}): \
         a leader must stop before another may lead"
    )]
    RenewDeadline {
        /// The renew deadline.
        renew_deadline: Duration,
        /// The lease duration, which must be longer.
        lease_duration: Duration,
    },
    /// There would be no second attempt.
    #[error(
        "the retry period ({retry_period:?}) must be above zero, and with its jitter of {spread} below the renew \
         deadline ({renew_deadline:?}): a renewal that fails needs a second attempt",
        spread = JITTER
    )]
    RetryPeriod {
        /// The retry period.
        retry_period: Duration,
        /// The renew deadline, which must be longer than the retry period with its jitter.
        renew_deadline: Duration,
    },
}

impl Times {
    pub(super) fn validate(&self) -> Result<(), InvalidTimes> {
        let Self { lease_duration, renew_deadline, retry_period } = *self;
        // A Lease holds seconds as an i32.
        let seconds = u64::try_from(i32::MAX).unwrap_or_default();
        if lease_duration.subsec_nanos() != 0 || !(1..=seconds).contains(&lease_duration.as_secs()) {
            return Err(InvalidTimes::LeaseDuration(lease_duration));
        }
        if renew_deadline >= lease_duration {
            return Err(InvalidTimes::RenewDeadline { renew_deadline, lease_duration });
        }
        if retry_period.is_zero() || retry_period.mul_f64(JITTER) >= renew_deadline {
            return Err(InvalidTimes::RetryPeriod { retry_period, renew_deadline });
        }
        Ok(())
    }

    /// The deadline of one request: a request that hangs leaves time for another.
    pub(super) fn request_deadline(&self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1)).min(self.renew_deadline)
    }

    /// Returns the delay of a standby; `chance` is from 0 to 1.
    pub(super) fn spread_retry(&self, chance: f64) -> Duration {
        self.retry_period.mul_f64(1.0 + JITTER * chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(lease: u64, deadline: u64, retry: u64) -> Times {
        Times {
            lease_duration: Duration::from_millis(lease),
            renew_deadline: Duration::from_millis(deadline),
            retry_period: Duration::from_millis(retry),
        }
    }

    #[test]
    fn election_times_must_leave_room_for_a_second_attempt_and_for_stopping_in_time() {
        assert_eq!(Times::default().validate(), Ok(()));
        assert_eq!(times(3000, 2000, 500).validate(), Ok(()));
        assert!(matches!(times(2500, 2000, 500).validate(), Err(InvalidTimes::LeaseDuration(_))));
        assert!(matches!(times(0, 0, 0).validate(), Err(InvalidTimes::LeaseDuration(_))));
        assert!(matches!(times(2000, 2000, 500).validate(), Err(InvalidTimes::RenewDeadline { .. })));
        assert!(matches!(times(3000, 2000, 1700).validate(), Err(InvalidTimes::RetryPeriod { .. })));
        assert!(matches!(times(3000, 2000, 0).validate(), Err(InvalidTimes::RetryPeriod { .. })));
    }

    #[test]
    fn a_hung_request_leaves_time_for_another() {
        assert_eq!(Times::default().request_deadline(), Duration::from_secs(5));
        assert_eq!(times(3000, 2000, 500).request_deadline(), Duration::from_secs(1));
        assert_eq!(times(1000, 800, 100).request_deadline(), Duration::from_millis(800));
    }
}
