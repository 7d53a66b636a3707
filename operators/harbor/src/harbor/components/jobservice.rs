//! The JobService of a Harbor.

use std::time::Duration;

use crate::api::JobService;
use crate::api::embedded::Embedded;
use crate::api::jobservice::{
    FileLogger, JobBackend, JobServiceCacheLayer, JobServiceCore, JobServiceRegistry, JobServiceSpec,
    JobServiceStorage, JobServiceTokenService, Loggers, StdoutLogger, Volume, WorkerPool,
};
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
        let file = FileLogger { level, sweeper: Some(LOGS_KEPT.into()), volume: None };
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
            job_loggers: Loggers { files: Some(vec![file]), ..Loggers::default() },
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
