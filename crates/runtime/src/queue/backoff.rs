//! How long a failing key waits.

use std::time::Duration;

/// The retry policy of one queue: exponential per key, with jitter and a cap.
///
/// The first failure waits `base`, each further one twice as long, never longer than `cap`. Jitter only shortens a
/// delay, so the cap is a promise. Keys do not wait for each other: there is no bucket that all of them share (see
/// [the module](crate::queue) for why).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The delay after the first failure. Default: 5 ms.
    pub base: Duration,
    /// The longest delay. Default: 1000 s.
    pub cap: Duration,
    /// The share of a delay that jitter may take away, from 0 (none) to 1 (all of it). Default: 0.2.
    pub jitter: f64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { base: Duration::from_millis(5), cap: Duration::from_secs(1000), jitter: 0.2 }
    }
}

impl Backoff {
    /// The delay after the `failures`-th failure in a row (the first is 1).
    ///
    /// `dice` is any number that differs between keys and attempts; it alone decides the jitter, so the same call
    /// gives the same answer.
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
    fn it_doubles_from_the_base_to_the_cap() {
        let delays: Vec<_> = (1..=4).map(|failures| PLAIN.delay(failures, 0).as_millis()).collect();
        assert_eq!(delays, [5, 10, 20, 40]);
        assert_eq!(PLAIN.delay(18, 0), Duration::from_millis(655_360));
        assert_eq!(PLAIN.delay(19, 0), PLAIN.cap);
    }

    #[test]
    fn no_number_of_failures_overflows() {
        for failures in [0, 32, 33, 63, 64, 65, u32::MAX] {
            assert!(PLAIN.delay(failures, u64::MAX) <= PLAIN.cap);
        }
    }

    #[test]
    fn jitter_only_shortens_and_by_no_more_than_its_share() {
        let backoff = Backoff { jitter: 0.2, ..PLAIN };
        assert_eq!(backoff.delay(1, 0), Duration::from_millis(5));
        assert_eq!(backoff.delay(1, u64::MAX), Duration::from_millis(4));
        let middle = backoff.delay(1, u64::MAX / 2);
        assert!(Duration::from_millis(4) < middle && middle < Duration::from_millis(5));
    }
}
