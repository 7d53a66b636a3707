//! The undisturbed run: the measure of all others.

use std::time::Duration;

use super::point::Write;
use super::snapshot::Snapshot;

/// The result of the undisturbed run.
pub(super) struct Undisturbed {
    pub(super) ends: Vec<StepEnd>,
    pub(super) writes: Vec<Write>,
}

/// The end of a step.
pub(super) struct StepEnd {
    pub(super) snapshot: Snapshot,
    /// The time from the action to the rest of the operator.
    pub(super) took: Duration,
}
