//! The objects of a plan exactly as a first run would send them, without a cluster: for recorded tests of
//! digests, dependencies, order and pod tokens.
//!
//! It promises: every body comes from the code that a run calls; nothing is computed here. It prints no
//! secret values. It does not predict the server's responses.

use serde::Serialize;
use serde_json::Value;
use windlass_runtime::cache::Digest;
use windlass_runtime::json::typed;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::{Keep, Meta};
use windlass_runtime::resource::ResourceType;

use super::blueprint::Blueprint;
use super::preview::{describe, drawn};
use crate::apply::complete::Completion;
use crate::apply::writer::creation;
use crate::error::{NodeError, PlanError};
use crate::live::Live;
use crate::names::mark;
use crate::needs::fixed::Among;
use crate::nodes::{create_once, renew};
use crate::plan::desired::Desired;
use crate::plan::digest::{Content, DigestKey};
use crate::plan::drawn::Drawn;
use crate::plan::node::{Place, Sketched};
use crate::plan::owner::OwnerView;

/// The plan of an owner as a first run would apply it.
#[derive(Clone, Debug, Serialize)]
pub struct Applied {
    /// Every node except the inputs, in the order of the plan.
    pub nodes: Vec<AppliedNode>,
    /// Nodes that a run would wait for, with the reason. Nodes that come after them are recorded without
    /// their content.
    pub waiting: Vec<(String, String)>,
}

/// One node of an [`Applied`] plan.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppliedNode {
    /// The id of the node: `Deployment shop`.
    pub id: String,
    /// The kind of node, in the words of a [preview](crate::preview()).
    pub what: String,
    /// The ids of the nodes that it comes after, in the order of [`after`](crate::Planned::after).
    pub after: Vec<String>,
    /// For a [renewed](crate::Plan::renew) object: the digest of what it is made from, the beginning of its
    /// annotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_from: Option<String>,
    /// The body of the request that creates the object. For a Secret, keyed digests replace its content. For
    /// a generated or renewed object, these are its marks alone: its content is made when it is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

/// Returns what a first run would apply for an owner, which must have a uid, if the cluster contained exactly
/// these objects, each as JSON with its `kind`.
///
/// Inputs are taken from the objects, as in [`sketch`](crate::sketch()). So are generated and renewed
/// objects: their content flows into the nodes after them. Those that are not among the objects are in
/// [`Applied::waiting`].
pub fn applied<B: Blueprint>(
    blueprint: &B,
    owner: &B::Owner,
    objects: &[Value],
    key: &DigestKey,
) -> Result<Applied, PlanError> {
    let drawn = drawn(blueprint, owner, &Among(objects))?;
    let meta: Meta = typed(&serde_json::to_value(owner)?["metadata"])?;
    let owner = &OwnerView::of(owner, &meta, Vec::new())?;
    let completion = Completion { name: B::NAME, owner, mutations: &[] };
    Record { completion, objects, key, contents: vec![None; drawn.graph.len()], waiting: Vec::new() }
        .of(&drawn)
}

/// A plan that is being recorded.
struct Record<'a> {
    completion: Completion<'a>,
    objects: &'a [Value],
    key: &'a DigestKey,
    /// The content of each node, for those that come after it.
    contents: Vec<Option<Content>>,
    waiting: Vec<(String, String)>,
}

