//! The Deployment of a Foo: as much of it as this controller writes, reads and compares. The rest is the
//! server's and other people's.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_runtime::cache::{OfKind, Shape};
use windlass_runtime::meta::{Meta, Uid};
use windlass_runtime::resource::ResourceType;

use crate::api::Foo;

/// A Deployment in the cache.
#[derive(Debug, Deserialize)]
pub struct LiveDeployment {
    /// Name, uid, labels and owners.
    pub metadata: Meta,
    /// Desired state, as far as this controller writes it.
    pub spec: Spec,
    /// Observed state, as far as this controller reads it.
    #[serde(default)]
    pub status: Status,
}

/// Spec of the Deployment. Written and read as one type, so that every field that is written is compared too.
#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Spec {
    /// Number of replicas. If unset, it is left to the server or to an autoscaler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Selector of its pods, which is immutable.
    pub selector: Selector,
    /// Template of its pods.
    pub template: Template,
}

/// Label selector of the pods.
#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Selector {
    match_labels: BTreeMap<String, String>,
}

/// Pod template: labels and containers.
#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Template {
    metadata: TemplateMeta,
    spec: PodSpec,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
struct TemplateMeta {
    labels: BTreeMap<String, String>,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
struct PodSpec {
    containers: Vec<Container>,
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
struct Container {
    name: String,
    image: String,
}

/// Status of the Deployment: only the field that a Foo reports.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// Number of available replicas. The server omits it if it is 0.
    pub available_replicas: i32,
}

impl Shape for LiveDeployment {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl OfKind for LiveDeployment {
    fn resource() -> ResourceType {
        ResourceType::of::<Deployment>()
    }
}

impl LiveDeployment {
    /// Returns true if the owners differ from those of the later version.
    pub fn changed_hands(&self, after: &Self) -> bool {
        self.metadata.owners != after.metadata.owners
    }

    /// Returns true if the Foo of this uid controls it. The uid decides, not the name.
    pub fn is_controlled_by(&self, foo: Uid) -> bool {
        self.metadata.controller().is_some_and(|owner| owner.uid == foo)
    }
}

impl Spec {
    /// Returns the spec that a Foo asks for.
    pub fn of(foo: &Foo) -> Self {
        let name = foo.metadata.name.clone().unwrap_or_default();
        let labels: BTreeMap<String, String> =
            [("app".into(), "nginx".into()), ("controller".into(), name)].into();
        let nginx = Container { name: "nginx".into(), image: "nginx:latest".into() };
        Self {
            replicas: foo.spec.replicas,
            selector: Selector { match_labels: labels.clone() },
            template: Template {
                metadata: TemplateMeta { labels },
                spec: PodSpec { containers: vec![nginx] },
            },
        }
    }

    /// Returns true if every desired field has its value. Fields that others added (a sidecar, a label,
    /// replicas where the Foo names none) do not count.
    pub fn has(&self, wanted: &Self) -> bool {
        let containers = &self.template.spec.containers;
        let labels = &self.template.metadata.labels;
        (wanted.replicas.is_none() || self.replicas == wanted.replicas)
            && wanted.template.metadata.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && wanted.template.spec.containers.iter().all(|container| containers.contains(container))
    }
}

/// Returns the manifest to apply. `live` is the uid of the Deployment in the cache, if there is one.
///
/// No object ever has the resource version `1`: with it, the server accepts the apply only if there is no
/// object of that name, and never merges it into somebody else's Deployment. The uid does the same for a
/// Deployment that is in the cache: the apply reaches that one, and no later one of the same name.
pub fn manifest(name: &str, owner: &OwnerReference, spec: &Spec, live: Option<Uid>) -> Value {
    let mut manifest = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": spec,
    });
    match live {
        None => manifest["metadata"]["resourceVersion"] = "1".into(),
        Some(uid) => manifest["metadata"]["uid"] = json!(uid),
    }
    manifest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::FooSpec;

    fn wanted(replicas: Option<i32>) -> Spec {
        Spec::of(&Foo::new("web", FooSpec { deployment_name: "web".into(), replicas }))
    }

    fn live(change: impl FnOnce(&mut Value)) -> Spec {
        let mut spec = serde_json::to_value(wanted(Some(2))).unwrap();
        change(&mut spec);
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn a_deployment_as_applied_has_no_difference() {
        assert!(live(|_| {}).has(&wanted(Some(2))));
    }

    #[test]
    fn every_change_of_what_is_ours_is_seen() {
        let changes: [fn(&mut Value); 4] = [
            |spec| spec["replicas"] = json!(3),
            |spec| spec["template"]["spec"]["containers"][0]["image"] = json!("nginx:1"),
            |spec| spec["template"]["spec"]["containers"] = json!([]),
            |spec| spec["template"]["metadata"]["labels"]["app"] = json!("apache"),
        ];
        for change in changes {
            assert!(!live(change).has(&wanted(Some(2))));
        }
    }

    #[test]
    fn fields_added_by_others_are_ignored() {
        let more = live(|spec| {
            spec["template"]["metadata"]["labels"]["team"] = json!("a");
            spec["template"]["spec"]["containers"]
                .as_array_mut()
                .unwrap()
                .push(json!({"name": "proxy", "image": "p"}));
            spec["strategy"] = json!({"type": "Recreate"});
        });
        assert!(more.has(&wanted(Some(2))));
    }

    #[test]
    fn a_foo_of_the_same_name_that_lives_later_is_another() {
        let [first, second] = [1, 2].map(|number| format!("00000000-0000-4000-8000-00000000000{number}"));
        let live = |controller: bool| -> LiveDeployment {
            let owner = json!({"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo", "name": "web", "uid": first,
                "controller": controller});
            let metadata = json!({"name": "d", "namespace": "n", "ownerReferences": [owner]});
            serde_json::from_value(json!({"metadata": metadata, "spec": wanted(None)})).unwrap()
        };
        let [first_uid, second_uid] = [&first, &second].map(|uid| uid.parse().unwrap());
        assert!(live(true).is_controlled_by(first_uid));
        assert!(!live(true).is_controlled_by(second_uid));
        assert!(!live(false).is_controlled_by(first_uid), "an owner is not yet the controller");
    }

    #[test]
    fn replicas_that_a_foo_does_not_name_are_left_to_others() {
        assert!(live(|spec| spec["replicas"] = json!(7)).has(&wanted(None)));
        assert!(serde_json::to_value(wanted(None)).unwrap().get("replicas").is_none());
    }
}
