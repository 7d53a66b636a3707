//! Previews: the objects that a blueprint would apply for an owner, without a cluster.

use kube::ResourceExt as _;
use windlass_graph::Report;

use super::blueprint::Blueprint;
use crate::error::{NodeError, PlanError};
use crate::needs::Answers;
use crate::needs::fixed::{Among, Assumed};
use crate::plan::draw;
use crate::plan::drawn::Drawn;
use crate::plan::node::{Place, Sketched};
use crate::plan::{Desired, Kinds};

/// Returns the plan that a blueprint draws for an owner, as a report of a run that has not happened: to be
/// shown as text, a diagram or JSON.
///
/// Every object that the plan asks for is assumed to exist, but without values: a node that depends on a
/// value is drawn as if the value were missing.
pub fn preview<B: Blueprint>(blueprint: &B, owner: &B::Owner) -> Result<Report<NodeError>, PlanError> {
    Ok(drawn(blueprint, owner, &Assumed)?.graph.outline(describe))
}

/// The objects that a blueprint would apply for an owner if the cluster contained exactly the objects passed
/// in: for tests of rendered objects.
#[derive(Debug)]
pub struct Sketch {
    /// Every object that would be applied, in the order of the plan, with the mutations of its node.
    pub objects: Vec<Desired>,
    /// The nodes that have to wait, with the reason: missing needs and pending nodes.
    pub waiting: Vec<(String, String)>,
    /// The [advice](crate::Plan::advise) of the plan.
    pub advice: Vec<String>,
}

/// Draws the plan of an owner from the objects that it may ask for, each as JSON with its `kind`; an object
/// that is not among them does not exist.
pub fn sketch<B: Blueprint>(
    blueprint: &B,
    owner: &B::Owner,
    objects: &[serde_json::Value],
) -> Result<Sketch, PlanError> {
    let drawn = drawn(blueprint, owner, &Among(objects))?;
    let mut sketch = Sketch { objects: Vec::new(), waiting: Vec::new(), advice: drawn.advice.clone() };
    for place in drawn.places() {
        match place.node.sketch() {
            Sketched::Object(desired) => {
                let mut desired = desired.clone();
                place.options.mutations.iter().try_for_each(|mutation| mutation(&mut desired))?;
                sketch.objects.push(desired);
            }
            Sketched::Waits(why) => sketch.waiting.push((place.id.clone(), why.to_owned())),
            Sketched::Generated | Sketched::Renewed(_) | Sketched::Offers(_) | Sketched::Nothing => {}
        }
    }
    Ok(sketch)
}

pub(super) fn drawn<B: Blueprint>(
    blueprint: &B,
    owner: &B::Owner,
    answers: &dyn Answers,
) -> Result<Drawn, PlanError> {
    let mut kinds = Kinds::default();
    blueprint.kinds(&mut kinds);
    draw::once(answers, &kinds, owner.namespace().as_deref(), &|needs, plan| {
        blueprint.draw(owner, needs, plan)
    })
}

