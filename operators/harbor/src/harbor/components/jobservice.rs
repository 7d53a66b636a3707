//! The JobService of a Harbor.

use std::time::Duration;

use k8s_openapi::api::core::v1::PersistentVolumeClaimVolumeSource;

use crate::api::JobService;
use crate::api::embedded::Embedded;
use crate::api::harbor_components::HarborJobLogs;
use crate::api::jobservice::{
    DatabaseLogger, FileLogger, JobBackend, JobServiceCacheLayer, JobServiceCore, JobServiceRegistry,
    JobServiceSpec, JobServiceStorage, JobServiceTokenService, Loggers, StdoutLogger, Volume, WorkerPool,
};
use crate::api::log::JobServiceLogLevel;
use crate::api::redis::{RedisPool, database};
use crate::catalogue::Component;

use super::Wiring;
use crate::harbor::credentials::Credential;

/// Retention of job logs. JobService counts in whole days.
const LOGS_KEPT: Duration = Duration::from_hours(14 * 24);

impl Wiring<'_> {
    /// Returns the JobService.
    pub(crate) fn job_service(&self) -> JobService {
        let common = self.common();
        let jobs = common.jobservice.clone().unwrap_or_default();
        let level = common.log_level.job_service();
        let exports =
            jobs.storage.as_ref().and_then(|storage| storage.scan_data_exports_persistent_volume.as_ref());
        // JobService reads the address of the database from Core, and connects to it itself.
        let mut certificate_refs = jobs.certificate_refs.clone();
        let authority = self.database.certificate_ref.iter();
        certificate_refs.extend(authority.filter(|secret| !jobs.certificate_refs.contains(secret)).cloned());
        let layer = common.core.as_ref().and_then(|core| core.cache_layer);
        let spec = JobServiceSpec {
            component: self.component(Some(&jobs.component), Component::JobService),
            certificate_refs,
            secret_ref: self.credential(Credential::JobServiceSecret),
            update_strategy_type: common.update_strategy_type.clone(),
            core: JobServiceCore {
                url: self.core_url(),
                secret_ref: self.credential(Credential::CoreSecret),
            },
            cache_layer: layer.map(|layer| JobServiceCacheLayer { layer, redis: self.redis(database::CORE) }),
            job_loggers: job_loggers(jobs.job_logs.as_ref(), level),
            loggers: Loggers { stdout: Some(StdoutLogger { level }), ..Loggers::default() },
            metrics: jobs.metrics.clone(),
            network: common.network.clone(),
            proxy: common.proxy_of("jobservice").cloned(),
            registry: JobServiceRegistry {
                url: self.url(Component::Registry),
                controller_url: self.names.url_with_port(Component::RegistryController, self.served),
                credentials: self.registry_credentials(),
            },
            storage: exports.map(|claim| JobServiceStorage {
                // Upstream ignored the `prefix` of this claim, so it stays without effect.
                scan_data_exports: Volume { volume_source: Embedded::claim(&claim.source()), prefix: None },
            }),
            tls: self.tls(Component::JobService),
            token_service: JobServiceTokenService { url: self.token_service() },
            trace: common.trace.clone(),
            worker_pool: WorkerPool {
                backend: JobBackend::Redis,
                workers: jobs.worker_count,
                redis_pool: Some(self.queue(None)),
            },
        };
        JobService { metadata: self.metadata(), spec, status: None }
    }

    /// Returns the Redis pool of the job queue with this key prefix.
    pub(super) fn queue(&self, namespace: Option<String>) -> RedisPool {
        RedisPool { connection: self.redis(database::JOB_SERVICE), namespace, idle_timeout: "30s".into() }
    }
}

