//! The blueprint of all components: from the objects of a component to its plan.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use serde_json::{Value, json};
use windlass::{Blueprint, Controls, Kinds, Needs, OwnerKind, Plan, PlanError, PlanState, Planned, Takeover};

use crate::api::children::Component;
use crate::api::names::blueprint;
use crate::api::status::condition::IN_PROGRESS;
use crate::catalogue;
use crate::config::{Confidential, Rendered};
use crate::schema::{Readings, SchemaCheck};
use crate::settings::HarborSettings;
use crate::takeover;

use super::{Pod, Site, Sources, Strategy, deployment, disruption, policy, version};

/// A ConfigMap of a component.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of the ConfigMap.
    pub name: String,
    /// Content of the ConfigMap. If it is empty, no ConfigMap is created.
    pub data: BTreeMap<String, String>,
}

/// A Secret of a component.
#[derive(Clone)]
pub(crate) struct Vault {
    /// Name of the Secret.
    pub name: String,
    /// Content of the Secret. If it is empty, no Secret is created.
    pub data: BTreeMap<String, Confidential>,
}

/// The objects of a component.
pub struct ComponentObjects {
    /// The Services of the component.
    pub(crate) services: Vec<Service>,
    /// The ConfigMaps of the component.
    pub(crate) configs: Vec<Config>,
    /// The Secret of the component.
    pub(crate) secret: Option<Vault>,
    /// The pod template.
    pub(crate) pod: Pod,
    /// The update strategy of the Deployment.
    pub(crate) strategy: Strategy,
    /// Annotations of the Deployment; a change of them replaces no pods.
    pub(crate) annotations: BTreeMap<String, String>,
    /// The NetworkPolicies, created if they are enabled.
    pub(crate) policies: Vec<NetworkPolicy>,
    /// The schema check of the database that the pods migrate.
    pub(crate) schema: Option<SchemaCheck>,
}

impl ComponentObjects {
    /// Returns the objects of a component with one ConfigMap and one Secret named after the site.
    pub(crate) fn new(site: &Site, rendered: Rendered, pod: Pod, services: Vec<Service>) -> Self {
        Self {
            services,
            configs: vec![Config { name: site.name().to_owned(), data: rendered.config }],
            secret: Some(Vault { name: site.name().to_owned(), data: rendered.secret }),
            pod,
            strategy: Strategy::default(),
            annotations: BTreeMap::new(),
            policies: Vec::new(),
            schema: None,
        }
    }
}

/// A component that runs as a Deployment of its own.
pub trait Deployed: OwnerKind<Scope = k8s_openapi::NamespaceResourceScope> + Component {
    /// Name of the blueprint. Persisted: it never changes.
    const BLUEPRINT: &'static str;
    /// The component in the catalogue.
    const COMPONENT: catalogue::Component;

    /// Declares the kinds that the component reads, in addition to Secrets.
    fn requires(kinds: &mut Kinds) {
        let _ = kinds;
    }

    /// Returns the objects of the component. Registers everything that they read in [`Sources`].
    fn objects(
        &self,
        context: &RenderContext<'_>,
        sources: &mut Sources<'_>,
    ) -> Result<ComponentObjects, PlanError>;

    /// Returns additional status fields, as in [`Controls::status`].
    fn status_fields(&self, seen: &PlanState<'_>, readings: &Readings) -> Option<Value> {
        let _ = (seen, readings);
        None
    }
}

/// The context in which a component is rendered.
pub struct RenderContext<'a> {
    /// Names and labels of the component's children.
    pub(crate) site: &'a Site,
    /// The release of Harbor that the component belongs to.
    pub(crate) release: &'a catalogue::Release,
    /// The image of the component.
    pub(crate) image: String,
    /// The operator's settings.
    pub(crate) settings: &'a HarborSettings,
    /// The last readings of the schema of databases.
    pub(crate) readings: &'a Arc<Readings>,
}

/// The blueprint of a component: Services, configuration, and a Deployment after everything that its pods
/// read.
pub struct ComponentBlueprint<C> {
    settings: Arc<HarborSettings>,
    readings: Arc<Readings>,
    component: PhantomData<fn() -> C>,
}

impl<C> ComponentBlueprint<C> {
    /// Returns the blueprint with the operator's settings.
    pub fn new(settings: Arc<HarborSettings>) -> Self {
        Self { settings, readings: Arc::default(), component: PhantomData }
    }
}

impl<C> Clone for ComponentBlueprint<C> {
    fn clone(&self) -> Self {
        let (settings, readings) = (Arc::clone(&self.settings), Arc::clone(&self.readings));
        Self { settings, readings, component: PhantomData }
    }
}

impl<C: Deployed> fmt::Debug for ComponentBlueprint<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ComponentBlueprint({})", C::CONTROLLER)
    }
}