/// Describes in a few words what is done for a node.
pub(super) fn describe(place: &Place) -> String {
    let retained = place.retained() && !matches!(place.node.sketch(), Sketched::Waits(_));
    format!("{}{}", place.node.describe(), if retained { ", retained" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::styles::Controls;
    use crate::{Needs, Plan};
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

    /// A blueprint that asks for a Secret that a ConfigMap names.
    struct Indirect;

    impl Controls for Indirect {
        type Owner = Shop;
        const NAME: &'static str = "indirect";

        fn kinds(&self, kinds: &mut Kinds) {
            kinds.owns::<Secret>().requires::<Secret>().requires::<ConfigMap>();
        }
    }

    impl Blueprint for Indirect {
        fn draw(&self, shop: &Shop, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
            let settings = needs.object::<ConfigMap>(&shop.spec.settings).get();
            let Some(name) = settings.and_then(|settings| settings.data?.remove("secret")) else {
                plan.pending::<Secret>("copy", "nobody names a Secret");
                return Ok(());
            };
            let password = needs.read::<Secret>(&name);
            let text = password.text("key").unwrap_or_default();
            let copy: Secret =
                serde_json::from_value(json!({"metadata": {"name": "copy"}, "stringData": {"key": text}}))?;
            plan.add(copy).after([password.node()]).mutate(|copy| {
                copy.label("copied", "yes");
                Ok(())
            });
            Ok(())
        }
    }

    fn sketched(objects: &[serde_json::Value]) -> Sketch {
        let mut shop = Shop::new("shop", ShopSpec { settings: "settings".into() });
        shop.metadata.namespace = Some("home".into());
        sketch(&Indirect, &shop, objects).unwrap()
    }

    #[test]
    fn an_object_that_an_input_names_is_an_input_too() {
        let settings =
            json!({"kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"secret": "password"}});
        let password = json!({"kind": "Secret", "metadata": {"name": "password"}, "data": {"key": "eA=="}});
        let missing = "it does not exist: create it, or change the reference to it".to_owned();
        let nothing = sketched(&[]);
        let waiting = [
            ("ConfigMap settings".to_owned(), missing.clone()),
            ("Secret copy".to_owned(), "nobody names a Secret".to_owned()),
        ];
        assert_eq!((nothing.objects.len(), &nothing.waiting[..]), (0, &waiting[..]));
        assert_eq!(
            sketched(std::slice::from_ref(&settings)).waiting,
            [("Secret password".to_owned(), missing)]
        );
        let whole = sketched(&[settings, password]);
        assert!(whole.waiting.is_empty());
        assert_eq!(whole.objects[0].body()["data"]["key"], "eA==");
        assert_eq!(whole.objects[0].body()["metadata"]["labels"]["copied"], "yes");
    }

    /// A blueprint that reads an object that it has made itself, and makes another object from it.
    struct Looking;

    impl Controls for Looking {
        type Owner = Shop;
        const NAME: &'static str = "looking";

        fn kinds(&self, kinds: &mut Kinds) {
            kinds.owns::<ConfigMap>().requires::<ConfigMap>();
        }
    }

    impl Blueprint for Looking {
        fn draw(&self, _: &Shop, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
            let made = needs.observed::<ConfigMap>("made")?;
            let answer = made.as_ref().and_then(|made| made.get()?.data?.remove("answer"));
            let known = made.as_ref().and_then(|made| made.live(|live| live.metadata.generation));
            assert_eq!(answer.is_some(), known.is_some());
            plan.add(serde_json::from_value::<ConfigMap>(json!({"metadata": {"name": "made"}}))?);
            match answer {
                Some(answer) => {
                    let next = json!({"metadata": {"name": "next"}, "data": {"answer": answer}});
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
    fn an_object_of_the_plan_can_be_observed_and_is_not_waited_for() {
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

    #[derive(Deserialize)]
    struct Member {
        metadata: windlass_runtime::meta::Meta,
    }

    impl windlass_runtime::cache::Shape for Member {
        fn meta(&self) -> &windlass_runtime::meta::Meta {
            &self.metadata
        }
    }

    /// A blueprint that counts the ConfigMaps with a label, and declares the list or not.
    struct Counting {
        forgets: bool,
    }

    impl Controls for Counting {
        type Owner = Shop;
        const NAME: &'static str = "counting";

        fn kinds(&self, kinds: &mut Kinds) {
            kinds.owns::<ConfigMap>();
            if !self.forgets {
                kinds.lists::<ConfigMap, Member>("example.com/shop");
            }
        }
    }

    impl Blueprint for Counting {
        fn draw(&self, _: &Shop, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
            let members = needs.labelled::<ConfigMap, Member>("example.com/shop", "shop").or_wait()?;
            let count = json!({"metadata": {"name": "count"}, "data": {"count": members.len().to_string()}});
            plan.add(serde_json::from_value::<ConfigMap>(count)?);
            Ok(())
        }
    }

    #[test]
    fn a_list_by_label_is_read_from_the_objects_and_has_to_be_declared() {
        let mut shop = Shop::new("shop", ShopSpec { settings: "settings".into() });
        shop.metadata.namespace = Some("home".into());
        let map = |name: &str, shop: &str| json!({"kind": "ConfigMap", "metadata": {"name": name, "labels": {"example.com/shop": shop}}});
        let objects = [map("a", "shop"), map("b", "shop"), map("c", "other")];
        let counted = sketch(&Counting { forgets: false }, &shop, &objects).unwrap();
        assert_eq!(counted.objects[0].body()["data"]["count"], "2");
        let error = sketch(&Counting { forgets: true }, &shop, &objects).unwrap_err().to_string();
        assert!(error.contains("kinds.lists::<ConfigMap, _>(\"example.com/shop\")"), "{error}");
    }
}
