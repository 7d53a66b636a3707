//! A kind with a plan that consists of the objects in its spec: for tables of objects.

use anyhow::Result;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v1::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::{CronJob, Job};
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
    Status, Takeover,
};
use windlass_runtime::resource::ResourceType;
use windlass_testenv::{Mark, Story, eventually};

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
    /// A number, though the schema accepts any value: as in an object that is older than its CRD.
    #[schemars(schema_with = "any_value")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) number: Option<u8>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[allow(clippy::struct_excessive_bools)] // each is an option of a node
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
    /// The object does not wait for others when it leaves the plan.
    #[serde(default)]
    pub(crate) pruned_first: bool,
    /// The object is deleted with its owner and when it leaves the plan, even if it holds data.
    #[serde(default)]
    pub(crate) delete: bool,
    /// The object is not planned, and goes when these items (`Kind name`) are ready.
    #[serde(default)]
    pub(crate) replaced_by: Option<Vec<String>>,
}

/// A ConfigMap of this name.
pub(crate) fn note(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

/// A Deployment of this name whose pods follow a story.
pub(crate) fn deployment(name: &str, story: Story) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}, "annotations": story.annotations()},
            "spec": {"containers": [{"name": "main", "image": "shop:1"}]},
        },
    }})
}

fn any_value(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"x-kubernetes-preserve-unknown-fields": true})
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

    pub(crate) fn pruned_first(mut self) -> Self {
        self.pruned_first = true;
        self
    }

    pub(crate) fn delete(mut self) -> Self {
        self.delete = true;
        self
    }

    pub(crate) fn replaced_by(mut self, other: &str) -> Self {
        self.replaced_by.get_or_insert_default().push(other.to_owned());
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
    /// Must be an object, if it is there.
    #[schemars(schema_with = "part")]
    #[serde(default)]
    pub(crate) part: Value,
    /// May be null, too.
    #[schemars(schema_with = "loose_part")]
    #[serde(default)]
    pub(crate) loose: Value,
}

fn part(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "properties": {
        "color": {"type": "string"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    }})
}

fn loose_part(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut part = part(generator);
    part.insert("nullable".to_owned(), true.into());
    part
}

fn ports_with_defaults(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object", "properties": {
        "port": {"type": "integer"},
        "protocol": {"type": "string", "default": "TCP"},
        "open": {"type": "boolean", "default": true},
    }}})
}

/// A blueprint that draws the items of the spec. Two of them differ in `release` as two releases of an
/// operator do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bundles {
    /// A label that this release of the operator sets on every object, if any.
    pub(crate) release: Option<&'static str>,
    /// The largest number of items that this release of the operator draws.
    pub(crate) most: Option<usize>,
    /// Another blueprint, which creates the Secrets.
    pub(crate) maker: Option<&'static str>,
    /// The field manager of an operator that it replaces.
    pub(crate) former: Option<&'static str>,
}

/// Returns a controller that reconciles one bundle after the other, so that the work for one is done when the
/// next is reconciled; and with a write budget that is large enough for a table of repairs.
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
        loop {
            let mut bundle = bundles.get(name).await?;
            bundle.spec = spec.clone();
            match bundles.replace(name, &PostParams::default(), &bundle).await {
                // The operator has written the status in between.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                replaced => return Ok(replaced.map(drop)?),
            }
        }
    }

    /// Annotates a bundle, as a user does.
    pub(crate) async fn ask(&self, name: &str, annotation: &str, value: &str) -> Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {annotation: value}}}));
        self.namespace.api::<Bundle>().patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Triggers a reconcile of a bundle, and returns when it has ended.
    ///
    /// The bundle is touched, and then another bundle, the sentinel, becomes ready with a new spec when it is
    /// reconciled. One watch delivers both, and they are [reconciled in turn](one_by_one); only if the first
    /// was being reconciled when it was touched, its turn comes after the other's. So after two rounds, a
    /// whole run has begun since the first touch, and has ended.
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

    /// Returns the operator's writes of an object since the mark: `deployments web`.
    pub(crate) fn writes_of(&self, mark: Mark, object: &str) -> Result<Vec<String>> {
        let end = format!(" {object}");
        Ok(self.writes_since(mark)?.into_iter().filter(|write| write.ends_with(&end)).collect())
    }

    /// Returns the operator's writes since the mark, without statuses and without those of the sentinel.
    pub(crate) fn object_writes(&self, mark: Mark) -> Result<Vec<String>> {
        Ok(self.writes_since(mark)?.into_iter().filter(|write| !write.contains("bundles/status")).collect())
    }

    /// Returns objects of any kind of this namespace, as JSON.
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

    /// Waits until an object meets the expectation, and returns it.
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
            .owns::<CronJob>()
            .owns::<PersistentVolumeClaim>();
        kinds.owns::<Ingress>().owns::<NetworkPolicy>().owns::<Role>().owns::<RoleBinding>();
        kinds.owns::<HorizontalPodAutoscaler>().owns::<Bundle>().owns::<Gadget>();
        kinds.requires::<Secret>();
        if let Some(maker) = self.maker {
            kinds.reads_made_by::<Secret>(maker);
        }
    }

    fn takeover(&self) -> Takeover<Bundle> {
        Takeover::none().managers(self.former)
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
            if item.pruned_first {
                node = node.pruned_first();
            }
            if item.delete {
                node = node.delete();
            }
            if let Some(others) = &item.replaced_by {
                let others = planned.iter().filter(|(id, _)| others.contains(id)).map(|(_, node)| node);
                node = node.when(false).replaced_by(others);
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
        ResourceType::of::<CronJob>(),
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
