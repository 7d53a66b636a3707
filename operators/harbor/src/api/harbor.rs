//! Harbor: all components of a Harbor, configured to work together.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::component::ImageSource;
use super::driver::ImageChartStorage;
use super::harbor_components::{
    HarborChartMuseum, HarborComponent, HarborCore, HarborExporter, HarborJobService, HarborNotary,
    HarborRegistry, HarborTrivy,
};
use super::jobservice::rolling;
use super::log::LogLevel;
use super::network::{Expose, Network, Proxy};
use super::observe::Trace;
use super::pattern;
use super::postgres::HarborDatabase;
use super::redis::RedisHost;
use super::status::ComponentStatus;

choice! {
    /// Handling of data when its owner is deleted.
    #[derive(Default)]
    DeletionPolicy {
        /// Keeps volumes, databases, and the keys without which their content is unreadable.
        #[default]
        Retain = "Retain",
        /// Deletes them together with the owner.
        Delete = "Delete",
    }
}

/// Settings of a Harbor that do not depend on its database, cache and storage.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HarborCommon {
    /// External URL under which users reach Harbor, such as `https://harbor.example.com` (`external_url` of
    /// Harbor).
    #[serde(rename = "externalURL")]
    #[schemars(regex(pattern = pattern::EXTERNAL_URL))]
    pub external_url: String,
    /// Name of the Secret with the initial password of the Harbor user `admin`, in key `secret`
    /// (`harbor_admin_password` of Harbor). It has no effect after the first start.
    #[schemars(regex(pattern = pattern::NAME))]
    pub harbor_admin_password_ref: String,
    /// Log level of all components: `debug`, `info`, `warning`, `error` or `fatal`. Default: `info`.
    #[serde(default)]
    pub log_level: LogLevel,
    /// Update strategy of the registry and JobService: `RollingUpdate` or `Recreate`. Default:
    /// `RollingUpdate`. `Recreate` is always used while a volume can be mounted by a single node only.
    #[serde(default = "rolling")]
    pub update_strategy_type: String,
    /// Version of Harbor, such as `2.15.2`. Changing it upgrades Harbor; downgrades are rejected.
    #[schemars(regex(pattern = pattern::VERSION))]
    pub version: String,
    /// Exposure of Harbor to users.
    pub expose: Expose,
    /// TLS between the components. If unset, they use plain HTTP.
    #[serde(rename = "internalTLS", skip_serializing_if = "Option::is_none")]
    pub internal_tls: Option<InternalTls>,
    /// Registry, tag suffix and pull settings of all images. If unset, the operator's settings apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_source: Option<ImageSource>,
    /// HTTP proxy for outbound connections of the components. If unset, they connect directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<HarborProxy>,
    /// IP families on which the portal and the nginx of `expose.core.service` listen. If unset, IPv4 and
    /// IPv6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Distributed tracing of Core, JobService and the registry controller. If unset, no traces are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// Settings of Core, the Harbor API server. If unset, it is deployed with defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core: Option<HarborCore>,
    /// Settings of JobService, which runs background jobs. If unset, it is deployed with defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobservice: Option<HarborJobService>,
    /// Settings of the registry, which stores images. If unset, it is deployed with defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry: Option<HarborRegistry>,
    /// Settings of the registry controller, a second container in the registry's pods. If unset, it is
    /// deployed with defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registryctl: Option<HarborComponent>,
    /// Settings of the portal, the Harbor web interface. If unset, the portal is not deployed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub portal: Option<HarborComponent>,
    /// Settings of ChartMuseum, the Helm chart repository up to Harbor 2.7. If unset, it is not deployed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chartmuseum: Option<HarborChartMuseum>,
    /// Settings of the exporter of Prometheus metrics. If unset, it is not deployed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exporter: Option<HarborExporter>,
    /// Settings of Notary (content trust), up to Harbor 2.8. If unset, it is not deployed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notary: Option<HarborNotary>,
    /// Settings of Trivy, the vulnerability scanner. If unset, it is not deployed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trivy: Option<HarborTrivy>,
    /// Handling of data when this object is deleted. `Retain` keeps volumes, databases, and the keys without
    /// which their content is unreadable; `Delete` deletes them. Default: `Retain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

impl HarborCommon {
    /// Returns true if components use TLS between each other.
    pub(crate) fn has_internal_tls(&self) -> bool {
        self.internal_tls.as_ref().is_some_and(|tls| tls.enabled)
    }

    /// Returns the deletion policy, with the default applied.
    pub(crate) fn deletion_policy(&self) -> DeletionPolicy {
        self.deletion_policy.unwrap_or_default()
    }

    /// Returns the proxy of a component, or `None` if the component uses none.
    pub(crate) fn proxy_of(&self, component: &str) -> Option<&Proxy> {
        let proxy = self.proxy.as_ref()?;
        proxy.components.iter().any(|named| named == component).then_some(&proxy.proxy)
    }
}

/// Desired state of a Harbor with an external database, cache and storage.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "Harbor",
    plural = "harbors",
    namespaced,
    shortname = "h",
    category = "goharbor",
    doc = "Harbor is a container registry with an external database, cache and storage.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct HarborSpec {
    /// Settings that do not depend on database, cache and storage.
    #[serde(flatten)]
    pub common: HarborCommon,
    /// PostgreSQL server with the databases of Harbor. A `v1alpha3` object may lack it and is rejected at its
    /// next change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub database: Option<HarborDatabase>,
    /// Redis server of all components. Database numbers: Core 0, registry 1, JobService 2, ChartMuseum 3,
    /// Trivy 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub redis: Option<RedisHost>,
    /// Storage of images and charts. Exactly one backend is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub image_chart_storage: Option<ImageChartStorage>,
}

/// TLS between the components.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InternalTls {
    /// Use TLS between the components, with certificates that the operator issues (`internal_tls.enabled` of
    /// Harbor). Default: false.
    pub enabled: bool,
}

/// HTTP proxy for outbound connections, and the components that use it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HarborProxy {
    /// URLs of the proxy and its exceptions.
    #[serde(flatten)]
    pub proxy: Proxy,
    /// Components that use the proxy: `core`, `jobservice`, `registry`, `trivy`. Default: `core`,
    /// `jobservice` and `trivy`.
    #[serde(default = "components_with_proxy")]
    pub components: Vec<String>,
}

fn components_with_proxy() -> Vec<String> {
    ["core", "jobservice", "trivy"].map(str::to_owned).into()
}
