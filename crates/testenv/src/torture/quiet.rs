//! Detection of an operator at rest.
//!
//! Rest cannot be seen, only that nothing happens for a while. How long a while must be depends on the
//! machine: an operator on a busy one takes longer from one request to the next. So the longest pause that
//! was followed by another request counts, too: what had to be waited for once must be waited for again, and
//! doubly.

use std::time::Duration;

use tokio::time::Instant;

use super::stage::{Bustle, Pace};

/// The factor by which the quiet time must exceed the operator's longest pause so far.
const PAUSES: u32 = 2;

/// The factor by which the quiet time may exceed the author's setting.
const LIMIT: u32 = 5;

/// The interval at which the state is read.
pub(super) const GLANCE: Duration = Duration::from_millis(20);

/// The observations of one step so far.
pub(super) struct Quiet {
    bustle: Option<Bustle>,
    since: Instant,
    pace: Pace,
    paced: Instant,
    longest_pause: Duration,
}

impl Quiet {
    pub(super) fn new(pace: Pace) -> Self {
        let now = Instant::now();
        Self { bustle: None, since: now, pace, paced: now, longest_pause: Duration::ZERO }
    }

    /// Takes a look: whether nothing happened since the last one, and for how long.
    pub(super) fn look(&mut self, bustle: Option<Bustle>, pace: Pace) -> (bool, Duration) {
        let now = Instant::now();
        if pace != self.pace {
            // The time from one life to the next is not the operator's.
            if pace.life == self.pace.life {
                self.longest_pause = self.longest_pause.max(now - self.paced);
            }
            (self.pace, self.paced) = (pace, now);
        }
        let is_quiet = bustle.is_some() && bustle == self.bustle;
        if !is_quiet {
            (self.bustle, self.since) = (bustle, now);
        }
        (is_quiet, now - self.since)
    }

    /// The quiet time after which the operator is at rest; at least `least`, the author's setting.
    pub(super) fn calm(&self, least: Duration) -> Duration {
        (self.longest_pause * PAUSES).clamp(least, least * LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Duration = Duration::from_millis(100);

    async fn look(quiet: &mut Quiet, after: u64, life: u32, request: u64) -> (bool, Duration) {
        tokio::time::advance(Duration::from_millis(after)).await;
        let pace = Pace { life, request };
        quiet.look(Some(Bustle { pace, events: 0 }), pace)
    }

    #[tokio::test(start_paused = true)]
    async fn an_operator_is_quiet_since_the_last_change() {
        let mut quiet = Quiet::new(Pace { life: 1, request: 0 });
        assert!(!look(&mut quiet, 10, 1, 1).await.0);
        assert_eq!(look(&mut quiet, 50, 1, 1).await, (true, Duration::from_millis(50)));
        assert!(!look(&mut quiet, 50, 1, 2).await.0);
        assert_eq!(quiet.look(None, Pace { life: 1, request: 2 }), (false, Duration::ZERO), "under way");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_operator_is_waited_for_longer_but_not_for_ever() {
        let mut quiet = Quiet::new(Pace { life: 1, request: 0 });
        look(&mut quiet, 20, 1, 1).await;
        assert_eq!(quiet.calm(LEAST), LEAST);
        look(&mut quiet, 90, 1, 2).await;
        assert_eq!(quiet.calm(LEAST), Duration::from_millis(180));
        look(&mut quiet, 900, 1, 3).await;
        assert_eq!(quiet.calm(LEAST), LEAST * 5);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_between_two_lives_is_no_pause() {
        let mut quiet = Quiet::new(Pace { life: 1, request: 7 });
        look(&mut quiet, 400, 2, 0).await;
        assert_eq!(quiet.calm(LEAST), LEAST);
    }
}
