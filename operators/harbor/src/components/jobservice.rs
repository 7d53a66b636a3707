//! JobService: replication, scans and garbage collection.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use windlass::{Kinds, PlanError};

use crate::api::embedded::{Embedded, VolumeSource};
use crate::api::jobservice::{JobService, JobServiceCacheLayer, JobServiceSpec, Loggers};
use crate::api::names::blueprint;
use crate::catalogue::{self, Release};
use crate::config::jobservice::{self as file, Logger, job_log_dir, log_dir};
use crate::wiring::{self, certificate, is_tls};
use crate::workload::{
    Check, ComponentObjects, Container, Deployed, Pod, Probes, RenderContext, Site, Sources, Strategy, Trust,
    at_field, config_map, count, duration, empty, mount, mount_part, policy, secret, service,
};

/// Directory of scan data that users export.
const EXPORTS_DIR: &str = "/var/scandata_exports";

impl Deployed for JobService {
    const BLUEPRINT: &'static str = "jobservice.goharbor.io";
    const COMPONENT: catalogue::Component = catalogue::Component::JobService;

    fn requires(kinds: &mut Kinds) {
        kinds.looks_at_made_by::<PersistentVolumeClaim>(blueprint::HARBOR_CLUSTER);
    }

    fn objects(
        &self,
        context: &RenderContext<'_>,
        sources: &mut Sources<'_>,
    ) -> Result<ComponentObjects, PlanError> {
        let (site, spec, served) = (context.site, &self.spec, self.spec.served());
        let mut trust = Trust::default();
        let input = input(spec, context.release, site, sources, &mut trust)?;
        let rendered = file::render(&input, context.release, site.name());
        let port = served.scheme();
        let metrics = input.metrics.as_ref().map(|metrics| i32::from(metrics.port));
        let probes = Probes::of(Check::Http { path: "/api/v1/stats", port, served });
        let container = Container::new("jobservice", &context.image, probes)
            .env(rendered.env.clone())
            .port(port, served.container_port())
            .port_if("metrics", metrics)
            .mount(mount("configuration", file::CONFIG_DIR));
        let mut pod = Pod::of(container, &spec.component).with(empty("logs"), "/var/log/jobs");
        pod.grace = 120;
        pod.volumes.push(config_map("configuration", site.name()));
        if let Some(name) = certificate(sources, "spec.tls", spec.tls.as_ref())? {
            pod = pod.with(secret("internal-certificates", name, &[]), file::SSL_DIR);
            trust.add(sources, "spec.tls.certificateRef", name, "ca.crt");
        }
        trust.add_all(sources, "spec.certificateRefs", &spec.certificate_refs);
        let pod = volumes(spec, pod.trusting(trust))?;
        let exclusive = sources.exclusive(all_volumes(spec));

        let mut ports = vec![service::Port::served(served)];
        ports.extend(metrics.map(|number| service::Port { name: "metrics", number }));
        let mut front = service::service(site, site.name(), &ports);
        if let Some(metrics) = &input.metrics {
            front = service::scraped(front, i32::from(metrics.port), &metrics.path);
        }
        let policy = policy::ingress(site, [Some(served.container_port()), metrics].into_iter().flatten());
        Ok(ComponentObjects {
            strategy: Strategy::chosen("spec.updateStrategyType", &spec.update_strategy_type, exclusive)?,
            policies: vec![policy],
            ..ComponentObjects::new(site, rendered, pod, vec![front])
        })
    }
}

/// Returns the prefix of JobService's keys in Redis. A changed prefix would lose all queued jobs; the
/// exporter reads the same keys.
pub(crate) fn redis_namespace(namespace: &str, component: &str) -> String {
    format!("jobservice::{namespace}::{component}")
}

