//! What a blueprint would do for an owner, without a cluster.

use kube::ResourceExt as _;
use windlass_graph::Report;

use crate::blueprint::Blueprint;
use crate::error::{DrawError, NodeError};
use crate::inputs::{Given, Inputs, Resolved, ResolvedInput};
use crate::plan::{Node, Plan, Verb};
use crate::secrecy::Content;

/// The plan that a blueprint draws for an owner, as a report of a run that has not happened: to be shown as text, a diagram or
/// JSON.
///
/// Inputs are taken to be there, but without values: what depends on a value that a plan reads is drawn as without it.
pub fn preview<B: Blueprint>(blueprint: &B, owner: &B::Owner) -> Result<Report<NodeError>, DrawError> {
    let namespace = owner.namespace();
    let mut inputs = Inputs::new(namespace.as_deref());
    blueprint.inputs(owner, &mut inputs);
    let assumed = |id: String| ResolvedInput {
        given: Given::There(Content { id: id.clone(), digest: Vec::new() }),
        content: None,
        id,
    };
    let resolved = inputs.wanted.into_iter().map(|wanted| assumed(wanted.id)).collect();
    let mut plan = Plan::new(namespace.as_deref());
    let given = Resolved::place(resolved, namespace.as_deref(), &mut plan);
    blueprint.draw(owner, &given, &mut plan)?;
    Ok(plan.finish()?.graph.outline(what))
}

/// What becomes of a node, in a few words.
fn what(node: &Node) -> String {
    let kept = if node.retained() { ", retained" } else { "" };
    match &node.draft.verb {
        Verb::Apply(desired) if desired.resource.kind == "Job" => format!("run to completion{kept}"),
        Verb::Apply(_) => format!("apply{kept}"),
        Verb::CreateOnce { .. } => format!("generate once{kept}"),
        Verb::Pending { why, .. } => format!("pending: {why}"),
        Verb::Step(step) if step.undoes() => "step, undone on deletion".to_owned(),
        Verb::Step(_) => "step".to_owned(),
        Verb::Input(_) => "required".to_owned(),
        Verb::Broken => "broken".to_owned(),
    }
}
