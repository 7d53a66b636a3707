//! The director style: pure decisions over one snapshot, for software that has state.
//!
//! One pass is **snapshot → decide → draw → run → status**. A task for each owner observes the software; a
//! worker never waits for it. The actors decide in order, without I/O, and write an intent; `draw` turns the
//! intent into a plan that can be applied at any moment without risk; effects on the outside are nodes of
//! that plan.

mod actor;
mod decide;
mod decision;
mod effect;
mod field;
mod observers;
mod preview;
mod settled;
mod snapshot;
mod style;
#[cfg(test)]
mod tests;
mod timing;
mod trace;

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_runtime::controller::Error;

pub use self::actor::{Actor, Pass};
pub use self::decide::{Decided, decide};
pub use self::decision::{
    Action, Decision, DecisionState, Effect, Finding, FindingResult, Next, ObjectAction,
};
pub use self::field::Field;
pub use self::preview::{Rehearsal, rehearse};
pub use self::settled::WorkloadFacts;
pub use self::snapshot::{Depth, Observed, Snapshot};
pub(super) use self::style::Directing;
pub use self::timing::Timing;
pub use self::trace::{ActorTrace, Answer, DecisionStatus, HeldStatus, Trace};
use super::controls::Controls;
use crate::error::PlanError;
use crate::live::Known;
use crate::plan::{Needs, Plan};

/// Directs software that has state: what may be done now depends on what the software says.
///
/// The book's chapter *Operators for software with state* builds one step by step.
///
/// | method | I/O | called |
/// | --- | --- | --- |
/// | [`facts`](Self::facts), [`target`](Self::target) | none | in every pass |
/// | [`observe`](Self::observe) | calls the software | by a task of its own, at an interval and after effects |
/// | [`begin`](Self::begin), [`actors`](Self::actors), [`draw`](Self::draw) | none | in every pass |
/// | [`perform`](Self::perform) | calls the software | for each effect, after the plan's objects it names are applied |
///
/// It promises:
/// - No decision is made from an observation that began before our last effect ended, or before the owner's
///   present generation was first seen. Until then the facts are unknown.
/// - Before the first observation of a process nobody decides: the intent stays what is live, objects are
///   repaired, no effect runs and no status is written. So a restart costs no write.
/// - Effects run only on the leader, within its lease, and never while the owner is paused.
/// - Deletion needs no observation, no decision and no software. Effects are not undone.
pub trait Director: Controls + Sized {
    /// The objects of the cluster that decisions read, in the author's own types: pods, claims, StatefulSets.
    type Facts: Send + Sync;

    /// The address of the software and the credentials for it. It is never logged.
    type Target: Clone + PartialEq + Send + Sync + 'static;

    /// The facts that an observation finds. A fact that can be unknown is a [`Known`]: there is no default
    /// for an unknown fact.
    type Observation: PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static;

    /// A call to the software, as data without secrets. Logs and the status show it by `Debug`.
    type Effect: Clone + PartialEq + fmt::Debug + Serialize + Send + Sync + 'static;

    /// The values to apply. It begins as what is live, and each of its [fields](Field) is written by one
    /// actor.
    type Intent: Clone + PartialEq + fmt::Debug + Send;

    /// Reads the objects that decisions depend on. Pure, like a blueprint's draw: what is asked of `needs`
    /// and not known yet is watched from then on, and the pass is repeated when it is there.
    ///
    /// # Errors
    /// An unknown fact (`?` after [`Known::or_wait`]) ends the pass: nothing is decided, and nothing is
    /// written. Keep facts that only some decisions need as [`Known`] values instead.
    fn facts(&self, owner: &Self::Owner, needs: &mut Needs<'_>) -> Result<Self::Facts, PlanError>;

    /// Returns where the software is, and the credentials for it; unknown while there is nothing to observe.
    /// A new target is a new client: its first observation starts from nothing.
    fn target(&self, owner: &Self::Owner, facts: &Self::Facts) -> Known<Self::Target>;

    /// Observes the software. A failed call is an unknown fact. `before` is the last observation of the same
    /// target, so that a fact can be "twice, with a pause".
    ///
    /// It may be cancelled at any await: by its deadline, by a new target, or by the end of the lease.
    fn observe(
        &self,
        target: &Self::Target,
        depth: Depth,
        before: Option<&Observed<Self::Observation>>,
    ) -> impl Future<Output = Self::Observation> + Send;

    /// Returns the intent that changes nothing: the values that are live and ours, or those of a new owner.
    fn begin(&self, snapshot: &Snapshot<'_, Self>) -> Self::Intent;

    /// Returns the actors, in the order in which they are asked.
    fn actors(&self) -> &[&dyn Actor<Self>];

    /// Draws the plan from the snapshot and the intent. Pure. The plan must be safe to apply at any moment:
    /// replicas are lowered, and the gate of a rollout is opened, only as the intent says.
    ///
    /// # Errors
    /// As for a [blueprint](super::blueprint::Blueprint::draw).
    fn draw(
        &self,
        snapshot: &Snapshot<'_, Self>,
        intent: &Self::Intent,
        needs: &mut Needs<'_>,
        plan: &mut Plan,
    ) -> Result<(), PlanError>;

    /// Makes a call to the software. It checks its precondition first, is short, and does no harm if it is
    /// repeated. It does not wait for the result: the next observation shows it.
    fn perform(
        &self,
        target: &Self::Target,
        effect: &Self::Effect,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Returns the intervals and deadlines for an owner.
    fn timing(&self, owner: &Self::Owner) -> Timing {
        let _ = owner;
        Timing::default()
    }
}
