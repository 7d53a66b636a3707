//! Jitter: random delays, so that clients that failed together do not retry together. Not for secrets.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Returns a number from 0 to 1, different each time and in each process.
pub(crate) fn chance() -> f64 {
    static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let hash = SEED.hash_one(COUNT.fetch_add(1, Ordering::Relaxed));
    // A double holds 53 bits.
    #[allow(clippy::cast_precision_loss)]
    let chance = (hash >> 11) as f64 / (1_u64 << 53) as f64;
    chance
}

/// Returns a random duration within the range.
pub(crate) fn between((least, most): (Duration, Duration)) -> Duration {
    least + most.saturating_sub(least).mul_f64(chance())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_values_differ_and_stay_within_bounds() {
        let chances: Vec<f64> = (0..100).map(|_| chance()).collect();
        assert!(chances.iter().all(|chance| (0.0..1.0).contains(chance)));
        assert!(chances.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 0.001));
        let range = (Duration::from_secs(2), Duration::from_secs(3));
        assert!((0..100).map(|_| between(range)).all(|drawn| drawn >= range.0 && drawn <= range.1));
    }
}
