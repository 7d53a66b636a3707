//! What a Harbor says of each of its components.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::component::ComponentSpec;
use super::driver::{Claim, truth};
use super::exporter::{ExporterCache, metrics_path, metrics_port};
use super::jobservice::ten;
use super::observe::Metrics;
use super::pattern;
use super::postgres::{idle_connections, open_connections};
use super::registry::RegistryMiddleware;

/// A component of which nothing but its pods can be said.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct HarborComponent {
    /// How its pods are run.
    #[serde(flatten)]
    pub component: ComponentSpec,
}

/// Core, in a Harbor.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HarborCore {
    /// How its pods are run.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Secrets with more certificate authorities to trust, under ca.crt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// How many connections to the database are kept when idle.
    #[schemars(range(min = 0))]
    pub max_idle_connections: i32,
    /// How many connections to the database there may be; 0 is no limit.
    #[schemars(range(min = 0))]
    pub max_open_connections: i32,
    /// Its metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// Who issues the certificate of the key that signs tokens, of cert-manager; the operator itself if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_issuer: Option<IssuerRef>,
}

impl Default for HarborCore {
    fn default() -> Self {
        Self {
            component: ComponentSpec::default(),
            certificate_refs: Vec::new(),
            max_idle_connections: idle_connections(),
            max_open_connections: open_connections(),
            metrics: None,
            token_issuer: None,
        }
    }
}

/// An issuer of cert-manager.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssuerRef {
    /// Its group; cert-manager.io if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Its kind; Issuer if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its name.
    pub name: String,
}

impl IssuerRef {
    /// Its group.
    pub fn group(&self) -> &str {
        self.group.as_deref().unwrap_or("cert-manager.io")
    }

    /// Its kind.
    pub fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or("Issuer")
    }
}

/// The job service, in a Harbor.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HarborJobService {
    /// How its pods are run.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Secrets with more certificate authorities to trust, under ca.crt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// How many jobs run at the same time, in each pod.
    #[schemars(range(min = 1))]
    pub worker_count: i32,
    /// Its metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// Where it puts files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<HarborJobServiceStorage>,
}

impl Default for HarborJobService {
    fn default() -> Self {
        Self {
            component: ComponentSpec::default(),
            certificate_refs: Vec::new(),
            worker_count: ten(),
            metrics: None,
            storage: None,
        }
    }
}

/// Where the job service puts files.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HarborJobServiceStorage {
    /// What users export of scans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_data_exports_persistent_volume: Option<Claim>,
}

/// The registry, in a Harbor.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HarborRegistry {
    /// How its pods are run.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Secrets with more certificate authorities to trust, under ca.crt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// Whether it calls itself by the path alone.
    #[serde(rename = "relativeURLs")]
    pub relative_urls: bool,
    /// Its metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// What is put in front of the storage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub storage_middlewares: Vec<RegistryMiddleware>,
}

impl Default for HarborRegistry {
    fn default() -> Self {
        Self {
            component: ComponentSpec::default(),
            certificate_refs: Vec::new(),
            relative_urls: truth(),
            metrics: None,
            storage_middlewares: Vec::new(),
        }
    }
}

/// ChartMuseum, in a Harbor.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HarborChartMuseum {
    /// How its pods are run.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Secrets with more certificate authorities to trust, under ca.crt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// Whether charts are listed with whole URLs.
    pub absolute_url: bool,
}

/// The exporter, in a Harbor.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HarborExporter {
    /// How its pods are run.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// The path under which metrics are read.
    #[schemars(regex(pattern = pattern::PATH))]
    pub path: String,
    /// The port on which they are read.
    #[schemars(range(min = 1))]
    pub port: i32,
    /// How long it keeps what it has read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<ExporterCache>,
}

impl Default for HarborExporter {
    fn default() -> Self {
        Self { component: ComponentSpec::default(), path: metrics_path(), port: metrics_port(), cache: None }
    }
}

/// Notary, in a Harbor.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HarborNotary {
    /// Whether databases are brought up to date when it starts.
    pub migration_enabled: bool,
    /// The server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<HarborComponent>,
    /// The signer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signer: Option<HarborComponent>,
}

impl Default for HarborNotary {
    fn default() -> Self {
        Self { migration_enabled: truth(), server: None, signer: None }
    }
}

/// Trivy, in a Harbor.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HarborTrivy {
    /// How its pods are run.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Secrets with more certificate authorities to trust, under ca.crt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// The Secret with a token of GitHub, under github-token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub github_token_ref: Option<String>,
    /// Whether nothing is asked of the world while scanning.
    #[serde(default)]
    pub offline_scan: bool,
    /// Whether it does not learn of new holes.
    #[serde(default)]
    pub skip_update: bool,
    /// Where it keeps what it knows.
    pub storage: HarborTrivyStorage,
}

/// Where Trivy keeps what it knows; in the pod if nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HarborTrivyStorage {
    /// Its database of holes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_persistent_volume: Option<Claim>,
    /// What it found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reports_persistent_volume: Option<Claim>,
}
