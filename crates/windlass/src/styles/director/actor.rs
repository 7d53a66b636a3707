//! Actors: each one decides about one concern, from the snapshot.

use super::Director;
use super::decision::Decision;
use super::snapshot::Snapshot;
use super::trace::{ActorTrace, Trace};

/// Decides about one concern of a director: growing, shrinking, upgrading, certificates.
///
/// Actors are asked in order. A decision is pure: it reads the snapshot, writes its own
/// [fields](super::Field) of the intent, and asks for effects. It does no I/O and reads no clock.
pub trait Actor<D: Director>: Send + Sync {
    /// Returns the name of the actor, for the status, logs and metrics: `grow`. Never change it.
    fn name(&self) -> &'static str;

    /// Decides. An actor that changes nothing in the intent leaves live values as they are.
    fn decide(&self, pass: &Pass<'_, D>, intent: &mut D::Intent) -> Decision<D::Effect>;

    /// Returns whether the actor is asked even if an actor before it stopped the pass: for concerns that must
    /// never wait for others, such as certificates. Default: false.
    fn always(&self) -> bool {
        false
    }
}

/// The view of an actor on the pass: the snapshot, and the decisions of earlier actors.
pub struct Pass<'a, D: Director> {
    /// The snapshot of the pass.
    pub snapshot: &'a Snapshot<'a, D>,
    earlier: &'a Trace,
}

impl<'a, D: Director> Pass<'a, D> {
    /// Returns the pass of the first actor, for tests of decisions.
    pub fn first(snapshot: &'a Snapshot<'a, D>) -> Self {
        static NOBODY: Trace = Trace { actors: Vec::new() };
        Self { snapshot, earlier: &NOBODY }
    }

    pub(super) fn after(snapshot: &'a Snapshot<'a, D>, earlier: &'a Trace) -> Self {
        Self { snapshot, earlier }
    }

    /// Returns the decision of an earlier actor, by its name.
    pub fn decided_by(&self, actor: &str) -> Option<&ActorTrace> {
        self.earlier.actors.iter().find(|trace| trace.name == actor)
    }

    /// Returns whether all actors so far are idle.
    pub fn is_calm(&self) -> bool {
        self.earlier.actors.iter().all(ActorTrace::is_idle)
    }
}
