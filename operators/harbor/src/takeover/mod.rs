//! Takeover of the objects of the upstream operator, in place.
//!
//! Most of it needs no code: names, selectors, types and keys of Secrets are those of upstream, objects
//! controlled by a Harbor belong to it whoever wrote them, and generated values are kept. What is left: pods
//! should be replaced only once. A component that upstream wrote is about to be rewritten by our Harbor
//! controller, so the component's own controller waits for that; likewise a Harbor waits for its
//! HarborCluster. Webhooks of the upstream operator that no longer have a server are reported by [webhooks].

pub mod webhooks;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use windlass::Takeover;
use windlass::names::label;

use crate::api::Harbor;
use crate::api::children::Parent as _;
use crate::api::names::blueprint;
use crate::settings::{self, HarborSettings};

/// Field manager of the upstream operator, whose program is called `manager`.
const UPSTREAM: &str = "manager";
/// Field manager with which cert-manager applies the Secrets of certificates.
const CERT_MANAGER: &str = "cert-manager-certificates-issuing";

/// Returns the takeover from the upstream operator, for every controller.
pub(crate) fn from_upstream<O>() -> Takeover<O> {
    Takeover::none().managers([UPSTREAM, CERT_MANAGER])
}

/// A kind whose controller writes other objects of ours.
pub struct Writer {
    kind: &'static str,
    /// Name of the controller in the label of the objects that it writes.
    name: &'static str,
    /// Name of the controller in settings.
    controller: &'static str,
}

/// The Harbor controller, which writes components.
pub(crate) const HARBOR: Writer =
    Writer { kind: "Harbor", name: blueprint::HARBOR, controller: Harbor::CONTROLLER };
/// The HarborCluster controller, which writes a Harbor.
pub(crate) const HARBOR_CLUSTER: Writer =
    Writer { kind: "HarborCluster", name: blueprint::HARBOR_CLUSTER, controller: settings::HARBOR_CLUSTER };

/// Returns the reason why an object is not reconciled yet: its owner has not taken it over. `None` if the
/// owner's controller is disabled.
pub(crate) fn awaits(object: &ObjectMeta, writer: &Writer, settings: &HarborSettings) -> Option<String> {
    let is_writer = |one: &&OwnerReference| {
        one.controller == Some(true) && one.kind == writer.kind && one.api_version.starts_with("goharbor.io/")
    };
    let owner = object.owner_references.iter().flatten().find(is_writer)?;
    let wrote = object.labels.as_ref().and_then(|labels| labels.get(label::CONTROLLER));
    let is_taken = wrote.is_some_and(|wrote| wrote == writer.name);
    (!is_taken && settings.runs(writer.controller)).then(|| {
        format!("waiting for {} {} to take it over: see the status of that object", writer.kind, owner.name)
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
        let message = of(json!({"ownerReferences": owner("Harbor")})).unwrap();
        assert!(message.contains("Harbor sample"), "{message}");
        let taken = json!({"windlass.dev/controller": "harbor.goharbor.io"});
        assert_eq!(of(json!({"ownerReferences": owner("Harbor"), "labels": taken})), None);
        assert_eq!(of(json!({})), None, "a component alone");
        assert_eq!(of(json!({"ownerReferences": owner("Other")})), None);
        let of_cluster = component(&json!({"ownerReferences": owner("HarborCluster")}));
        assert_eq!(awaits(&of_cluster, &HARBOR, &settings), None, "a writer of another kind");
        let message = awaits(&of_cluster, &HARBOR_CLUSTER, &settings).unwrap();
        assert!(message.contains("HarborCluster sample"), "{message}");
        let without = HarborSettings { disabled: ["harbor".to_owned()].into(), ..settings.clone() };
        assert_eq!(awaits(&component(&json!({"ownerReferences": owner("Harbor")})), &HARBOR, &without), None);
    }
}
