//! The backoff of failing keys.

use std::time::Duration;

/// The backoff of one queue: exponential per key, with jitter and a cap.
///
/// The first failure waits `base`, each further one twice as long, never longer than `cap`. Jitter only
/// shortens a delay, so the cap is never exceeded. Keys do not wait for each other: there is no shared bucket
/// ([the module](crate::queue) explains why).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The delay after the first failure (default 5 ms).
    pub base: Duration,
    /// The longest delay (default 1000 s).
    pub cap: Duration,
    /// The fraction of a delay that jitter may remove, from 0 (none) to 1 (all of it); default 0.2.
    pub jitter: f64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { base: Duration::from_millis(5), cap: Duration::from_secs(1000), jitter: 0.2 }
    }
}

impl Backoff {
    /// Returns the delay after the `failures`-th consecutive failure (the first is 1).
    ///
    /// `dice` is any number that differs between keys and attempts; it alone decides the jitter, so the
    /// function is deterministic.
    pub fn delay(&self, failures: u32, dice: u64) -> Duration {
        let doublings = failures.saturating_sub(1).min(63);
        let full = 1_u64
            .checked_shl(doublings)
            .and_then(|factor| u32::try_from(factor).ok())
            .and_then(|factor| self.base.checked_mul(factor))
            .map_or(self.cap, |delay| delay.min(self.cap));
        let fraction = f64::from(u32::try_from(dice >> 32).unwrap_or(u32::MAX)) / f64::from(u32::MAX);
        full.mul_f64(1.0 - self.jitter.clamp(0.0, 1.0) * fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Backoff =
        Backoff { base: Duration::from_millis(5), cap: Duration::from_secs(1000), jitter: 0.0 };

    #[test]
    fn backoff_doubles_from_the_base_to_the_cap() {
        let delays: Vec<_> = (1..=4).map(|failures| PLAIN.delay(failures, 0).as_millis()).collect();
        assert_eq!(delays, [5, 10, 20, 40]);
        assert_eq!(PLAIN.delay(18, 0), Duration::from_millis(655_360));
        assert_eq!(PLAIN.delay(19, 0), PLAIN.cap);
    }

    #[test]
    fn backoff_does_not_overflow_for_any_number_of_failures() {
        for failures in [0, 32, 33, 63, 64, 65, u32::MAX] {
            assert!(PLAIN.delay(failures, u64::MAX) <= PLAIN.cap);
        }
    }

    #[test]
    fn jitter_only_shortens_a_delay_and_by_no_more_than_its_share() {
        let backoff = Backoff { jitter: 0.2, ..PLAIN };
        assert_eq!(backoff.delay(1, 0), Duration::from_millis(5));
        assert_eq!(backoff.delay(1, u64::MAX), Duration::from_millis(4));
        let middle = backoff.delay(1, u64::MAX / 2);
        assert!(Duration::from_millis(4) < middle && middle < Duration::from_millis(5));
    }
}