impl Record<'_> {
    fn of(mut self, drawn: &Drawn) -> Result<Applied, PlanError> {
        let all: Vec<&Place> = drawn.places().collect();
        let mut nodes = Vec::new();
        for place in &all {
            let (mut from, mut sent) = (None, None);
            match (place.node.sketch(), place.object()) {
                (Sketched::Object(planned), _) => sent = Some(self.apply(place, planned)?),
                (Sketched::Generated, Some((resource, key))) => {
                    let content = self.made(place, resource, key)?.map(|meta| create_once::content(&meta));
                    self.offer(place, content);
                    sent = Some(self.completion.marks(place, resource, key)?);
                }
                (Sketched::Renewed(recipe), Some((resource, key))) => {
                    let renewed = place.contents.iter().filter(|index| all[**index].node.is_renewed());
                    let contents = renewed.map(|index| self.contents[*index].clone());
                    from = Some(renew::made_from(recipe, contents));
                    let content = self.made(place, resource, key)?.map(|meta| renew::content(&meta));
                    self.offer(place, content);
                    sent = Some(self.completion.marks(place, resource, key)?);
                }
                (Sketched::Offers(digest), _) => self.offer(place, Some(digest.to_vec())),
                (Sketched::Waits(why), _) => self.wait(place, why),
                _ => {}
            }
            if place.node.is_need() {
                continue;
            }
            let body = sent.map(|sent| self.shown(&sent)).transpose()?;
            let after = place.after.iter().map(|index| all[*index].id.clone()).collect();
            let (id, what) = (place.id.clone(), describe(place));
            nodes.push(AppliedNode { id, what, after, made_from: from, body });
        }
        Ok(Applied { nodes, waiting: self.waiting })
    }

    /// Returns the object as it is applied at its creation, and records its content.
    fn apply(&mut self, place: &Place, planned: &Desired) -> Result<Desired, NodeError> {
        let mut desired = planned.clone();
        self.completion.mutate(place, &mut desired)?;
        let contents = place.contents.iter().filter_map(|index| self.contents[*index].clone());
        let contents: Vec<Content> = contents.collect();
        let desired = self.completion.complete(place, desired, &contents, Some(self.key), None)?;
        self.offer(place, desired.content_digest()?);
        Ok(desired)
    }

    fn offer(&mut self, place: &Place, digest: Option<Vec<u8>>) {
        self.contents[place.index] = digest.map(|digest| Content { id: place.id.clone(), digest });
    }

    /// Returns the metadata of a generated or renewed object, if it is among the objects.
    fn made(
        &mut self,
        place: &Place,
        resource: &ResourceType,
        key: &ObjectKey,
    ) -> Result<Option<Meta>, PlanError> {
        let is_it =
            |object: &&Value| object["kind"] == *resource.kind && object["metadata"]["name"] == *key.name();
        let Some(object) = self.objects.iter().find(is_it) else {
            self.wait(place, "it is made when it is created, and is not among the objects");
            return Ok(None);
        };
        let keep = Keep::default().annotation(mark::DUE).annotation(mark::MADE_FROM);
        let live: Live = keep.scope(|| typed(object))?;
        if live.metadata.uid.is_unknown() {
            return Err(PlanError::new(format!("{} among the objects has no uid", place.id)));
        }
        Ok(Some(live.metadata))
    }

    fn wait(&mut self, place: &Place, why: &str) {
        self.waiting.push((place.id.clone(), why.to_owned()));
    }

    /// Returns the body of the request that creates the object, without secret values.
    fn shown(&self, desired: &Desired) -> Result<Value, PlanError> {
        const PUBLIC: [&str; 5] = ["apiVersion", "kind", "metadata", "type", "immutable"];
        let mut body = creation(desired);
        let members = body.as_object_mut().filter(|_| desired.is_secret());
        for (name, value) in members.into_iter().flatten() {
            if !PUBLIC.contains(&&**name) {
                *value = self.key.digest(Digest::of(value)?).into();
            }
        }
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::styles::Controls;
    use crate::{Kinds, Needs, Plan};
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "example.com", version = "v1", kind = "Shop", namespaced, status = "crate::Status")]
    struct ShopSpec {
        swapped: bool,
    }

    /// A Deployment that comes after one dependency of every sort.
    struct Everything;

    impl Controls for Everything {
        type Owner = Shop;
        const NAME: &'static str = "shop.test";

        fn kinds(&self, kinds: &mut Kinds) {
            kinds.owns::<ConfigMap>().owns::<Secret>().owns::<Service>().owns::<Deployment>();
            kinds.requires::<Secret>();
        }
    }

    impl Blueprint for Everything {
        fn draw(&self, shop: &Shop, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
            let password = needs.require::<Secret>("password");
            let named = |name: &str| json!({"name": name});
            let map = json!({"metadata": named("settings"), "data": {"a": "x"}});
            let map = plan.add(serde_json::from_value::<ConfigMap>(map)?);
            let service = json!({"metadata": named("front"), "spec": {"ports": [{"port": 80}]}});
            let service = plan.add(serde_json::from_value::<Service>(service)?);
            let copy = json!({"metadata": named("copy"), "stringData": {"k": "hunter2"}});
            let copy = plan.add(serde_json::from_value::<Secret>(copy)?).after([&password]);
            let key = plan.create_once::<Secret>("key", |_| Err(PlanError::new("it is not made here")));
            let tls = plan.renew::<Secret>("tls", "a year", |_| Err(PlanError::new("nor is this")));
            let web = json!({"metadata": named("web"), "spec": {"selector": {}, "template": {"spec": {"containers": []}}}});
            let web = plan.add(serde_json::from_value::<Deployment>(web)?);
            if shop.spec.swapped {
                web.after([password, map, copy, service, key, tls]);
            } else {
                web.after([map, password, service, copy, key, tls]);
            }
            Ok(())
        }
    }

    fn record(swapped: bool, objects: &[Value]) -> Applied {
        let owner = json!({"apiVersion": "example.com/v1", "kind": "Shop", "spec": {"swapped": swapped},
            "metadata": {"name": "shop", "namespace": "home", "uid": "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d", "generation": 1}});
        let owner: Shop = serde_json::from_value(owner).unwrap();
        applied(&Everything, &owner, objects, &DigestKey::from_bytes(&[7; 32])).unwrap()
    }

    fn objects() -> Vec<Value> {
        let secret =
            |name: &str, uid: &str| json!({"kind": "Secret", "metadata": {"name": name, "uid": uid}});
        let mut password = secret("password", "00000000-0000-0000-0000-000000000001");
        password["data"] = json!({"a": "eA=="});
        let key = secret("key", "00000000-0000-0000-0000-000000000002");
        let mut tls = secret("tls", "00000000-0000-0000-0000-000000000003");
        tls["metadata"]["annotations"] =
            json!({mark::DUE: "2027-01-01T00:00:00Z", mark::MADE_FROM: "abc:tls.crt"});
        vec![password, key, tls]
    }

    fn body<'a>(applied: &'a Applied, id: &str) -> &'a Value {
        applied.nodes.iter().find(|node| node.id == id).unwrap().body.as_ref().unwrap()
    }

    /// A changed token restarts pods of every installation. The Service has no content and is not part of it.
    #[test]
    fn the_token_of_one_dependency_of_every_sort_never_changes() {
        let token = |applied: &Applied| {
            let web = body(applied, "Deployment web");
            let (marks, pods) =
                (&web["metadata"]["annotations"], &web["spec"]["template"]["metadata"]["annotations"]);
            let token = pods[mark::TEMPLATE].as_str().unwrap().to_owned();
            assert_eq!(marks[mark::DEPENDENCIES], format!("ac56d86a:{token}:{token}"));
            token
        };
        assert_eq!(token(&record(false, &objects())), "f3f400d1de99a1c3ca827ae9c9ab3eb5");
        assert_eq!(token(&record(true, &objects())), "125abb726fd867aa29009881ac003f7b");
    }

    #[test]
    fn every_mark_of_an_object_is_recorded_and_no_secret_value_is() {
        let applied = record(false, &objects());
        assert!(applied.waiting.is_empty(), "{:?}", applied.waiting);
        let ids: Vec<&str> = applied.nodes.iter().map(|node| &*node.id).collect();
        assert_eq!(
            ids,
            [
                "ConfigMap settings",
                "Service front",
                "Secret copy",
                "Secret key",
                "Secret tls",
                "Deployment web"
            ]
        );
        let after = [
            "ConfigMap settings",
            "Secret password",
            "Service front",
            "Secret copy",
            "Secret key",
            "Secret tls",
        ];
        assert_eq!(applied.nodes[5].after, after);
        assert_eq!(applied.nodes[4].made_from.as_deref(), Some("54526b8b3d996950d31018cecc3ac721"));
        let owner = json!([{"apiVersion": "example.com/v1", "kind": "Shop", "name": "shop", "controller": true,
            "blockOwnerDeletion": true, "uid": "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d"}]);
        let metadata = |name: &str, annotations: Value| {
            json!({"name": name, "namespace": "home", "resourceVersion": "1",
            "labels": {"windlass.dev/controller": "shop.test", "windlass.dev/owner": "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d"},
            "annotations": annotations, "ownerReferences": owner})
        };
        let copy = json!({"apiVersion": "v1", "kind": "Secret", "data": "a5dc5f12f1894332dd8d5c6e76195142",
            "metadata": metadata("copy", json!({mark::ORDER: "1", mark::DIGEST: "f4e60f31f81bba21e9cebeb56280df1f"}))});
        assert_eq!(*body(&applied, "Secret copy"), copy);
        let key = metadata("key", json!({mark::ORDER: "0", mark::RETAIN: "unplanned"}));
        assert_eq!(
            *body(&applied, "Secret key"),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": key})
        );
        let text = serde_json::to_string(&applied).unwrap();
        assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg=="), "{text}");
    }

    #[test]
    fn a_missing_object_is_waited_for_and_its_content_does_not_flow() {
        let whole = record(false, &objects());
        for (missing, id) in [(0, "Secret password"), (1, "Secret key"), (2, "Secret tls")] {
            let mut objects = objects();
            objects.remove(missing);
            let part = record(false, &objects);
            assert_eq!(part.waiting.iter().map(|(id, _)| &**id).collect::<Vec<_>>(), [id]);
            assert_ne!(body(&part, "Deployment web"), body(&whole, "Deployment web"), "{id}");
        }
    }

    /// A Deployment that comes behind a ConfigMap, or after it.
    struct Behind;

    impl Controls for Behind {
        type Owner = Shop;
        const NAME: &'static str = "shop.test";

        fn kinds(&self, kinds: &mut Kinds) {
            kinds.owns::<ConfigMap>().owns::<Deployment>();
        }
    }

    impl Blueprint for Behind {
        fn draw(&self, shop: &Shop, _: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
            let text = shop.metadata.annotations.as_ref().and_then(|all| all.get("text")).cloned();
            let map = json!({"metadata": {"name": "settings"}, "data": {"text": text}});
            let map = plan.add(serde_json::from_value::<ConfigMap>(map)?);
            let web = json!({"metadata": {"name": "web"}, "spec": {"selector": {}, "template": {"spec": {"containers": []}}}});
            let web = plan.add(serde_json::from_value::<Deployment>(web)?);
            if shop.spec.swapped {
                web.after([map])
            } else {
                web.behind([map])
            };
            Ok(())
        }
    }

    #[test]
    fn behind_orders_without_content_and_after_lets_content_flow() {
        let deployment = |after: bool, text: &str| {
            let owner = json!({"apiVersion": "example.com/v1", "kind": "Shop", "spec": {"swapped": after},
                "metadata": {"name": "shop", "namespace": "home", "uid": "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d", "annotations": {"text": text}}});
            let owner: Shop = serde_json::from_value(owner).unwrap();
            let applied = applied(&Behind, &owner, &[], &DigestKey::from_bytes(&[7; 32])).unwrap();
            let web = applied.nodes.iter().find(|node| node.id == "Deployment web").unwrap();
            assert_eq!(web.after, ["ConfigMap settings"]);
            web.body.clone().unwrap()
        };
        assert_eq!(deployment(false, "a"), deployment(false, "b"), "no pod is replaced");
        assert_eq!(deployment(false, "a")["metadata"]["annotations"][mark::ORDER], "1", "but it waits");
        assert_ne!(deployment(true, "a"), deployment(true, "b"));
    }
}
