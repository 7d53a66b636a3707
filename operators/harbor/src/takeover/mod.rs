//! Taking over what the first operator of these kinds has built, in place.
//!
//! Nearly all of it needs nothing here: names, selectors, types of Secrets and keys are those of ever, what a Harbor controls is its own
//! whoever wrote it, and what was generated is kept. This is the rest: pods are to roll once. A component that the first operator wrote
//! is about to be written by our Harbor, so its own controller waits for that. And its [webhooks], which nobody answers any
//! more, are named.

pub mod webhooks;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use windlass::Blueprint as _;
use windlass::names::label;

use crate::api::Harbor;
use crate::api::children::Parent as _;
use crate::harbor::HarborBlueprint;
use crate::settings::HarborSettings;

/// In whose name cert-manager applies the Secrets of certificates. Others that wrote before us updated, and are taken over anyway.
pub const CERT_MANAGER: &str = "cert-manager-certificates-issuing";

/// Why nothing is done for a component yet: a Harbor has it, and has not taken it over. Not where nobody looks after Harbors.
pub fn awaits(component: &ObjectMeta, settings: &HarborSettings) -> Option<String> {
    let is_harbor = |one: &&OwnerReference| {
        one.controller == Some(true) && one.kind == "Harbor" && one.api_version.starts_with("goharbor.io/")
    };
    let harbor = component.owner_references.iter().flatten().find(is_harbor)?;
    let writer = component.labels.as_ref().and_then(|labels| labels.get(label::CONTROLLER));
    let is_taken = writer.is_some_and(|writer| writer == HarborBlueprint::NAME);
    (!is_taken && settings.runs(Harbor::CONTROLLER)).then(|| {
        format!(
            "waiting for Harbor {} to take it over: look at its status for what it waits for",
            harbor.name
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
        let of = |more: Value| awaits(&component(&more), &settings);
        let said = of(json!({"ownerReferences": owner("Harbor")})).unwrap();
        assert!(said.contains("Harbor sample"), "{said}");
        let taken = json!({"windlass.dev/controller": "harbor.goharbor.io"});
        assert_eq!(of(json!({"ownerReferences": owner("Harbor"), "labels": taken})), None);
        assert_eq!(of(json!({})), None, "a component alone");
        assert_eq!(of(json!({"ownerReferences": owner("Other")})), None);
        let without = HarborSettings { disabled: ["harbor".to_owned()].into(), ..settings.clone() };
        assert_eq!(awaits(&component(&json!({"ownerReferences": owner("Harbor")})), &without), None);
    }
}
