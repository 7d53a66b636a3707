//! One pass of a director without a cluster: every decision table is also a preview.

use futures::future::{BoxFuture, FutureExt as _};
use jiff::Timestamp;
use kube::ResourceExt as _;
use parking_lot::Mutex;
use serde_json::Value;
use windlass_graph::Report;

use super::Director;
use super::decide::{Decided, decide};
use super::snapshot::Snapshot;
use super::style::{Given, add_decisions, add_effects};
use crate::error::{NodeError, PlanError};
use crate::needs::fixed::Among;
use crate::nodes::Perform;
use crate::plan::draw;
use crate::plan::node::{Sketched, Visit};
use crate::plan::{Desired, Kinds};

/// A pass of a director that did not happen.
pub struct Rehearsal<D: Director> {
    /// The decisions of the actors.
    pub decided: Decided<D>,
    /// The plan: objects, decisions and effects, to be shown as text, a diagram or JSON.
    pub report: Report<NodeError>,
    /// The objects that would be applied.
    pub objects: Vec<Desired>,
}

/// Returns the pass that a director would make for an owner if the cluster contained exactly these objects,
/// each as JSON with its `kind`, and the software was observed as given.
///
/// # Errors
/// The facts cannot be read, or the plan cannot be drawn.
pub fn rehearse<D: Director>(
    director: &D,
    owner: &D::Owner,
    objects: &[Value],
    observed: Given<'_, D::Observation>,
    now: Timestamp,
) -> Result<Rehearsal<D>, PlanError> {
    let mut kinds = Kinds::default();
    director.kinds(&mut kinds);
    let decisions = Mutex::new(None);
    let drawn = draw::once(&Among(objects), &kinds, owner.namespace().as_deref(), &|needs, plan| {
        let facts = director.facts(owner, needs)?;
        let snapshot = Snapshot::new(owner, &facts, observed.clone(), now);
        let decided = decide(director, &snapshot);
        add_decisions(plan, &decided.trace, now);
        director.draw(&snapshot, &decided.intent, needs, plan)?;
        let actor = decided.trace.acting().unwrap_or_default();
        add_effects(plan, actor, &decided.effects, |_| NotSent);
        *decisions.lock() = Some(decided);
        Ok(())
    })?;
    let decided = decisions.into_inner().ok_or_else(|| PlanError::new("the plan was not drawn"))?;
    let report = drawn.graph.outline(|place| place.node.describe());
    let objects = drawn.places().filter_map(|place| match place.node.sketch() {
        Sketched::Object(desired) => Some(desired.clone()),
        _ => None,
    });
    Ok(Rehearsal { decided, report, objects: objects.collect() })
}

/// An effect of a preview.
struct NotSent;

impl Perform for NotSent {
    fn perform<'a>(&'a self, _: &'a dyn Visit) -> BoxFuture<'a, Result<(), NodeError>> {
        std::future::ready(Ok(())).boxed()
    }
}