impl<C: Deployed> ComponentBlueprint<C> {
    fn objects(
        &self,
        owner: &C,
        site: &Site,
        sources: &mut Sources<'_>,
    ) -> Result<ComponentObjects, PlanError> {
        let release = &version::release(owner.meta(), owner.pods())?;
        let image = version::image(release, C::COMPONENT, owner.pods(), &self.settings)?;
        let context =
            RenderContext { site, release, image, settings: &self.settings, readings: &self.readings };
        owner.objects(&context, sources)
    }
}

impl<C: Deployed> Controls for ComponentBlueprint<C> {
    type Owner = C;
    const NAME: &'static str = C::BLUEPRINT;

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<Service>().owns::<ConfigMap>().owns::<Secret>().owns::<Deployment>();
        kinds.owns::<NetworkPolicy>().owns::<PodDisruptionBudget>();
        kinds.reads_made_by::<Secret>(blueprint::HARBOR).reads_made_by::<Secret>(blueprint::HARBOR_CLUSTER);
        C::requires(kinds);
    }

    fn status(&self, owner: &C, seen: &PlanState<'_>) -> Option<Value> {
        let replicas = seen.live::<Deployment, _>(Site::of(owner).name(), |live| live.status.replicas);
        let base = status(C::CONTROLLER, seen, Some(replicas.flatten().unwrap_or(0)));
        Some(match owner.status_fields(seen, &self.readings) {
            Some(more) => together(base, more),
            None => base,
        })
    }

    fn takeover(&self) -> Takeover<C> {
        let settings = Arc::clone(&self.settings);
        takeover::from_upstream()
            .wait_while(move |owner: &C| takeover::awaits(owner.meta(), &takeover::HARBOR, &settings))
    }
}

impl<C: Deployed> Blueprint for ComponentBlueprint<C> {
    fn draw(&self, owner: &C, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        let (site, component) = (&Site::of(owner), owner.pods());
        let mut sources = Sources::new(needs);
        let objects = self.objects(owner, site, &mut sources)?;
        for advice in sources.advice() {
            plan.advise(advice);
        }
        for service in objects.services {
            plan.add(service);
        }
        for rule in objects.policies {
            plan.add(rule).when(policy::wanted(owner.meta(), self.settings.network_policies));
        }
        plan.add(disruption::budget(site)).when(component.replicas() > 1);
        let mut deployment = deployment(site, component, objects.pod, objects.strategy)?;
        deployment.annotations_mut().extend(objects.annotations);
        match sources.finish() {
            Ok(mut before) => {
                let configs = objects.configs.into_iter().filter(|config| !config.data.is_empty());
                before.extend(configs.map(|config| plan.add(config_map(site, config))));
                let secret = objects.secret.filter(|vault| !vault.data.is_empty());
                before.extend(secret.map(|vault| plan.add(secret_of(site, vault))));
                // The check runs before pods that could not start, and again when the new pods run, because
                // then they have migrated the database.
                before.extend(objects.schema.clone().map(|check| plan.step("schema", check)));
                let deployment = plan.add(deployment).after(&before);
                if let Some(check) = objects.schema {
                    plan.step("migrated schema", check).after([&deployment]);
                }
            }
            Err(missing) => {
                let configs =
                    objects.configs.iter().map(|config| plan.pending::<ConfigMap>(&config.name, &*missing));
                let before: Vec<Planned> = configs.collect();
                let secret = objects.secret.map(|vault| plan.pending::<Secret>(&vault.name, &*missing));
                plan.pending::<Deployment>(site.name(), missing).after(before.iter().chain(&secret));
            }
        }
        Ok(())
    }
}

/// Returns upstream's condition `InProgress`: true until the owner is ready or needs help.
pub(crate) fn in_progress(seen: &PlanState<'_>) -> Value {
    let settled = seen.is_ready() || seen.is_stalled();
    json!({"type": IN_PROGRESS, "status": if settled { "False" } else { "True" }})
}

/// Returns the status fields of upstream: a component is ready if neither `InProgress` nor `Failed` is true.
pub(crate) fn status(controller: &str, seen: &PlanState<'_>, replicas: Option<i64>) -> Value {
    json!({
        "operator": {"controllerName": controller, "controllerVersion": env!("CARGO_PKG_VERSION")},
        "replicas": replicas,
        "conditions": [in_progress(seen)],
    })
}

/// Merges two statuses: all fields and all conditions of both.
fn together(mut base: Value, more: Value) -> Value {
    let Value::Object(more) = more else { return base };
    for (field, value) in more {
        match (base.get_mut(&field), value) {
            (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
            (_, value) => base[field] = value,
        }
    }
    base
}

fn config_map(site: &Site, config: Config) -> ConfigMap {
    ConfigMap { metadata: site.metadata(config.name), data: Some(config.data), ..ConfigMap::default() }
}

fn secret_of(site: &Site, vault: Vault) -> Secret {
    let metadata: ObjectMeta = site.metadata(vault.name);
    let data = vault.data.into_iter().map(|(key, value)| (key, ByteString(value.into_bytes()))).collect();
    Secret { metadata, data: Some(data), type_: Some("Opaque".to_owned()), ..Secret::default() }
}
