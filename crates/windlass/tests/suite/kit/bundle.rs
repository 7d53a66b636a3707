//! A kind whose plan is what its spec says, word for word: for tables of objects.

use anyhow::Result;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v1::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::CustomResource;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::{
    Blueprint, Conflicts, Controls, Deletion, Immutable, Kinds, Needs, Plan, PlanController, PlanError,
    Status,
};
use windlass_runtime::resource::ResourceType;
use windlass_testenv::{Mark, eventually};

use super::Corner;

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
    /// The bundle is deleted in order.
    #[serde(default)]
    pub(crate) ordered: bool,
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

    pub(crate) fn recreate(mut self) -> Self {
        self.recreate = true;
        self
    }

    pub(crate) fn report_conflicts(mut self) -> Self {
        self.report_conflicts = true;
        self
    }
}

/// A kind of somebody else's, with a list that is one value and defaults inside of it.
#[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[kube(group = "test.windlass.dev", version = "v1", kind = "Gadget", namespaced)]
pub(crate) struct GadgetSpec {
    #[schemars(schema_with = "ports_with_defaults")]
    #[serde(default)]
    pub(crate) ports: Vec<Value>,
    #[serde(default)]
    pub(crate) armed: Option<bool>,
    #[serde(default)]
    pub(crate) words: Option<String>,
}

fn ports_with_defaults(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object", "properties": {
        "port": {"type": "integer"},
        "protocol": {"type": "string", "default": "TCP"},
        "open": {"type": "boolean", "default": true},
    }}})
}

/// Draws what the spec says. Two of them differ in `version` as two releases of an operator do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bundles {
    /// If any, a label that this release of the operator puts on everything.
    pub(crate) release: Option<&'static str>,
    /// How many items at most this release of the operator draws.
    pub(crate) most: Option<usize>,
    /// Another blueprint, which makes the Secrets.
    pub(crate) maker: Option<&'static str>,
}

/// A controller that takes one bundle after the other, so that what it did for one is done when the next is told of; and that
/// repairs as often as a table wants it to.
pub(crate) fn one_by_one(bundles: Bundles) -> PlanController<Bundles> {
    PlanController::of(bundles).workers(1).writes(1000)
}

impl Corner {
    pub(crate) async fn bundle(&self, name: &str, items: Vec<Item>) -> Result<()> {
        let bundle = Bundle::new(name, BundleSpec { items, ..BundleSpec::default() });
        self.namespace.api::<Bundle>().create(&PostParams::default(), &bundle).await?;
        Ok(())
    }

    /// Gives a bundle another spec.
    pub(crate) async fn respec(&self, name: &str, spec: &BundleSpec) -> Result<()> {
        let bundles = self.namespace.api::<Bundle>();
        let mut bundle = bundles.get(name).await?;
        bundle.spec = spec.clone();
        bundles.replace(name, &PostParams::default(), &bundle).await?;
        Ok(())
    }

    /// Annotates a bundle, as a user does.
    pub(crate) async fn ask(&self, name: &str, annotation: &str, value: &str) -> Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {annotation: value}}}));
        self.namespace.api::<Bundle>().patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Has a bundle reconciled again, and returns when it was.
    ///
    /// It is touched, and then another bundle, which tells of its spec when it was looked at. Both come by one watch and are
    /// [taken in turn](one_by_one); only if the first was at work when it was touched, its turn comes after the other's. So
    /// when this was done twice, a whole run has begun since the first touch, and has ended.
    pub(crate) async fn nudge(&self, name: &str) -> Result<()> {
        let bundles = self.namespace.api::<Bundle>();
        for _ in 0..2 {
            let turn = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_nanos();
            self.ask(name, "test.windlass.dev/touched", &turn.to_string()).await?;
            let only = usize::try_from(turn % 1_000_000_000_000)?;
            let next = json!({"apiVersion": "test.windlass.dev/v1", "kind": "Bundle", "metadata": {"name": "sentinel"},
                "spec": {"items": [], "secrets": [], "only": only}});
            bundles.patch("sentinel", &PatchParams::apply("test").force(), &Patch::Apply(next)).await?;
            self.until::<Bundle>("sentinel", "Ready", "True").await?;
        }
        Ok(())
    }

    /// How often the operator wrote an object since: `deployments web`.
    pub(crate) fn writes_of(&self, mark: Mark, object: &str) -> Result<Vec<String>> {
        let end = format!(" {object}");
        Ok(self.writes_since(mark)?.into_iter().filter(|write| write.ends_with(&end)).collect())
    }

    /// What the operator wrote since, but for statuses and what belongs to the sentinel.
    pub(crate) fn object_writes(&self, mark: Mark) -> Result<Vec<String>> {
        Ok(self.writes_since(mark)?.into_iter().filter(|write| !write.contains("bundles/status")).collect())
    }

    /// Objects of any kind of this namespace, as JSON.
    pub(crate) fn objects(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = kind_of(api_version, kind);
        let plain = ApiResource {
            group: resource.group.to_string(),
            version: resource.version.to_string(),
            api_version: resource.api_version(),
            kind: resource.kind.to_string(),
            plural: resource.plural.to_string(),
        };
        Api::namespaced_with(self.env.client(), self.namespace.name(), &plain)
    }

    /// Waits until an object is as it should be, and returns it.
    pub(crate) async fn until_object(
        &self,
        api_version: &str,
        kind: &str,
        name: &str,
        is_right: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let api = self.objects(api_version, kind);
        let found = eventually(format!("{kind} {name} is as it should be"), || async {
            let object = api.get_opt(name).await.map_err(|error| error.to_string())?;
            let object = serde_json::to_value(object).map_err(|error| error.to_string())?;
            if is_right(&object) { Ok(object) } else { Err(object.to_string()) }
        })
        .await?;
        Ok(found)
    }
}

impl Controls for Bundles {
    type Owner = Bundle;
    const NAME: &'static str = "bundle.test.windlass.dev";
    const DELETION: Deletion<Bundle> = Deletion::OrderedWhen(|bundle| bundle.spec.ordered);

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<ConfigMap>().owns::<Secret>().owns::<Service>().owns::<ServiceAccount>();
        kinds
            .owns::<Deployment>()
            .owns::<StatefulSet>()
            .owns::<DaemonSet>()
            .owns::<Job>()
            .owns::<PersistentVolumeClaim>();
        kinds.owns::<Ingress>().owns::<NetworkPolicy>().owns::<Role>().owns::<RoleBinding>();
        kinds.owns::<HorizontalPodAutoscaler>().owns::<Bundle>().owns::<Gadget>();
        kinds.requires::<Secret>();
        if let Some(maker) = self.maker {
            kinds.reads_made_by::<Secret>(maker);
        }
    }
}

impl Blueprint for Bundles {
    fn draw(&self, bundle: &Bundle, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        if bundle.spec.broken {
            return Err(PlanError::new("spec.broken is true: make it false"));
        }
        let mut planned: Vec<(String, windlass::Planned)> = bundle
            .spec
            .secrets
            .iter()
            .map(|name| (format!("Secret {name}"), needs.require::<Secret>(name)))
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
        ResourceType::of::<Gadget>(),
    ];
    let found = known.into_iter().find(|known| known.api_version() == api_version && known.kind == kind);
    found.unwrap_or_else(|| panic!("the kit does not know {kind} of {api_version}"))
}
