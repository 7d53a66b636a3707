//! The snapshot of a pass: everything that decisions are made from.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Director;
use crate::live::Known;

/// The depth of an observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Depth {
    /// A cheap look: is the software healthy?
    #[default]
    Health,
    /// Everything that decisions need: members, shards, ranges. Made only while something has to be decided.
    Full,
}

/// An observation of the software, with its circumstances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observed<O> {
    /// The facts that were observed.
    pub facts: O,
    /// The depth of the observation.
    #[serde(default)]
    pub depth: Depth,
    /// The time at which the observation began.
    pub began: Timestamp,
}

/// Everything that the decisions of one pass are made from. It does not change during the pass, and reading
/// it causes no I/O.
///
/// Tests of decisions make one from values:
///
/// ```
/// # use windlass::{Director, Known, Snapshot};
/// # fn example<D: Director>(owner: &D::Owner, facts: &D::Facts, seen: &windlass::Observed<D::Observation>) {
/// let now = "2026-01-01T00:00:00Z".parse().unwrap_or_default();
/// let snapshot: Snapshot<'_, D> = Snapshot::new(owner, facts, Known::Known(seen), now);
/// # }
/// ```
pub struct Snapshot<'a, D: Director> {
    /// The owner of the plan.
    pub owner: &'a D::Owner,
    /// The objects of the cluster that decisions read.
    pub facts: &'a D::Facts,
    /// The time of the pass.
    pub now: Timestamp,
    observed: Known<&'a Observed<D::Observation>>,
}

impl<D: Director> Clone for Snapshot<'_, D> {
    fn clone(&self) -> Self {
        Self { owner: self.owner, facts: self.facts, now: self.now, observed: self.observed.clone() }
    }
}

impl<'a, D: Director> Snapshot<'a, D> {
    /// Returns a snapshot.
    pub fn new(
        owner: &'a D::Owner,
        facts: &'a D::Facts,
        observed: Known<&'a Observed<D::Observation>>,
        now: Timestamp,
    ) -> Self {
        Self { owner, facts, now, observed }
    }

    /// Returns the facts of the last observation that began after our last effect had ended; otherwise the
    /// reason why there is none.
    pub fn observation(&self) -> Known<&'a D::Observation> {
        self.observed.clone().map(|observed| &observed.facts)
    }

    /// Returns the same facts if the observation was a full one; otherwise it is unknown. An actor that gets
    /// no answer asks for one with [`Decision::needs_full_observation`](super::Decision).
    pub fn full_observation(&self) -> Known<&'a D::Observation> {
        match self.observed.clone() {
            Known::Known(observed) if observed.depth == Depth::Full => Known::Known(&observed.facts),
            Known::Known(_) => Known::Unknown("only the health has been observed so far".to_owned()),
            Known::Unknown(why) => Known::Unknown(why),
        }
    }
}
