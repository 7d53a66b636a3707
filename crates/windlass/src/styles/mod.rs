//! The styles of writing an operator, and their common part.

mod applied;
mod blueprint;
mod controller;
mod controls;
mod director;
mod preview;
mod style;

pub use self::applied::{Applied, AppliedNode, applied};
pub use self::blueprint::Blueprint;
pub use self::controller::{PlanController, PlanControllerError};
pub use self::controls::{Controls, Deletion, OwnerKind};
pub use self::director::{
    Action, Actor, ActorTrace, Answer, Decided, Decision, DecisionState, DecisionStatus, Depth, Director,
    Effect, Field, Finding, FindingResult, HeldStatus, Next, ObjectAction, Observed, Pass, Rehearsal,
    Snapshot, Timing, Trace, WorkloadFacts, decide, rehearse,
};
pub use self::preview::{Sketch, preview, sketch};
