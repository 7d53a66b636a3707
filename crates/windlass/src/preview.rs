//! What a blueprint would do for an owner, without a cluster.

use kube::ResourceExt as _;
use windlass_graph::Report;

use crate::blueprint::Blueprint;
use crate::desired::Desired;
use crate::error::{DrawError, NodeError};
use crate::inputs::{Given, Inputs, Resolved, ResolvedInput};
use crate::plan::{Drawn, Node, Plan, Verb};
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
    let mut given = Resolved::place(resolved, namespace.as_deref(), &mut plan);
    given.assumed = true;
    blueprint.draw(owner, &given, &mut plan)?;
    Ok(plan.finish()?.graph.outline(what))
}

/// What a blueprint would apply for an owner, if these objects were all there is in the cluster: for tests of everything that is
/// rendered.
#[derive(Debug)]
pub struct Sketch {
    /// Every object that would be applied, in the order of the plan, with the changes of its nodes.
    pub objects: Vec<Desired>,
    /// What has to wait, and why: missing inputs and pending nodes.
    pub waiting: Vec<(String, String)>,
}

/// Draws the plan of an owner from the objects that it may need, each as JSON with its `kind`; an input that is not among them is
/// missing.
pub fn sketch<B: Blueprint>(
    blueprint: &B,
    owner: &B::Owner,
    objects: &[serde_json::Value],
) -> Result<Sketch, DrawError> {
    let mut sketch = Sketch { objects: Vec::new(), waiting: Vec::new() };
    for node in drawn_from(blueprint, owner, objects)?.nodes() {
        let id = node.draft.id.clone();
        match &node.draft.verb {
            Verb::Apply(desired) => {
                let mut desired = desired.clone();
                node.draft.mutations.iter().try_for_each(|mutation| mutation(&mut desired))?;
                sketch.objects.push(desired);
            }
            Verb::Pending { why, .. } | Verb::Input(Given::Missing(why) | Given::NotReady(why)) => {
                sketch.waiting.push((id, why.clone()));
            }
            _ => {}
        }
    }
    Ok(sketch)
}

/// The finished plan of an owner, if these objects were all there is in the cluster.
pub(crate) fn drawn_from<B: Blueprint>(
    blueprint: &B,
    owner: &B::Owner,
    objects: &[serde_json::Value],
) -> Result<Drawn, DrawError> {
    let namespace = owner.namespace();
    let among = |inputs: Inputs| -> Result<Vec<ResolvedInput>, DrawError> {
        inputs.wanted.iter().map(|wanted| wanted.among(objects)).collect()
    };
    let mut inputs = Inputs::new(namespace.as_deref());
    blueprint.inputs(owner, &mut inputs);
    let mut resolved = among(inputs)?;
    let scratch = &mut Plan::new(namespace.as_deref());
    let so_far = Resolved::place(resolved.clone(), namespace.as_deref(), scratch);
    let mut further = Inputs::new(namespace.as_deref());
    blueprint.further_inputs(owner, &so_far, &mut further);
    resolved.extend(among(further)?);
    let mut plan = Plan::new(namespace.as_deref());
    let given = Resolved::place(resolved, namespace.as_deref(), &mut plan);
    blueprint.draw(owner, &given, &mut plan)?;
    plan.finish()
}

