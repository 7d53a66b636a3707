//! Settings of each component in the spec of a Harbor.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::component::ComponentSpec;
use super::core_kind::CacheLayer;
use super::driver::{Claim, truth};
use super::exporter::{ExporterCache, metrics_path, metrics_port};
use super::jobservice::ten;
use super::observe::Metrics;
use super::pattern;
use super::postgres::{idle_connections, open_connections};
use super::registry::RegistryMiddleware;

/// Component with pod settings only.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct HarborComponent {
    /// Pod settings of the component.
    #[serde(flatten)]
    pub component: ComponentSpec,
}

/// Settings of Core in a Harbor.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HarborCore {
    /// Pod settings of Core.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Names of Secrets with additional trusted CA certificates, each in key `ca.crt`. Default: none, which
    /// trusts the CAs of the image only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// Cache of projects, repositories, artifacts and manifests in Redis, for many concurrent pulls, from
    /// Harbor 2.6 on. `{}` enables it. If unset, there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_layer: Option<CacheLayer>,
    /// Maximum number of idle database connections per pod (`database.max_idle_conns` of Harbor). Default:
    /// 50.
    #[schemars(range(min = 0))]
    pub max_idle_connections: i32,
    /// Maximum number of open database connections per pod; 0 means no limit (`database.max_open_conns` of
    /// Harbor). Default: 1000.
    #[schemars(range(min = 0))]
    pub max_open_connections: i32,
    /// Prometheus metrics of Core. If unset, Core serves no metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// cert-manager issuer of the certificate whose key signs bearer tokens. If unset, the operator generates
    /// the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_issuer: Option<IssuerRef>,
}

impl Default for HarborCore {
    fn default() -> Self {
        Self {
            component: ComponentSpec::default(),
            certificate_refs: Vec::new(),
            cache_layer: None,
            max_idle_connections: idle_connections(),
            max_open_connections: open_connections(),
            metrics: None,
            token_issuer: None,
        }
    }
}

/// Reference to a cert-manager issuer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssuerRef {
    /// API group of the issuer. Default: `cert-manager.io`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Kind of the issuer, such as `Issuer` or `ClusterIssuer`. Default: `Issuer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the issuer object.
    pub name: String,
}

impl IssuerRef {
    /// Returns the API group, with the default applied.
    pub fn group(&self) -> &str {
        self.group.as_deref().unwrap_or("cert-manager.io")
    }

    /// Returns the kind, with the default applied.
    pub fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or("Issuer")
    }
}

/// Settings of JobService in a Harbor.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HarborJobService {
    /// Pod settings of JobService.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Names of Secrets with additional trusted CA certificates, each in key `ca.crt`. Default: none, which
    /// trusts the CAs of the image only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// Number of jobs that run concurrently in each pod (`jobservice.max_job_workers` of Harbor). Default:
    /// 10.
    #[schemars(range(min = 1))]
    pub worker_count: i32,
    /// Prometheus metrics of JobService. If unset, JobService serves no metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// Destination of the logs of jobs, which are kept for 14 days. If unset, they are in files of the pod
    /// and are lost with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_logs: Option<HarborJobLogs>,
    /// Volumes of JobService. If unset, there is no volume for scan data exports.
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
            job_logs: None,
            storage: None,
        }
    }
}

/// Destination of the logs of jobs. Exactly one of `database` and `claimName` is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "(has(self.database) && self.database) != has(self.claimName)",
    "message": "set either database to true, or claimName",
}]))]
pub struct HarborJobLogs {
    /// Write the logs of jobs to the Harbor database (logger `DB` of JobService). Default: false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub database: bool,
    /// Name of the PersistentVolumeClaim for the logs of jobs (logger `FILE` of JobService). Several replicas
    /// on different nodes need a claim with `ReadWriteMany`. If unset, there is no volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_name: Option<String>,
}

/// Volumes of JobService's pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HarborJobServiceStorage {
    /// PersistentVolumeClaim for scan reports that users export. If unset, there is no volume for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_data_exports_persistent_volume: Option<Claim>,
}

