//! Harbor: all components, wired together.

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
    /// What becomes of data when its owner is deleted.
    #[derive(Default)]
    DeletionPolicy {
        /// Volumes, databases and the keys without which they are worthless stay:
        #[default]
        Retain = "Retain",
        /// They go too:
        Delete = "Delete",
    }
}

/// What a Harbor should be, however its database, cache and storage come about.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HarborCommon {
    /// The URL under which users reach it.
    #[serde(rename = "externalURL")]
    #[schemars(regex(pattern = pattern::EXTERNAL_URL))]
    pub external_url: String,
    /// The Secret with the administrator's first password, under secret.
    #[schemars(regex(pattern = pattern::NAME))]
    pub harbor_admin_password_ref: String,
    /// How much is logged.
    #[serde(default)]
    pub log_level: LogLevel,
    /// How pods of the registry and the job service are replaced: RollingUpdate or Recreate.
    #[serde(default = "rolling")]
    pub update_strategy_type: String,
    /// The version of Harbor.
    #[schemars(regex(pattern = pattern::VERSION))]
    pub version: String,
    /// How it is reached.
    pub expose: Expose,
    /// TLS between the components.
    #[serde(rename = "internalTLS", skip_serializing_if = "Option::is_none")]
    pub internal_tls: Option<InternalTls>,
    /// Where images of components come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_source: Option<ImageSource>,
    /// The components' way into the world.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<HarborProxy>,
    /// The addresses on which components listen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// The API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core: Option<HarborCore>,
    /// What takes long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobservice: Option<HarborJobService>,
    /// The registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry: Option<HarborRegistry>,
    /// The registry's controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registryctl: Option<HarborComponent>,
    /// The pages that users see; without it there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub portal: Option<HarborComponent>,
    /// Helm charts, up to Harbor 2.7; without it there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chartmuseum: Option<HarborChartMuseum>,
    /// Metrics of Harbor as a whole; without it there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exporter: Option<HarborExporter>,
    /// Signatures, up to Harbor 2.8; without it there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notary: Option<HarborNotary>,
    /// Scans; without it there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trivy: Option<HarborTrivy>,
    /// What becomes of data when this is deleted: it stays if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

impl HarborCommon {
    /// Whether components speak TLS with each other.
    pub fn has_internal_tls(&self) -> bool {
        self.internal_tls.as_ref().is_some_and(|tls| tls.enabled)
    }

    /// What becomes of data when the owner is deleted.
    pub fn deletion_policy(&self) -> DeletionPolicy {
        self.deletion_policy.unwrap_or_default()
    }

    /// The proxy of a component; `None` where it has none.
    pub fn proxy_of(&self, component: &str) -> Option<&Proxy> {
        let proxy = self.proxy.as_ref()?;
        proxy.components.iter().any(|named| named == component).then_some(&proxy.proxy)
    }
}

/// What a Harbor should be, with its database, cache and storage.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "Harbor",
    plural = "harbors",
    namespaced,
    shortname = "h",
    category = "goharbor",
    doc = "Harbor is a registry of images, with an external database, cache and storage.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct HarborSpec {
    /// What is the same for every Harbor.
    #[serde(flatten)]
    pub common: HarborCommon,
    /// Its databases. One of the older version may lack them, and is refused when it is next changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub database: Option<HarborDatabase>,
    /// Its Redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub redis: Option<RedisHost>,
    /// Where images and charts are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub image_chart_storage: Option<ImageChartStorage>,
}

/// TLS between the components.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InternalTls {
    /// Whether there is any.
    pub enabled: bool,
}

/// The components' way into the world.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HarborProxy {
    /// The proxy.
    #[serde(flatten)]
    pub proxy: Proxy,
    /// Which components use it.
    #[serde(default = "components_with_proxy")]
    pub components: Vec<String>,
}

fn components_with_proxy() -> Vec<String> {
    ["core", "jobservice", "trivy"].map(str::to_owned).into()
}
