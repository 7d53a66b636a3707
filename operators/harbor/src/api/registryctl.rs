//! RegistryController: the API for deletions in the registry's storage, run as a sidecar of the registry.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::component::{ComponentSpec, Served, Tls};
use super::log::LogLevel;
use super::network::Network;
use super::pattern;
use super::status::ComponentStatus;

/// Desired state of the registry controller, a second container in the registry's pods.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "RegistryController",
    plural = "registrycontrollers",
    namespaced,
    category = "goharbor",
    doc = "RegistryController deletes blobs and manifests from the registry's storage. It runs as a second container in the registry's pods.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct RegistryControllerSpec {
    /// Container settings of the registry controller. Scheduling and replicas are those of the registry.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Name of the Registry whose pods run the controller. It must equal the name of this RegistryController.
    #[schemars(regex(pattern = pattern::NAME))]
    pub registry_ref: String,
    /// Secrets with which callers of the registry controller authenticate. A Harbor sets both.
    pub authentication: RegistryControllerAuthentication,
    /// Log settings of the registry controller. If unset, the level is `info`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<RegistryControllerLog>,
    /// IP families to listen on. The values are validated, but have no effect on the registry controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Internal TLS certificate of the registry controller. If unset, it serves plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

impl RegistryControllerSpec {
    /// Returns the scheme under which the registry controller is reached inside the cluster.
    pub fn served(&self) -> Served {
        Served::with(self.tls.as_ref())
    }

    /// Returns the log level, with the default applied.
    pub(crate) fn log_level(&self) -> LogLevel {
        self.log.as_ref().map_or(LogLevel::Info, |log| log.level)
    }
}

/// Secrets with which callers of the registry controller authenticate.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryControllerAuthentication {
    /// Name of the Secret with which Core authenticates, in key `secret` (`CORE_SECRET` of Harbor). If unset,
    /// the variable is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub core_secret_ref: Option<String>,
    /// Name of the Secret with which JobService authenticates, in key `secret` (`JOBSERVICE_SECRET` of
    /// Harbor). If unset, the variable is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub job_service_secret_ref: Option<String>,
}

/// Log settings of the registry controller.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryControllerLog {
    /// Lowest level of log entries that the registry controller writes: `debug`, `info`, `warning`, `error`
    /// or `fatal` (`log_level` of its `config.yml`). Default: `info`.
    #[serde(default)]
    pub level: LogLevel,
}