/// What becomes of a node, in a few words.
pub(crate) fn what(node: &Node) -> String {
    let kept = if node.retained() { ", retained" } else { "" };
    match &node.draft.verb {
        Verb::Apply(desired) if desired.resource.kind == "Job" => format!("run to completion{kept}"),
        Verb::Apply(_) => format!("apply{kept}"),
        Verb::CreateOnce { .. } => format!("generate once{kept}"),
        Verb::Renew { .. } => format!("renew{kept}"),
        Verb::Pending { why, .. } => format!("pending: {why}"),
        Verb::Step(step) if step.undoes() => "step, undone on deletion".to_owned(),
        Verb::Step(_) => "step".to_owned(),
        Verb::Input(_) => "required".to_owned(),
        Verb::Broken => "broken".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::DrawError;
    use crate::kinds::Kinds;
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "example.com", version = "v1", kind = "Shop", namespaced, status = "crate::Status")]
    struct ShopSpec {
        settings: String,
    }

    /// The name of its Secret is in a ConfigMap.
    struct Indirect;

    impl Blueprint for Indirect {
        type Owner = Shop;
        const NAME: &'static str = "indirect";

        fn kinds(&self, kinds: &mut Kinds) {
            kinds.owns::<Secret>().requires::<Secret>().requires::<ConfigMap>();
        }

        fn inputs(&self, shop: &Shop, inputs: &mut Inputs) {
            inputs.read_object::<ConfigMap>(&shop.spec.settings);
        }

        fn further_inputs(&self, shop: &Shop, given: &Resolved, inputs: &mut Inputs) {
            if let Some(name) = named(shop, given) {
                inputs.read::<Secret>(name);
            }
        }

        fn draw(&self, shop: &Shop, given: &Resolved, plan: &mut Plan) -> Result<(), DrawError> {
            let Some(name) = named(shop, given) else {
                plan.pending::<Secret>("copy", "nobody names a Secret");
                return Ok(());
            };
            let text = given.text::<Secret>(&name, "key").unwrap_or_default();
            let copy: Secret =
                serde_json::from_value(json!({"metadata": {"name": "copy"}, "stringData": {"key": text}}))?;
            plan.add(copy).after([given.get::<Secret>(&name)]).mutate(|copy| {
                copy.label("copied", "yes");
                Ok(())
            });
            Ok(())
        }
    }

    fn named(shop: &Shop, given: &Resolved) -> Option<String> {
        given.object::<ConfigMap>(&shop.spec.settings)?.data?.remove("secret")
    }

    fn drawn(objects: &[serde_json::Value]) -> Sketch {
        let mut shop = Shop::new("shop", ShopSpec { settings: "settings".into() });
        shop.metadata.namespace = Some("home".into());
        sketch(&Indirect, &shop, objects).unwrap()
    }

    #[test]
    fn what_an_input_names_is_an_input_too() {
        let settings =
            json!({"kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"secret": "password"}});
        let password = json!({"kind": "Secret", "metadata": {"name": "password"}, "data": {"key": "eA=="}});
        let missing = "it does not exist: create it, or change the reference to it".to_owned();
        let nothing = drawn(&[]);
        let waiting = [
            ("ConfigMap settings".to_owned(), missing.clone()),
            ("Secret copy".to_owned(), "nobody names a Secret".to_owned()),
        ];
        assert_eq!((nothing.objects.len(), &nothing.waiting[..]), (0, &waiting[..]));
        assert_eq!(drawn(std::slice::from_ref(&settings)).waiting, [("Secret password".to_owned(), missing)]);
        let whole = drawn(&[settings, password]);
        assert!(whole.waiting.is_empty());
        assert_eq!(whole.objects[0].body()["data"]["key"], "eA==");
        assert_eq!(whole.objects[0].body()["metadata"]["labels"]["copied"], "yes");
    }

    /// What it makes depends on how what it has made came out.
    struct Looking;

    impl Blueprint for Looking {
        type Owner = Shop;
        const NAME: &'static str = "looking";

        fn kinds(&self, kinds: &mut Kinds) {
            kinds.owns::<ConfigMap>().requires::<ConfigMap>();
        }

        fn inputs(&self, _: &Shop, inputs: &mut Inputs) {
            inputs.observe::<ConfigMap>("made");
        }

        fn draw(&self, _: &Shop, given: &Resolved, plan: &mut Plan) -> Result<(), DrawError> {
            let said = given.observed::<ConfigMap>("made").and_then(|made| made.data?.remove("answer"));
            let known = given.observed_live::<ConfigMap, _>("made", |live| live.metadata.generation);
            assert_eq!(said.is_some(), known.is_some());
            plan.add(serde_json::from_value::<ConfigMap>(json!({"metadata": {"name": "made"}}))?);
            match said {
                Some(said) => {
                    let next = json!({"metadata": {"name": "next"}, "data": {"answer": said}});
                    plan.add(serde_json::from_value::<ConfigMap>(next)?);
                }
                None => {
                    plan.pending::<ConfigMap>("next", "nobody has answered");
                }
            }
            Ok(())
        }
    }

    #[test]
    fn what_a_plan_makes_can_be_observed_and_is_not_waited_for() {
        let mut shop = Shop::new("shop", ShopSpec { settings: "settings".into() });
        shop.metadata.namespace = Some("home".into());
        let before = sketch(&Looking, &shop, &[]).unwrap();
        assert_eq!(before.objects.len(), 1);
        let waiting = [("ConfigMap next".to_owned(), "nobody has answered".to_owned())];
        assert_eq!(before.waiting, waiting);
        let made = json!({"kind": "ConfigMap", "metadata": {"name": "made"}, "data": {"answer": "yes"}});
        let after = sketch(&Looking, &shop, &[made]).unwrap();
        assert!(after.waiting.is_empty());
        assert_eq!(after.objects[1].body()["data"]["answer"], "yes");
    }
}
