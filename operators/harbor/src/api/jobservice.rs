//! The job service: what takes long.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::component::{ComponentSpec, Served, Tls};
use super::core_kind::RegistryCredentials;
use super::duration::GoDuration;
use super::embedded::{Embedded, VolumeSource};
use super::log::JobServiceLogLevel;
use super::network::{Network, Proxy};
use super::observe::{Metrics, Trace};
use super::pattern;
use super::redis::RedisPool;
use super::status::ComponentStatus;

choice! {
    /// Where jobs are queued.
    JobBackend { Redis = "redis" }
}

/// What the job service should be.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "JobService",
    plural = "jobservices",
    namespaced,
    category = "goharbor",
    doc = "JobService runs what takes long: replication, scans, garbage collection.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct JobServiceSpec {
    /// How its pods are run.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Secrets with more certificate authorities to trust, under ca.crt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// The Secret by which it is known, under secret.
    #[schemars(regex(pattern = pattern::NAME))]
    pub secret_ref: String,
    /// How pods are replaced: RollingUpdate or Recreate.
    #[serde(default = "rolling")]
    pub update_strategy_type: String,
    /// Core.
    pub core: JobServiceCore,
    /// Where the logs of jobs go.
    #[serde(default = "usual_job_loggers")]
    pub job_loggers: Loggers,
    /// Where its own log goes.
    #[serde(default = "usual_loggers")]
    pub loggers: Loggers,
    /// Its metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// The addresses on which it listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Its way into the world.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// The registry.
    pub registry: JobServiceRegistry,
    /// Where it puts files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<JobServiceStorage>,
    /// The certificate with which it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Where tokens are had.
    pub token_service: JobServiceTokenService,
    /// Its traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// Who works.
    pub worker_pool: WorkerPool,
}

impl JobServiceSpec {
    /// How it is reached inside the cluster.
    pub fn served(&self) -> Served {
        Served::with(self.tls.as_ref())
    }
}

pub(super) fn rolling() -> String {
    "RollingUpdate".into()
}

/// Core, as the job service sees it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobServiceCore {
    /// Its URL.
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
    /// The Secret by which it is known, under secret.
    #[schemars(regex(pattern = pattern::NAME))]
    pub secret_ref: String,
}

/// The registry, as the job service sees it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobServiceRegistry {
    /// Its URL.
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
    /// The URL of its controller.
    #[serde(rename = "controllerURL")]
    #[schemars(regex(pattern = pattern::URL))]
    pub controller_url: String,
    /// Whom the job service is there.
    pub credentials: RegistryCredentials,
}

/// Where tokens are had.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobServiceTokenService {
    /// The URL.
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
}

/// Where the job service puts files.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobServiceStorage {
    /// What users export of scans.
    pub scan_data_exports: Volume,
}

/// A volume, and the directory in it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Which volume, as in a Pod.
    #[serde(default = "a_gigabyte")]
    pub volume_source: Embedded<VolumeSource>,
    /// The directory in it.
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

/// Where logs go: to at least one place.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.database) || has(self.stdout) || (has(self.files) && size(self.files) > 0)",
    "message": "there is no logger: give at least one of files, database, stdout",
}]))]
pub struct Loggers {
    /// To the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<DatabaseLogger>,
    /// To files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<FileLogger>>,
    /// To where the container's output goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<StdoutLogger>,
}

impl Loggers {
    /// The files that are written.
    pub fn files(&self) -> &[FileLogger] {
        self.files.as_deref().unwrap_or_default()
    }

    /// Whether logs go nowhere.
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

/// Logs in the database.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseLogger {
    /// From this level on.
    #[serde(default)]
    pub level: JobServiceLogLevel,
    /// The age at which they are deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweeper: Option<GoDuration>,
}

/// Logs in files.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileLogger {
    /// From this level on.
    #[serde(default)]
    pub level: JobServiceLogLevel,
    /// The age at which they are deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweeper: Option<GoDuration>,
    /// The volume they are in, as in a Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<Embedded<VolumeSource>>,
}

/// Logs where the container's output goes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StdoutLogger {
    /// From this level on.
    #[serde(default)]
    pub level: JobServiceLogLevel,
}

/// Who works.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerPool {
    /// Where jobs are queued.
    #[serde(default = "in_redis")]
    #[schemars(length(min = 1))]
    pub backend: JobBackend,
    /// How many jobs run at the same time, in each pod.
    #[serde(default = "ten")]
    #[schemars(range(min = 1))]
    pub workers: i32,
    /// The queue's Redis.
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
    fn what_is_not_said_of_logs_is_as_it_always_was() {
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
