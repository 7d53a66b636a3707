//! The undisturbed run: the measure of all others.

use super::point::Write;
use super::snapshot::Snapshot;

/// The result of the undisturbed run.
pub(super) struct Undisturbed {
    /// The state at the end of each step.
    pub(super) snapshots: Vec<Snapshot>,
    pub(super) writes: Vec<Write>,
}
