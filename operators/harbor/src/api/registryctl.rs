//! The registry's controller: it deletes what the registry itself cannot.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::component::{ComponentSpec, Served, Tls};
use super::log::LogLevel;
use super::network::Network;
use super::pattern;
use super::status::ComponentStatus;

/// What the registry's controller should be. It runs in the registry's pods.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "RegistryController",
    plural = "registrycontrollers",
    namespaced,
    category = "goharbor",
    doc = "RegistryController deletes what the registry itself cannot. It runs in the registry's pods.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct RegistryControllerSpec {
    /// How its pods are run.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// The Registry in whose pods it runs.
    #[schemars(regex(pattern = pattern::NAME))]
    pub registry_ref: String,
    /// Who may ask it.
    pub authentication: RegistryControllerAuthentication,
    /// What it logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<RegistryControllerLog>,
    /// The addresses on which it listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The certificate with which it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

impl RegistryControllerSpec {
    /// How it is reached inside the cluster.
    pub fn served(&self) -> Served {
        Served::with(self.tls.as_ref())
    }

    /// What it logs.
    pub fn log_level(&self) -> LogLevel {
        self.log.as_ref().map_or(LogLevel::Info, |log| log.level)
    }
}

/// Who may ask the registry's controller.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryControllerAuthentication {
    /// The Secret by which Core is known, under secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub core_secret_ref: Option<String>,
    /// The Secret by which the job service is known, under secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub job_service_secret_ref: Option<String>,
}

/// What the registry's controller logs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryControllerLog {
    /// From this level on.
    #[serde(default)]
    pub level: LogLevel,
}