/// Settings of the registry in a Harbor.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HarborRegistry {
    /// Pod settings of the registry.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Names of Secrets with additional trusted CA certificates, each in key `ca.crt`. Default: none, which
    /// trusts the CAs of the image only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// Return relative URLs in `Location` headers (`relativeurls` of Distribution). Default: true.
    #[serde(rename = "relativeURLs")]
    pub relative_urls: bool,
    /// Prometheus metrics of the registry. If unset, the registry serves no metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// Middleware around the storage driver, such as `cloudfront` (`middleware.storage` of Distribution).
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

/// Settings of ChartMuseum in a Harbor.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HarborChartMuseum {
    /// Pod settings of ChartMuseum.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Names of Secrets with additional trusted CA certificates, each in key `ca.crt`. Default: none, which
    /// trusts the CAs of the image only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// List charts with absolute URLs under `externalURL` (`chart.absolute_url` of Harbor). Default: false,
    /// which lists relative paths.
    pub absolute_url: bool,
}

/// Settings of the exporter in a Harbor.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HarborExporter {
    /// Pod settings of the exporter.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// HTTP path of the metrics (`HARBOR_EXPORTER_METRICS_PATH` of Harbor). Default: `/metrics`.
    #[schemars(regex(pattern = pattern::PATH))]
    pub path: String,
    /// Port of the metrics, plain HTTP (`HARBOR_EXPORTER_PORT` of Harbor). Default: 8001.
    #[schemars(range(min = 1))]
    pub port: i32,
    /// Cache of collected metrics. If unset, the defaults of the fields apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<ExporterCache>,
}

impl Default for HarborExporter {
    fn default() -> Self {
        Self { component: ComponentSpec::default(), path: metrics_path(), port: metrics_port(), cache: None }
    }
}

/// Settings of Notary in a Harbor.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HarborNotary {
    /// Migrate the database schemas when Notary starts. Default: true.
    pub migration_enabled: bool,
    /// Settings of the Notary server. If unset, it is deployed with defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<HarborComponent>,
    /// Settings of the Notary signer. If unset, it is deployed with defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signer: Option<HarborComponent>,
}

impl Default for HarborNotary {
    fn default() -> Self {
        Self { migration_enabled: truth(), server: None, signer: None }
    }
}

/// Settings of Trivy in a Harbor.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HarborTrivy {
    /// Pod settings of Trivy.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Names of Secrets with additional trusted CA certificates, each in key `ca.crt`. Default: none, which
    /// trusts the CAs of the image only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// Name of the Secret with a GitHub token for downloading the vulnerability database, in key
    /// `github-token` (`trivy.github_token` of Harbor). If unset, the operator's setting `github-token`
    /// applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub github_token_ref: Option<String>,
    /// Scan without network requests for package metadata (`trivy.offline_scan` of Harbor). Default: false.
    #[serde(default)]
    pub offline_scan: bool,
    /// Skip updates of the vulnerability database (`trivy.skip_update` of Harbor). Default: false.
    #[serde(default)]
    pub skip_update: bool,
    /// OCI repository of the vulnerability database, such as a mirror, from Harbor 2.15 on
    /// (`SCANNER_TRIVY_DB_REPOSITORY` of the adapter). If unset, Trivy's own default is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub db_repository: Option<String>,
    /// OCI repository of the Java index database, such as a mirror, from Harbor 2.15 on
    /// (`SCANNER_TRIVY_JAVA_DB_REPOSITORY` of the adapter). If unset, Trivy's own default is used.
    #[serde(rename = "javaDBRepository", skip_serializing_if = "Option::is_none")]
    pub java_db_repository: Option<String>,
    /// Volumes of the vulnerability database and the reports. Default: an `emptyDir` for each.
    pub storage: HarborTrivyStorage,
}

/// Volumes of Trivy. A volume that is not set is an `emptyDir` without a size limit.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HarborTrivyStorage {
    /// PersistentVolumeClaim of the vulnerability database, which takes about 1.5 GB. If unset, an `emptyDir`
    /// without a size limit is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_persistent_volume: Option<Claim>,
    /// PersistentVolumeClaim of the scan reports. If unset, an `emptyDir` without a size limit is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reports_persistent_volume: Option<Claim>,
}
