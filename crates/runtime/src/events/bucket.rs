//! A token bucket: a burst, then a slow refill.

use std::time::Duration;

use tokio::time::Instant;

/// The rate limit of event writes per object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The number of writes in a burst.
    pub burst: u32,
    /// The time in which one more write is allowed.
    pub refill: Duration,
}

/// The limits of client-go: a burst of 25, then one write per five minutes.
impl Default for Rate {
    fn default() -> Self {
        Self { burst: 25, refill: Duration::from_mins(5) }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Bucket {
    /// Whole tokens at `since`; later refills are computed on demand.
    tokens: u32,
    since: Instant,
}

impl Bucket {
    pub(super) fn full(rate: Rate, now: Instant) -> Self {
        Self { tokens: rate.burst, since: now }
    }

    /// Takes a token, or returns the time of the next one.
    pub(super) fn take(&mut self, rate: Rate, now: Instant) -> Result<(), Instant> {
        self.fill(rate, now);
        if self.tokens > 0 {
            self.tokens -= 1;
            Ok(())
        } else {
            Err(self.since + rate.refill)
        }
    }

    /// Returns true if the bucket is full again, so that it can be dropped.
    pub(super) fn is_full(&mut self, rate: Rate, now: Instant) -> bool {
        self.fill(rate, now);
        self.tokens >= rate.burst
    }

    fn fill(&mut self, rate: Rate, now: Instant) {
        let refill = rate.refill.as_nanos().max(1);
        let passed = now.saturating_duration_since(self.since).as_nanos();
        let missing = rate.burst.saturating_sub(self.tokens);
        match u32::try_from(passed / refill) {
            Ok(came) if came < missing => {
                self.tokens += came;
                self.since += rate.refill * came;
            }
            _ => {
                self.tokens = rate.burst;
                self.since = now;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_allows_a_burst_then_one_per_refill_and_fills_up_at_rest() {
        let rate = Rate { burst: 3, refill: Duration::from_secs(10) };
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut bucket = Bucket::full(rate, began);
        assert!((0..3).all(|_| bucket.take(rate, at(0)).is_ok()));
        assert_eq!(bucket.take(rate, at(4)), Err(at(10)));
        assert_eq!(bucket.take(rate, at(10)), Ok(()));
        assert_eq!(bucket.take(rate, at(19)), Err(at(20)));
        assert_eq!(bucket.take(rate, at(25)), Ok(()));
        assert_eq!(bucket.take(rate, at(29)), Err(at(30)));
        assert!(!bucket.is_full(rate, at(49)));
        assert!(bucket.is_full(rate, at(50)));
        assert!((0..3).all(|_| bucket.take(rate, at(1000)).is_ok()));
        assert!(bucket.take(rate, at(1000)).is_err());
    }
}
