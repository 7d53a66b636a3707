//! From the parts of a component to its plan: one blueprint for all of them.

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
    /// Its name.
    pub name: String,
    /// What is in it; nothing if there is to be none.
    pub data: BTreeMap<String, String>,
}

/// The Secret of a component.
#[derive(Clone)]
pub struct Vault {
    /// Its name.
    pub name: String,
    /// What is in it; nothing if there is to be none.
    pub data: BTreeMap<String, Confidential>,
}

/// What a component is made of.
pub struct Parts {
    /// The Services in front of it.
    pub services: Vec<Service>,
    /// Its configuration.
    pub configs: Vec<Config>,
    /// What of its configuration is secret.
    pub secret: Option<Vault>,
    /// What runs.
    pub pod: Pod,
    /// How pods are replaced.
    pub strategy: Strategy,
    /// Annotations of the Deployment itself: a change of them replaces no pods.
    pub annotations: BTreeMap<String, String>,
    /// The policies, where they are wanted.
    pub policies: Vec<NetworkPolicy>,
    /// The look at the database that its pods migrate.
    pub schema: Option<SchemaCheck>,
}

impl Parts {
    /// With configuration and Secret under the name of the site, and nothing more to say.
    pub fn new(site: &Site, rendered: Rendered, pod: Pod, services: Vec<Service>) -> Self {
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

/// A component whose objects are run as pods of their own.
pub trait Deployed: OwnerKind<Scope = k8s_openapi::NamespaceResourceScope> + Component {
    /// The name of its blueprint, for ever.
    const BLUEPRINT: &'static str;
    /// What the catalogue calls it.
    const PART: catalogue::Component;

    /// What kinds it takes from, beside Secrets.
    fn requires(kinds: &mut Kinds) {
        let _ = kinds;
    }

    /// What it is made of. Also called to learn which [`Sources`] it takes from.
    fn parts(&self, making: &Making<'_>, sources: &mut Sources<'_>) -> Result<Parts, PlanError>;

    /// Returns more fields of its status, as [`Controls::status`] has it.
    fn tells(&self, seen: &PlanState<'_>, readings: &Readings) -> Option<Value> {
        let _ = (seen, readings);
        None
    }
}

/// What a component is made with.
pub struct Making<'a> {
    /// Where it is.
    pub site: &'a Site,
    /// Of which Harbor it is.
    pub release: &'a catalogue::Release,
    /// Its image.
    pub image: String,
    /// How the operator is configured.
    pub settings: &'a HarborSettings,
    /// Where it is noted how far databases are migrated.
    pub readings: &'a Arc<Readings>,
}

/// The plan of a component: its Services, its configuration, and a Deployment that comes after all that its pods read.
pub struct ComponentBlueprint<C> {
    settings: Arc<HarborSettings>,
    readings: Arc<Readings>,
    component: PhantomData<fn() -> C>,
}

impl<C> ComponentBlueprint<C> {
    /// Configured like this.
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
    fn parts(&self, owner: &C, site: &Site, sources: &mut Sources<'_>) -> Result<Parts, PlanError> {
        let release = &version::release(owner.meta(), owner.pods())?;
        let image = version::image(release, C::PART, owner.pods(), &self.settings)?;
        let making = Making { site, release, image, settings: &self.settings, readings: &self.readings };
        owner.parts(&making, sources)
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
        let said = status(C::CONTROLLER, seen, Some(replicas.flatten().unwrap_or(0)));
        Some(match owner.tells(seen, &self.readings) {
            Some(more) => together(said, more),
            None => said,
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
        let parts = self.parts(owner, site, &mut sources)?;
        for advice in sources.advice() {
            plan.advise(advice);
        }
        for service in parts.services {
            plan.add(service);
        }
        for rule in parts.policies {
            plan.add(rule).when(policy::wanted(owner.meta(), self.settings.network_policies));
        }
        plan.add(disruption::budget(site)).when(component.replicas() > 1);
        let mut deployment = deployment(site, component, parts.pod, parts.strategy)?;
        deployment.annotations_mut().extend(parts.annotations);
        match sources.finish() {
            Ok(mut before) => {
                let configs = parts.configs.into_iter().filter(|config| !config.data.is_empty());
                before.extend(configs.map(|config| plan.add(config_map(site, config))));
                let secret = parts.secret.filter(|vault| !vault.data.is_empty());
                before.extend(secret.map(|vault| plan.add(secret_of(site, vault))));
                // Before pods that would not start, and again when they run: then it is as they have left it.
                before.extend(parts.schema.clone().map(|check| plan.step("schema", check)));
                let deployment = plan.add(deployment).after(&before);
                if let Some(check) = parts.schema {
                    plan.step("migrated schema", check).after([&deployment]);
                }
            }
            Err(missing) => {
                let configs =
                    parts.configs.iter().map(|config| plan.pending::<ConfigMap>(&config.name, &*missing));
                let before: Vec<Planned> = configs.collect();
                let secret = parts.secret.map(|vault| plan.pending::<Secret>(&vault.name, &*missing));
                plan.pending::<Deployment>(site.name(), missing).after(before.iter().chain(&secret));
            }
        }
        Ok(())
    }
}

/// What those who knew the first operator of these kinds look for in a status: a component is ready where neither `InProgress` nor
/// `Failed` is true.
pub(crate) fn status(controller: &str, seen: &PlanState<'_>, replicas: Option<i64>) -> Value {
    json!({
        "operator": {"controllerName": controller, "controllerVersion": env!("CARGO_PKG_VERSION")},
        "replicas": replicas,
        "conditions": [{"type": IN_PROGRESS, "status": if seen.is_ready() { "False" } else { "True" }}],
    })
}

/// Two statuses as one: the fields of both, and all their conditions.
fn together(mut said: Value, more: Value) -> Value {
    let Value::Object(more) = more else { return said };
    for (field, value) in more {
        match (said.get_mut(&field), value) {
            (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
            (_, value) => said[field] = value,
        }
    }
    said
}

fn config_map(site: &Site, config: Config) -> ConfigMap {
    ConfigMap { metadata: site.metadata(config.name), data: Some(config.data), ..ConfigMap::default() }
}

fn secret_of(site: &Site, vault: Vault) -> Secret {
    let metadata: ObjectMeta = site.metadata(vault.name);
    let data = vault.data.into_iter().map(|(key, value)| (key, ByteString(value.into_bytes()))).collect();
    Secret { metadata, data: Some(data), type_: Some("Opaque".to_owned()), ..Secret::default() }
}
