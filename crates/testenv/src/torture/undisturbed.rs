//! The undisturbed run: the measure of all others.

use super::point::Write;
use super::snapshot::Snapshot;

/// How the undisturbed run went.
pub(super) struct Undisturbed {
    /// The state at the end of each step.
    pub(super) snapshots: Vec<Snapshot>,
    pub(super) writes: Vec<Write>,
}
