//! Exporter: Prometheus metrics about the whole Harbor.

use windlass::PlanError;

use crate::api::component::Served;
use crate::api::exporter::{Exporter, ExporterCache, ExporterSpec};
use crate::catalogue::{self, Release};
use crate::config::exporter as file;
use crate::wiring::{self, certificate};
use crate::workload::{
    Check, ComponentObjects, Container, Deployed, Pod, Probes, RenderContext, Site, Sources, Trust, duration,
    host, policy, port, secret, service,
};

use super::jobservice::redis_namespace;

impl Deployed for Exporter {
    const BLUEPRINT: &'static str = "exporter.goharbor.io";
    const COMPONENT: catalogue::Component = catalogue::Component::Exporter;

    fn objects(
        &self,
        context: &RenderContext<'_>,
        sources: &mut Sources<'_>,
    ) -> Result<ComponentObjects, PlanError> {
        let (site, spec) = (context.site, &self.spec);
        let mut trust = Trust::default();
        let input = input(spec, context.release, site, sources, &mut trust)?;
        let rendered = file::render(&input, context.release, site.name());
        // The metrics port is plain HTTP, also if Core uses TLS.
        let probes = Probes::of(Check::Http { path: "/", port: "metrics", served: Served::Http });
        let container = Container::new("exporter", &context.image, probes)
            .env(rendered.env.clone())
            .port("metrics", spec.port);
        let mut pod = Pod::of(container, &spec.component);
        if let Some(name) = certificate(sources, "spec.tls", spec.tls.as_ref())? {
            pod = pod.with(secret("internal-certificates", name, &[]), file::SSL_DIR);
            trust.add(sources, "spec.tls.certificateRef", name, "ca.crt");
        }
        let pod = pod.trusting(trust);
        let front =
            service::service(site, site.name(), &[service::Port { name: "metrics", number: spec.port }]);
        let front = service::scraped(front, spec.port, &spec.path);
        let objects = ComponentObjects::new(site, rendered, pod, vec![front]);
        Ok(ComponentObjects {
            configs: Vec::new(),
            policies: vec![policy::ingress(site, [spec.port])],
            ..objects
        })
    }
}

fn input(
    spec: &ExporterSpec,
    release: &Release,
    site: &Site,
    sources: &mut Sources<'_>,
    trust: &mut Trust,
) -> Result<file::Exporter, PlanError> {
    let url = &spec.core.url;
    let Some((scheme, core, own)) = host(url) else {
        return Err(PlanError::new(format!(
            "spec.core.url: {url:?} is not a URL: write it as http://host:80"
        )));
    };
    let usual = if scheme == "https" { 443 } else { 80 };
    let (database, database_password, pool) = wiring::core_database(sources, trust, &spec.database)?;
    let queue = match spec.jobservice.as_ref().and_then(|jobservice| jobservice.redis_pool.as_ref()) {
        Some(pool) => {
            let field = "spec.jobservice.redisPool";
            Some(file::Queue {
                redis: wiring::redis(sources, trust, field, &pool.connection.server, release)?,
                database: wiring::redis_database(field, pool.connection.database)?,
                namespace: pool
                    .namespace
                    .clone()
                    .unwrap_or_else(|| redis_namespace(site.namespace(), site.component())),
                idle_timeout: duration("spec.jobservice.redisPool.idleTimeout", &pool.idle_timeout)?,
            })
        }
        None => None,
    };
    let usual_cache = ExporterCache::default();
    let cache = spec.cache.as_ref().unwrap_or(&usual_cache);
    Ok(file::Exporter {
        port: port("spec.port", spec.port)?,
        path: spec.path.clone(),
        log_level: spec.log_level().to_string(),
        cache_duration: duration("spec.cache.duration", &cache.duration)?,
        cache_clean_interval: duration("spec.cache.cleanInterval", &cache.clean_interval)?,
        core_scheme: scheme.to_owned(),
        core_host: core.to_owned(),
        core_port: own.unwrap_or(usual),
        database,
        database_password,
        pool,
        queue,
    })
}