/// Returns the destination of the logs of jobs: the database, files in a claim, or files in the pod.
fn job_loggers(logs: Option<&HarborJobLogs>, level: JobServiceLogLevel) -> Loggers {
    let sweeper = Some(LOGS_KEPT.into());
    if logs.is_some_and(|logs| logs.database) {
        return Loggers { database: Some(DatabaseLogger { level, sweeper }), ..Loggers::default() };
    }
    let claim = logs.and_then(|logs| logs.claim_name.clone()).filter(|name| !name.is_empty());
    let volume = claim.map(|claim_name| {
        Embedded::claim(&PersistentVolumeClaimVolumeSource { claim_name, read_only: None })
    });
    Loggers { files: Some(vec![FileLogger { level, sweeper, volume }]), ..Loggers::default() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use crate::api::JobService;
    use crate::harbor::blueprint::samples::{harbor, wired};
    use crate::workload::ComponentBlueprint;

    /// Returns `config.yml` and the volume of the first log directory of JobService's pods.
    fn rendered(logs: Value, mode: &str) -> (String, Value, Value) {
        let mut harbor = harbor("2.15.2", false);
        let mut jobs = json!({});
        if !logs.is_null() {
            jobs["jobLogs"] = logs;
        }
        harbor.spec.common.jobservice = Some(serde_json::from_value(jobs).unwrap());
        let owner = wired(&harbor, |wiring| {
            let mut owner = wiring.job_service();
            owner.metadata.namespace = Some("registry".to_owned());
            owner
        });
        let names = ["jobservice-secret", "core-secret", "registry-basicauth"];
        let secret = |name: &str| {
            let name = format!("sample-harbor-{name}");
            json!({"kind": "Secret", "metadata": {"name": name}, "data": {"secret": "eA=="}})
        };
        let mut all: Vec<Value> = names.into_iter().map(secret).collect();
        all.push(json!({
            "kind": "PersistentVolumeClaim", "metadata": {"name": "logs"}, "spec": {"accessModes": [mode]}}));
        let blueprint = ComponentBlueprint::<JobService>::new(Arc::default());
        let sketch = windlass::sketch(&blueprint, &owner, &all).unwrap();
        assert!(sketch.waiting.is_empty(), "{:?}", sketch.waiting);
        let of_kind = |kind: &str| {
            let mut bodies = sketch.objects.iter().map(windlass::Desired::body);
            bodies.find(|body| body["kind"] == kind).unwrap().clone()
        };
        let config = of_kind("ConfigMap")["data"]["config.yml"].as_str().unwrap().to_owned();
        let deployment = of_kind("Deployment");
        let volumes = deployment["spec"]["template"]["spec"]["volumes"].as_array().unwrap();
        let volume = volumes.iter().find(|volume| volume["name"] == "joblogs-0").cloned();
        (config, volume.unwrap_or_default(), deployment["spec"]["strategy"]["type"].clone())
    }

    /// Returns the section of the loggers of jobs.
    fn section(config: &str) -> &str {
        let (_, rest) = config.split_once("job_loggers:\n").unwrap();
        rest.split_once("\nloggers:").unwrap().0
    }

    #[test]
    fn users_job_logs_are_in_the_pod_in_a_claim_or_in_the_database() {
        let (unset, volume, strategy) = rendered(Value::Null, "ReadWriteMany");
        assert!(section(&unset).contains("FILE") && section(&unset).contains("/mnt/joblogs/0"), "{unset}");
        assert_eq!((volume["emptyDir"].is_object(), strategy), (true, json!("RollingUpdate")));

        let (claimed, volume, strategy) = rendered(json!({"claimName": "logs"}), "ReadWriteMany");
        assert_eq!(claimed, unset, "the same files in another volume");
        assert_eq!(volume["persistentVolumeClaim"], json!({"claimName": "logs"}));
        assert_eq!(strategy, "RollingUpdate");
        let (_, _, strategy) = rendered(json!({"claimName": "logs"}), "ReadWriteOnce");
        assert_eq!(strategy, "Recreate", "one node at a time can mount it");

        let (database, volume, _) = rendered(json!({"database": true}), "ReadWriteMany");
        let logger = section(&database);
        assert!(logger.contains("DB") && logger.contains("duration: 14"), "{database}");
        assert!(!logger.contains("FILE") && !logger.contains("/mnt/joblogs"), "{database}");
        assert_eq!(volume, Value::Null);
    }
}
