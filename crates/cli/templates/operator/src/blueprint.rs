//! The objects of a {{kind}}, and the order in which they are applied.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt as _;
use serde_json::json;
use windlass::{Blueprint, Controls, Kinds, Needs, Plan, PlanError};

use crate::api::{{kind}};

/// Label of every object of a {{kind}} and of its pods; the value is the name of the {{kind}}.
pub const LABEL: &str = "{{group}}/{{singular}}";

/// The blueprint of a {{kind}}: a Deployment, and a Service for its pods.
#[derive(Clone, Copy, Debug)]
pub struct {{kind}}Blueprint;

impl Controls for {{kind}}Blueprint {
    type Owner = {{kind}};
    // Never change it: the objects in clusters carry this name.
    const NAME: &'static str = "{{name}}";

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<Deployment>().owns::<Service>();
    }
}

impl Blueprint for {{kind}}Blueprint {
    fn draw(&self, owner: &{{kind}}, _: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        // An object that has to wait for another one: plan.add(…).after([…]).
        plan.add(deployment(owner)?);
        plan.add(service(owner)?);
        Ok(())
    }
}

fn deployment(owner: &{{kind}}) -> Result<Deployment, PlanError> {
    let (name, labels, spec) = (owner.name_any(), labels(owner), &owner.spec);
    let container =
        json!({"name": "main", "image": spec.image, "ports": [{"name": "http", "containerPort": spec.port}]});
    Ok(serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": spec.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }))?)
}

fn service(owner: &{{kind}}) -> Result<Service, PlanError> {
    let (name, labels) = (owner.name_any(), labels(owner));
    Ok(serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
    }))?)
}

fn labels(owner: &{{kind}}) -> BTreeMap<&'static str, String> {
    [(LABEL, owner.name_any())].into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{{kind}}Spec;

    #[test]
    fn a_plan_has_a_deployment_and_a_service() -> Result<(), PlanError> {
        let spec = {{kind}}Spec { image: "nginx:1.29".into(), replicas: 2, port: 80 };
        let mut owner = {{kind}}::new("web", spec);
        owner.metadata.namespace = Some("default".into());
        // The plan, without a cluster.
        let plan = windlass::preview(&{{kind}}Blueprint, &owner)?.text().to_string();
        assert!(plan.contains("Deployment web") && plan.contains("Service web"), "{plan}");
        Ok(())
    }
}
