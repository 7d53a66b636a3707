//! JobService: background jobs such as replication, scans and garbage collection.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::component::{ComponentSpec, Served, Tls};
use super::core_kind::{CacheLayer, RegistryCredentials};
use super::duration::GoDuration;
use super::embedded::{Embedded, VolumeSource};
use super::log::JobServiceLogLevel;
use super::network::{Network, Proxy};
use super::observe::{Metrics, Trace};
use super::pattern;
use super::redis::{RedisConnection, RedisPool};
use super::status::ComponentStatus;

choice! {
    /// Backend of the job queue (`worker_pool.backend` of JobService).
    JobBackend { Redis = "redis" }
}

/// Desired state of JobService, which runs background jobs.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "JobService",
    plural = "jobservices",
    namespaced,
    category = "goharbor",
    doc = "JobService runs background jobs: replication, vulnerability scans, garbage collection.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct JobServiceSpec {
    /// Pod settings of JobService.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Names of Secrets with additional trusted CA certificates, each in key `ca.crt`. Default: none, which
    /// trusts the CAs of the image only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// Name of the Secret with which JobService authenticates to Core, in key `secret` (`JOBSERVICE_SECRET`
    /// of Harbor).
    #[schemars(regex(pattern = pattern::NAME))]
    pub secret_ref: String,
    /// Update strategy of the Deployment: `RollingUpdate` or `Recreate`. Default: `RollingUpdate`. `Recreate`
    /// is always used while a volume can be mounted by a single node only.
    #[serde(default = "rolling")]
    pub update_strategy_type: String,
    /// Address and secret of Core.
    pub core: JobServiceCore,
    /// Cache layer of Core, which jobs keep up to date, from Harbor 2.6 on. If unset, Core has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_layer: Option<JobServiceCacheLayer>,
    /// Destinations of the logs of jobs (`job_loggers` of JobService). Default: standard output and files
    /// that are kept for 720h, both at level `INFO`.
    #[serde(default = "usual_job_loggers")]
    pub job_loggers: Loggers,
    /// Destinations of the log of JobService itself (`loggers` of JobService). Default: standard output at
    /// level `INFO`.
    #[serde(default = "usual_loggers")]
    pub loggers: Loggers,
    /// Prometheus metrics of JobService. If unset, JobService serves no metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// IP families to listen on. The values are validated, but have no effect on JobService.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// HTTP proxy for outbound connections of JobService. If unset, JobService connects directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Address and credentials of the registry.
    pub registry: JobServiceRegistry,
    /// Volumes of JobService. If unset, JobService has no volume for scan data exports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<JobServiceStorage>,
    /// Internal TLS certificate of JobService. If unset, JobService serves plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Address of Core's token service.
    pub token_service: JobServiceTokenService,
    /// Distributed tracing of JobService. If unset, JobService sends no traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// Worker pool and job queue (`worker_pool` of JobService).
    pub worker_pool: WorkerPool,
}

impl JobServiceSpec {
    /// Returns the scheme under which JobService is reached inside the cluster.
    pub fn served(&self) -> Served {
        Served::with(self.tls.as_ref())
    }
}

pub(super) fn rolling() -> String {
    "RollingUpdate".into()
}

/// Core as called by JobService.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobServiceCore {
    /// URL of Core inside the cluster, with port (`CORE_URL` of Harbor).
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
    /// Name of the Secret with which Core authenticates to JobService, in key `secret` (`CORE_SECRET` of
    /// Harbor).
    #[schemars(regex(pattern = pattern::NAME))]
    pub secret_ref: String,
}

/// Cache layer of Core as used by JobService.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobServiceCacheLayer {
    /// Settings of the cache layer, the same as those of Core.
    #[serde(flatten)]
    pub layer: CacheLayer,
    /// Redis connection of Core (`_REDIS_URL_CORE` of Harbor). The cache layer is in database 7 of the same
    /// server; releases before 2.9 may keep it in Core's own database.
    pub redis: RedisConnection,
}

/// Registry as called by JobService.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobServiceRegistry {
    /// URL of the registry inside the cluster (`REGISTRY_URL` of Harbor).
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
    /// URL of the registry controller inside the cluster, with port (`REGISTRY_CONTROLLER_URL` of Harbor).
    #[serde(rename = "controllerURL")]
    #[schemars(regex(pattern = pattern::URL))]
    pub controller_url: String,
    /// User name and password with which JobService authenticates to the registry.
    pub credentials: RegistryCredentials,
}

/// Token service as called by JobService.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobServiceTokenService {
    /// URL of the token service, used up to Harbor 2.8 (`TOKEN_SERVICE_URL` of Harbor).
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
}

/// Volumes of JobService's pods.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobServiceStorage {
    /// Volume for scan reports that users export, mounted at `/var/scandata_exports`.
    pub scan_data_exports: Volume,
}

