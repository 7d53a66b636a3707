//! The objects of an installation, in the order of their removal.

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use windlass::Keyring;
use windlass_runtime::cache::Selection;
use windlass_runtime::client::Client;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::{failed, key};
use crate::failure::Failure;
use crate::manifests::{self, Install, NAME_LABEL};
use crate::metrics_names::MetricsNames;
use crate::operator::Operator;
use crate::webhook_names::WebhookNames;

/// An object that an installation has.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) resource: ResourceType,
    pub(super) key: ObjectKey,
    /// True if the object comes from a manifest, and so must have the label of the operator.
    pub(super) labelled: bool,
}

impl Target {
    fn of(resource: ResourceType, namespace: Option<&str>, name: &str, labelled: bool) -> Self {
        let key = key(&resource, namespace, name);
        Self { resource, key, labelled }
    }

    /// Returns the definition of a kind.
    pub(super) fn definition(name: &str) -> Self {
        Self::of(ResourceType::of::<CustomResourceDefinition>(), None, name, false)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.resource.kind, self.key)
    }
}

/// The objects of an installation.
pub(super) struct Targets {
    pub(super) namespace: String,
    pub(super) webhooks: Vec<Target>,
    pub(super) deployment: Target,
    /// All other objects: Services, rights, accounts, in the order of their removal.
    pub(super) rest: Vec<Target>,
    pub(super) digest_key: Target,
    /// Objects that are never deleted.
    pub(super) kept: Vec<Target>,
}

/// The kinds of the manifests that are deleted after the Deployment, in this order.
const ORDER: [&str; 8] = [
    "NetworkPolicy",
    "PodDisruptionBudget",
    "Service",
    "ClusterRoleBinding",
    "RoleBinding",
    "ClusterRole",
    "Role",
    "ServiceAccount",
];

impl Targets {
    /// Finds the objects of an installation: those of its manifests by their names, and the rights in other
    /// namespaces by the account that they are bound to.
    pub(super) async fn find(
        operator: &Operator,
        install: &Install,
        client: &Client,
    ) -> Result<Self, Failure> {
        let namespace = install.namespace.clone();
        let in_namespace = Some(&*namespace);
        let mut rest = Vec::new();
        let mut webhooks = Vec::new();
        let objects =
            manifests::objects(operator, install).map_err(|error| Failure::Running(error.to_string()))?;
        for object in &objects {
            let Some(target) = target(object) else { continue };
            match &*target.resource.kind {
                "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => webhooks.push(target),
                kind if ORDER.contains(&kind) => rest.push(target),
                _ => {}
            }
        }
        rest.extend(rights_elsewhere(operator, &namespace, client).await?);
        rest.sort_by_key(|target| ORDER.iter().position(|kind| *kind == target.resource.kind));
        let mut seen = BTreeSet::new();
        rest.retain(|target| seen.insert(target.to_string()));
        // Made by the running operator.
        let names = WebhookNames::of(operator, &namespace);
        rest.push(Target::of(ResourceType::of::<Secret>(), in_namespace, &names.secret, false));
        let metrics = MetricsNames::of(operator, &namespace);
        rest.push(Target { resource: ResourceType::of::<Secret>(), key: metrics.secret, labelled: false });
        rest.push(Target::of(ResourceType::of::<Lease>(), in_namespace, operator.name, false));

        let settings = format!("{}-settings", operator.name);
        let digest_key = Keyring::place_of(&namespace, operator.name);
        let digest_key = Target { resource: ResourceType::of::<Secret>(), key: digest_key, labelled: false };
        Ok(Self {
            deployment: Target::of(ResourceType::of::<Deployment>(), in_namespace, operator.name, true),
            kept: vec![
                Target::of(ResourceType::of::<ConfigMap>(), in_namespace, &settings, false),
                Target::of(ResourceType::of::<Secret>(), in_namespace, &settings, false),
                Target::of(ResourceType::of::<Namespace>(), None, &namespace, false),
            ],
            namespace,
            webhooks,
            rest,
            digest_key,
        })
    }
}

/// Returns an object of the manifests as a target, if its kind is one that can be removed.
fn target(object: &Value) -> Option<Target> {
    let resource = match object["kind"].as_str()? {
        "MutatingWebhookConfiguration" => ResourceType::of::<MutatingWebhookConfiguration>(),
        "ValidatingWebhookConfiguration" => ResourceType::of::<ValidatingWebhookConfiguration>(),
        "NetworkPolicy" => ResourceType::of::<NetworkPolicy>(),
        "PodDisruptionBudget" => ResourceType::of::<PodDisruptionBudget>(),
        "Service" => ResourceType::of::<Service>(),
        "ClusterRoleBinding" => ResourceType::of::<ClusterRoleBinding>(),
        "RoleBinding" => ResourceType::of::<RoleBinding>(),
        "ClusterRole" => ResourceType::of::<ClusterRole>(),
        "Role" => ResourceType::of::<Role>(),
        "ServiceAccount" => ResourceType::of::<ServiceAccount>(),
        _ => return None,
    };
    let meta = &object["metadata"];
    Some(Target::of(resource, meta["namespace"].as_str(), meta["name"].as_str()?, true))
}

/// Returns the roles and bindings of the installation's account in all namespaces: an installation may watch
/// namespaces that only its own manifests named.
async fn rights_elsewhere(
    operator: &Operator,
    namespace: &str,
    client: &Client,
) -> Result<Vec<Target>, Failure> {
    let selection = Selection::all().labels(&format!("{NAME_LABEL}={}", operator.name));
    let selection = selection.map_err(|error| Failure::Running(error.to_string()))?;
    let bindings = client.objects::<RoleBinding>().list(&selection).await.map_err(|error| failed(&error))?;
    let ours = |binding: &&RoleBinding| {
        binding.subjects.iter().flatten().any(|subject| {
            subject.kind == "ServiceAccount"
                && subject.name == operator.name
                && subject.namespace.as_deref() == Some(namespace)
        })
    };
    let targets = bindings.iter().filter(ours).flat_map(|binding| {
        let place = binding.metadata.namespace.as_deref();
        let name = binding.metadata.name.as_deref().unwrap_or_default();
        let role = (binding.role_ref.kind == "Role")
            .then(|| Target::of(ResourceType::of::<Role>(), place, &binding.role_ref.name, true));
        [Some(Target::of(ResourceType::of::<RoleBinding>(), place, name, true)), role]
    });
    Ok(targets.flatten().collect())
}
