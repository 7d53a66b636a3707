//! A kind whose plan is what its spec says, word for word: for tables of objects.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v1::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass::{Blueprint, Conflicts, DrawError, Immutable, Inputs, Kinds, Plan, Resolved, Status};
use windlass_runtime::resource::ResourceType;

#[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[kube(group = "test.windlass.dev", version = "v1", kind = "Bundle", namespaced, status = "Status")]
pub(crate) struct BundleSpec {
    /// Objects, in order; each comes after those named in its `after`.
    #[serde(default)]
    pub(crate) items: Vec<Item>,
    /// Secrets that are required.
    #[serde(default)]
    pub(crate) secrets: Vec<String>,
    /// Makes the draw fail.
    #[serde(default)]
    pub(crate) broken: bool,
    /// Leaves out all but this many items though the spec has them: a mistake of the author.
    #[serde(default)]
    pub(crate) only: Option<usize>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Item {
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true), schema_with = "any_object")]
    pub(crate) object: Value,
    /// `Kind name` of earlier items, or `Secret name` of required ones.
    #[serde(default)]
    pub(crate) after: Vec<String>,
    #[serde(default)]
    pub(crate) report_conflicts: bool,
    #[serde(default)]
    pub(crate) recreate: bool,
    #[serde(default)]
    pub(crate) retain: bool,
}

fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

impl Item {
    pub(crate) fn of(object: Value) -> Self {
        Self { object, ..Self::default() }
    }

    pub(crate) fn after(mut self, other: &str) -> Self {
        self.after.push(other.to_owned());
        self
    }
}

/// Draws what the spec says. Two of them differ in `version` as two releases of an operator do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bundles {
    /// If any, a label that this release of the operator puts on everything.
    pub(crate) release: Option<&'static str>,
    /// How many items at most this release of the operator draws.
    pub(crate) most: Option<usize>,
    pub(crate) ordered: bool,
}

impl Blueprint for Bundles {
    type Owner = Bundle;
    const NAME: &'static str = "bundle.test.windlass.dev";

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<ConfigMap>().owns::<Secret>().owns::<Service>().owns::<ServiceAccount>();
        kinds
            .owns::<Deployment>()
            .owns::<StatefulSet>()
            .owns::<DaemonSet>()
            .owns::<Job>()
            .owns::<PersistentVolumeClaim>();
        kinds.owns::<Ingress>().owns::<NetworkPolicy>().owns::<Role>().owns::<RoleBinding>();
        kinds.owns::<HorizontalPodAutoscaler>().owns::<Bundle>();
        kinds.requires::<Secret>();
    }

    fn inputs(&self, bundle: &Bundle, inputs: &mut Inputs) {
        for name in &bundle.spec.secrets {
            inputs.require::<Secret>(name);
        }
    }

    fn ordered_deletion(&self, _: &Bundle) -> bool {
        self.ordered
    }

    fn draw(&self, bundle: &Bundle, given: &Resolved, plan: &mut Plan) -> Result<(), DrawError> {
        if bundle.spec.broken {
            return Err(DrawError::new("spec.broken is true: make it false"));
        }
        let mut planned: Vec<(String, windlass::Planned)> = bundle
            .spec
            .secrets
            .iter()
            .map(|name| (format!("Secret {name}"), given.get::<Secret>(name)))
            .collect();
        for item in bundle.spec.items.iter().take(self.most.or(bundle.spec.only).unwrap_or(usize::MAX)) {
            let text = |pointer: &str| {
                item.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let mut object = item.object.clone();
            if let Some(release) = self.release {
                object["metadata"]["labels"]["release"] = release.into();
            }
            let node = plan.add_json(kind_of(&text("/apiVersion"), &text("/kind")), object);
            let after = planned.iter().filter(|(id, _)| item.after.contains(id)).map(|(_, node)| node);
            let mut node = node.after(after);
            if item.report_conflicts {
                node = node.conflicts(Conflicts::Report);
            }
            if item.recreate {
                node = node.immutable(Immutable::Recreate);
            }
            if item.retain {
                node = node.retain();
            }
            planned.push((format!("{} {}", text("/kind"), text("/metadata/name")), node));
        }
        Ok(())
    }
}

fn kind_of(api_version: &str, kind: &str) -> ResourceType {
    let known = [
        ResourceType::of::<ConfigMap>(),
        ResourceType::of::<Secret>(),
        ResourceType::of::<Service>(),
        ResourceType::of::<ServiceAccount>(),
        ResourceType::of::<Deployment>(),
        ResourceType::of::<StatefulSet>(),
        ResourceType::of::<DaemonSet>(),
        ResourceType::of::<Job>(),
        ResourceType::of::<PersistentVolumeClaim>(),
        ResourceType::of::<Ingress>(),
        ResourceType::of::<NetworkPolicy>(),
        ResourceType::of::<Role>(),
        ResourceType::of::<RoleBinding>(),
        ResourceType::of::<HorizontalPodAutoscaler>(),
        ResourceType::of::<Bundle>(),
    ];
    let found = known.into_iter().find(|known| known.api_version() == api_version && known.kind == kind);
    found.unwrap_or_else(|| panic!("the kit does not know {kind} of {api_version}"))
}
