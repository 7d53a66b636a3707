//! Taking over what the first operator of these kinds has built, in place.
//!
//! Nearly all of it needs nothing here: names, selectors, types of Secrets and keys are those of ever, what a Harbor controls is its own
//! whoever wrote it, and what was generated is kept. This is the rest: pods are to roll once. A component that the first operator wrote
//! is about to be written by our Harbor, so its own controller waits for that; and so does a Harbor for its HarborCluster. And its [webhooks], which nobody answers any
//! more, are named.

pub mod webhooks;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use windlass::Takeover;
use windlass::names::label;

use crate::api::Harbor;
use crate::api::children::Parent as _;
use crate::api::names::blueprint;
use crate::settings::{self, HarborSettings};

/// In whose name cert-manager applies the Secrets of certificates. Others that wrote before us updated, and are taken over anyway.
const CERT_MANAGER: &str = "cert-manager-certificates-issuing";

/// The takeover that every controller makes from the first operator of these kinds.
pub fn from_upstream<O>() -> Takeover<O> {
    Takeover::none().managers([CERT_MANAGER])
}

/// A kind whose objects write others of ours.
pub struct Writer {
    kind: &'static str,
    /// Its controller, in the label of what it wrote.
    name: &'static str,
    /// The word for its controller, in settings.
    controller: &'static str,
}

/// Writes components.
pub const HARBOR: Writer = Writer { kind: "Harbor", name: blueprint::HARBOR, controller: Harbor::CONTROLLER };
/// Writes a Harbor.
pub const HARBOR_CLUSTER: Writer =
    Writer { kind: "HarborCluster", name: blueprint::HARBOR_CLUSTER, controller: settings::HARBOR_CLUSTER };

/// Why nothing is done for an object yet: a writer has it, and has not taken it over. Not where nobody looks after such writers.
pub fn awaits(object: &ObjectMeta, writer: &Writer, settings: &HarborSettings) -> Option<String> {
    let is_writer = |one: &&OwnerReference| {
        one.controller == Some(true) && one.kind == writer.kind && one.api_version.starts_with("goharbor.io/")
    };
    let owner = object.owner_references.iter().flatten().find(is_writer)?;
    let wrote = object.labels.as_ref().and_then(|labels| labels.get(label::CONTROLLER));
    let is_taken = wrote.is_some_and(|wrote| wrote == writer.name);
    (!is_taken && settings.runs(writer.controller)).then(|| {
        format!(
            "waiting for {} {} to take it over: look at its status for what it waits for",
            writer.kind, owner.name
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn component(more: &Value) -> ObjectMeta {
        let mut meta = json!({"name": "sample-harbor"});
        meta.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(meta).unwrap()
    }

    #[test]
    fn a_component_waits_until_its_harbor_has_taken_it_over() {
        let owner = |kind: &str| json!([{"apiVersion": "goharbor.io/v1beta1", "kind": kind, "name": "sample", "uid": "u", "controller": true}]);
        let settings = HarborSettings::default();
        let of = |more: Value| awaits(&component(&more), &HARBOR, &settings);
        let said = of(json!({"ownerReferences": owner("Harbor")})).unwrap();
        assert!(said.contains("Harbor sample"), "{said}");
        let taken = json!({"windlass.dev/controller": "harbor.goharbor.io"});
        assert_eq!(of(json!({"ownerReferences": owner("Harbor"), "labels": taken})), None);
        assert_eq!(of(json!({})), None, "a component alone");
        assert_eq!(of(json!({"ownerReferences": owner("Other")})), None);
        let of_cluster = component(&json!({"ownerReferences": owner("HarborCluster")}));
        assert_eq!(awaits(&of_cluster, &HARBOR, &settings), None, "a writer of another kind");
        let said = awaits(&of_cluster, &HARBOR_CLUSTER, &settings).unwrap();
        assert!(said.contains("HarborCluster sample"), "{said}");
        let without = HarborSettings { disabled: ["harbor".to_owned()].into(), ..settings.clone() };
        assert_eq!(awaits(&component(&json!({"ownerReferences": owner("Harbor")})), &HARBOR, &without), None);
    }
}
