//! The retry decision, as a pure function.
//!
//! Promises: a write is repeated only if the server certainly did not execute it, or if it is idempotent; no
//! more than a few times; never past the caller's deadline.

use std::time::Duration;

use super::Failure;

/// The retry policy of calls.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// Maximum number of attempts, including the first.
    pub attempts: u32,
    /// The delay after the first failure; it doubles with each.
    pub first_pause: Duration,
    /// The longest delay. If the server asks for a longer one, the call fails, and the caller decides.
    pub longest_pause: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 4, first_pause: Duration::from_millis(100), longest_pause: Duration::from_secs(5) }
    }
}

/// The effect of executing a call twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Idempotent: reads, applies, deletes by uid.
    Harmless,
    /// A request that is not idempotent: a create, a patch, a delete by name. It is repeated only if the
    /// server did nothing.
    Harmful,
    /// A request that is never repeated: the rejection is the answer (an eviction that a disruption budget
    /// does not allow).
    Never,
}

/// A failed attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub(crate) failure: &'a Failure,
    /// The request was not sent: the connection was refused.
    pub(crate) unsent: bool,
    /// Attempts so far, this one included.
    pub(crate) number: u32,
    /// The time left until the caller's deadline.
    pub(crate) left: Duration,
}

impl RetryPolicy {
    /// Returns the delay before the next attempt, or `None` to give up. `chance` (0 to 1) spreads the delays.
    pub(crate) fn pause(&self, repeat: Repeat, attempt: Attempt<'_>, chance: f64) -> Option<Duration> {
        if attempt.number >= self.attempts || repeat == Repeat::Never {
            return None;
        }
        let own = self.first_pause.saturating_mul(1 << attempt.number.saturating_sub(1).min(16));
        let own = own.min(self.longest_pause).mul_f64(0.5 + chance / 2.0);
        let pause = match attempt.failure {
            // The server rejected the request before it did anything.
            Failure::Throttled { retry_after } => retry_after.map_or(own, |asked| asked.max(own)),
            Failure::Unavailable | Failure::Internal if attempt.unsent || repeat == Repeat::Harmless => own,
            _ => return None,
        };
        (pause <= self.longest_pause && pause < attempt.left).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    fn pause(repeat: Repeat, failure: &Failure, unsent: bool) -> Option<Duration> {
        RetryPolicy::default().pause(repeat, Attempt { failure, unsent, number: 1, left: LONG }, 1.0)
    }

    #[test]
    fn a_write_is_repeated_only_where_that_is_safe() {
        let throttled = Failure::Throttled { retry_after: None };
        for (failure, unsent, harmless, harmful) in [
            (&throttled, false, true, true),
            (&Failure::Unavailable, true, true, true),
            (&Failure::Unavailable, false, true, false),
            (&Failure::Timeout, false, false, false),
            (&Failure::Conflict, false, false, false),
            (&Failure::NotFound, false, false, false),
            (&Failure::Invalid(vec![]), false, false, false),
        ] {
            assert_eq!(pause(Repeat::Harmless, failure, unsent).is_some(), harmless, "{failure:?}");
            assert_eq!(pause(Repeat::Harmful, failure, unsent).is_some(), harmful, "{failure:?}");
            assert_eq!(pause(Repeat::Never, failure, unsent), None, "{failure:?}");
        }
    }

    #[test]
    fn a_retry_after_header_is_honoured_up_to_the_longest_pause() {
        let asked = |seconds| Failure::Throttled { retry_after: Some(Duration::from_secs(seconds)) };
        assert_eq!(pause(Repeat::Harmful, &asked(2), false), Some(Duration::from_secs(2)));
        assert_eq!(pause(Repeat::Harmful, &asked(60), false), None);
    }

    #[test]
    fn retry_delays_double_and_attempts_are_bounded() {
        let policy = RetryPolicy::default();
        let at = |number| {
            let attempt = Attempt { failure: &Failure::Unavailable, unsent: true, number, left: LONG };
            policy.pause(Repeat::Harmless, attempt, 1.0)
        };
        assert_eq!([at(1), at(2), at(3)], [100, 200, 400].map(|ms| Some(Duration::from_millis(ms))));
        assert_eq!(at(4), None);
    }

    #[test]
    fn no_retry_delay_exceeds_the_deadline() {
        let attempt = Attempt {
            failure: &Failure::Throttled { retry_after: Some(Duration::from_secs(3)) },
            unsent: false,
            number: 1,
            left: Duration::from_secs(2),
        };
        assert_eq!(RetryPolicy::default().pause(Repeat::Harmless, attempt, 0.0), None);
    }
}