fn input(
    spec: &JobServiceSpec,
    release: &Release,
    site: &Site,
    sources: &mut Sources<'_>,
    trust: &mut Trust,
) -> Result<file::JobService, PlanError> {
    let field = "spec.workerPool.redisPool";
    let Some(pool) = &spec.worker_pool.redis_pool else {
        return Err(PlanError::new(format!(
            "{field} is missing: set the address of the Redis with the job queue"
        )));
    };
    let registry = &spec.registry;
    let neighbours = [&spec.core.url, &spec.token_service.url, &registry.url, &registry.controller_url];
    let (job_loggers, loggers) = (
        loggers("spec.jobLoggers", &spec.job_loggers, job_log_dir)?,
        loggers("spec.loggers", &spec.loggers, log_dir)?,
    );
    let layer = wiring::cache_layer(spec.cache_layer.as_ref().map(|layer| &layer.layer), release)?;
    let cache_layer = match layer.zip(spec.cache_layer.as_ref()) {
        Some((layer, JobServiceCacheLayer { redis, .. })) => {
            let field = "spec.cacheLayer.redis";
            let database = wiring::redis_database(field, redis.database)?;
            Some((layer, wiring::redis(sources, trust, field, &redis.server, release)?, database))
        }
        None => None,
    };
    Ok(file::JobService {
        tls: is_tls(spec.served()),
        workers: count(spec.worker_pool.workers),
        redis: wiring::redis(sources, trust, field, &pool.connection.server, release)?,
        redis_database: wiring::redis_database(field, pool.connection.database)?,
        redis_namespace: pool
            .namespace
            .clone()
            .unwrap_or_else(|| redis_namespace(site.namespace(), site.component())),
        redis_idle_timeout: duration("spec.workerPool.redisPool.idleTimeout", &pool.idle_timeout)?,
        cache_layer,
        log_level: level(&spec.loggers),
        job_loggers,
        loggers,
        core_url: spec.core.url.clone(),
        token_service_url: spec.token_service.url.clone(),
        registry_url: registry.url.clone(),
        registry_controller_url: registry.controller_url.clone(),
        registry_username: registry.credentials.username.clone(),
        registry_password: sources.key(
            "spec.registry.credentials.passwordRef",
            &registry.credentials.password_ref,
            "secret",
        ),
        core_secret: sources.key("spec.core.secretRef", &spec.core.secret_ref, "secret"),
        jobservice_secret: sources.key("spec.secretRef", &spec.secret_ref, "secret"),
        metrics: wiring::metrics(spec.metrics.as_ref())?,
        trace: wiring::trace(sources, spec.trace.as_ref())?,
        outbound: wiring::outbound(spec.proxy.as_ref(), neighbours.into_iter().map(String::as_str)),
    })
}

/// Returns the log level of JobService itself, if a logger sets one.
fn level(loggers: &Loggers) -> String {
    let stdout = loggers.stdout.as_ref().map(|logger| logger.level);
    let file = loggers.files().first().map(|logger| logger.level);
    let database = loggers.database.as_ref().map(|logger| logger.level);
    stdout.or(file).or(database).unwrap_or_default().to_string()
}

fn loggers(field: &str, targets: &Loggers, directory: fn(usize) -> String) -> Result<Vec<Logger>, PlanError> {
    if targets.is_empty() {
        return Err(PlanError::new(format!("{field} is empty: set at least one of files, database, stdout")));
    }
    let mut loggers = Vec::new();
    if let Some(database) = &targets.database {
        let sweeper =
            database.sweeper.as_ref().map(|time| duration(&format!("{field}.database.sweeper"), time));
        loggers.push(Logger::Database { level: database.level.to_string(), sweeper: sweeper.transpose()? });
    }
    if let Some(stdout) = &targets.stdout {
        loggers.push(Logger::Stdout { level: stdout.level.to_string() });
    }
    for (n, file) in targets.files().iter().enumerate() {
        let sweeper =
            file.sweeper.as_ref().map(|time| duration(&format!("{field}.files[{n}].sweeper"), time));
        let (level, directory) = (file.level.to_string(), directory(n));
        loggers.push(Logger::File { level, directory, sweeper: sweeper.transpose()? });
    }
    Ok(loggers)
}

fn volumes(spec: &JobServiceSpec, mut pod: Pod) -> Result<Pod, PlanError> {
    let of_jobs = spec.job_loggers.files().iter().enumerate();
    let of_jobs = of_jobs.map(|(n, logger)| (format!("joblogs-{n}"), job_log_dir(n), logger));
    let own = spec.loggers.files().iter().enumerate();
    let own = own.map(|(n, logger)| (format!("logs-{n}"), log_dir(n), logger));
    for (name, directory, logger) in of_jobs.chain(own) {
        let volume = match &logger.volume {
            Some(volume) => volume.volume(&*name).map_err(|error| at_field(&name, &error))?,
            None => empty(&name),
        };
        pod = pod.with(volume, &directory);
    }
    if let Some(storage) = &spec.storage {
        let exports = &storage.scan_data_exports;
        let field = "spec.storage.scanDataExports.volumeSource";
        let volume =
            exports.volume_source.volume("job-scandata-exports").map_err(|error| at_field(field, &error))?;
        pod.volumes.push(volume);
        if let Some((container, _)) = pod.containers.first_mut() {
            container.mounts.push(mount_part("job-scandata-exports", EXPORTS_DIR, exports.prefix.as_deref()));
        }
    }
    Ok(pod)
}

fn all_volumes(spec: &JobServiceSpec) -> impl Iterator<Item = &Embedded<VolumeSource>> {
    let files = spec.job_loggers.files().iter().chain(spec.loggers.files());
    let exports = spec.storage.iter().map(|storage| &storage.scan_data_exports.volume_source);
    files.filter_map(|file| file.volume.as_ref()).chain(exports)
}