/// Volume source with an optional subdirectory.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Volume source, as in a Pod but without a name. Default: an `emptyDir` with a size limit of 1Gi.
    #[serde(default = "a_gigabyte")]
    pub volume_source: Embedded<VolumeSource>,
    /// Subdirectory of the volume to mount. If unset, the root of the volume is mounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

impl Default for Volume {
    fn default() -> Self {
        Self { volume_source: a_gigabyte(), prefix: None }
    }
}

pub(super) fn a_gigabyte() -> Embedded<VolumeSource> {
    Embedded::empty_dir("1Gi")
}

/// Destinations of a log. At least one of `database`, `files` and `stdout` is required.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.database) || has(self.stdout) || (has(self.files) && size(self.files) > 0)",
    "message": "no logger is set: set at least one of files, database, stdout",
}]))]
pub struct Loggers {
    /// Write the log to the Harbor database (logger `DB` of JobService). If unset, it is not written there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<DatabaseLogger>,
    /// Write the log to files (logger `FILE` of JobService). If unset or empty, no files are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<FileLogger>>,
    /// Write the log to the standard output of the container (logger `STD_OUTPUT` of JobService). If unset,
    /// it is not written there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<StdoutLogger>,
}

impl Loggers {
    /// Returns the file loggers.
    pub fn files(&self) -> &[FileLogger] {
        self.files.as_deref().unwrap_or_default()
    }

    /// Returns true if there is no logger.
    pub fn is_empty(&self) -> bool {
        self.database.is_none() && self.stdout.is_none() && self.files().is_empty()
    }
}

fn usual_job_loggers() -> Loggers {
    let file = FileLogger {
        level: JobServiceLogLevel::Info,
        sweeper: Some("720h".into()),
        volume: Some(Embedded::empty_dir("100Mi")),
    };
    Loggers { files: Some(vec![file]), ..usual_loggers() }
}

fn usual_loggers() -> Loggers {
    Loggers { stdout: Some(StdoutLogger { level: JobServiceLogLevel::Info }), ..Loggers::default() }
}

/// Log destination in the Harbor database.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseLogger {
    /// Lowest level of log entries that are written: `DEBUG`, `INFO`, `WARNING`, `ERROR` or `FATAL`. Default:
    /// `INFO`.
    #[serde(default)]
    pub level: JobServiceLogLevel,
    /// Age after which log entries are deleted, as a Go duration that is rounded up to whole days
    /// (`sweeper.duration` of JobService). If unset, they are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweeper: Option<GoDuration>,
}

/// Log destination in files.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileLogger {
    /// Lowest level of log entries that are written: `DEBUG`, `INFO`, `WARNING`, `ERROR` or `FATAL`. Default:
    /// `INFO`.
    #[serde(default)]
    pub level: JobServiceLogLevel,
    /// Age after which log files are deleted, as a Go duration that is rounded up to whole days
    /// (`sweeper.duration` of JobService). If unset, they are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweeper: Option<GoDuration>,
    /// Volume source of the log files, as in a Pod but without a name. If unset, an `emptyDir` is used: the
    /// files are lost with the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<Embedded<VolumeSource>>,
}

/// Log destination at the standard output of the container.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StdoutLogger {
    /// Lowest level of log entries that are written: `DEBUG`, `INFO`, `WARNING`, `ERROR` or `FATAL`. Default:
    /// `INFO`.
    #[serde(default)]
    pub level: JobServiceLogLevel,
}

/// Worker pool and job queue of JobService.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerPool {
    /// Backend of the job queue (`worker_pool.backend` of JobService). Only `redis`, the default, is
    /// accepted.
    #[serde(default = "in_redis")]
    #[schemars(length(min = 1))]
    pub backend: JobBackend,
    /// Number of jobs that run concurrently in each pod (`worker_pool.workers` of JobService). Default: 10.
    #[serde(default = "ten")]
    #[schemars(range(min = 1))]
    pub workers: i32,
    /// Redis connection of the job queue (`worker_pool.redis_pool` of JobService). JobService is not deployed
    /// without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis_pool: Option<RedisPool>,
}

fn in_redis() -> JobBackend {
    JobBackend::Redis
}

pub(super) fn ten() -> i32 {
    10
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unset_log_settings_have_upstreams_defaults() {
        let loggers = serde_json::to_value((usual_job_loggers(), usual_loggers())).unwrap();
        let expected = json!([
            {
                "files": [{"level": "INFO", "sweeper": "720h", "volume": {"emptyDir": {"sizeLimit": "100Mi"}}}],
                "stdout": {"level": "INFO"},
            },
            {"stdout": {"level": "INFO"}},
        ]);
        assert_eq!(loggers, expected);
    }
}
