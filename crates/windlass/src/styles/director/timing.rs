//! Intervals and deadlines of observations and effects.

use std::time::Duration;

/// The intervals and deadlines of a director's observations and effects, for one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The interval of observations while every actor is idle; `None`: only after changes. Default: 1 minute.
    pub at_rest: Option<Duration>,
    /// The interval of observations while an actor works or waits. Default: 5 s.
    pub moving: Duration,
    /// The time after which an observation is given up: its facts are unknown then. Default: 10 s.
    pub deadline: Duration,
    /// The time after which an effect is given up. It may have happened all the same. Default: 20 s.
    pub effect_deadline: Duration,
    /// The shortest time between two changes of `status.decisions`. Conditions are not delayed by it.
    /// Default: 1 minute.
    pub decisions_apart: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            at_rest: Some(Duration::from_mins(1)),
            moving: Duration::from_secs(5),
            deadline: Duration::from_secs(10),
            effect_deadline: Duration::from_secs(20),
            decisions_apart: Duration::from_mins(1),
        }
    }
}
