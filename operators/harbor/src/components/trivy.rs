//! Trivy: the adapter to the vulnerability scanner.

use k8s_openapi::api::core::v1::{ConfigMapEnvSource, EnvFromSource, PersistentVolumeClaim, SecretEnvSource};
use windlass::{Kinds, PlanError};

use crate::api::names::blueprint;
use crate::api::trivy::{Trivy, TrivyJobs, TrivyPool, TrivySpec, TrivyUpdate};
use crate::catalogue::{self, Feature, Release, refuse_ignored};
use crate::config::outbound::Outbound;
use crate::config::trivy as file;
use crate::wiring::{self, certificate, is_tls};
use crate::workload::{
    Check, ComponentObjects, Container, Deployed, Pod, Probes, RenderContext, Sources, Strategy, Trust,
    at_field, count, duration, mount_part, policy, secret, service,
};

/// Directory of the certificate authorities of clients.
const CLIENTS_DIR: &str = "/etc/harbor/client-certificates";

impl Deployed for Trivy {
    const BLUEPRINT: &'static str = "trivy.goharbor.io";
    const COMPONENT: catalogue::Component = catalogue::Component::Trivy;

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
        let input = input(spec, context.release, sources, &mut trust)?;
        let rendered = file::render(&input, context.release, site.name());
        let port = served.scheme();
        let check = |path| Check::Http { path, port, served };
        let config = ConfigMapEnvSource { name: site.name().to_owned(), optional: None };
        let own = SecretEnvSource { name: site.name().to_owned(), optional: None };
        let (cache, reports) = (&spec.storage.cache, &spec.storage.reports);
        let probes = Probes {
            live: check("/probe/healthy"),
            ready: check("/probe/ready"),
            ..Probes::of(check("/probe/healthy"))
        };
        let container = Container::new("trivy", &context.image, probes)
            .env(rendered.env.clone())
            .env_from(EnvFromSource { config_map_ref: Some(config), ..EnvFromSource::default() })
            .env_from(EnvFromSource { secret_ref: Some(own), ..EnvFromSource::default() })
            .port(port, served.container_port())
            .mount(mount_part("reports", file::REPORTS_DIR, reports.prefix.as_deref()))
            .mount(mount_part("cache", file::CACHE_DIR, cache.prefix.as_deref()));
        let mut pod = Pod::of(container, &spec.component);
        for (name, volume) in [("reports", reports), ("cache", cache)] {
            let field = format!("spec.storage.{name}.volumeSource");
            pod.volumes.push(volume.volume_source.volume(name).map_err(|error| at_field(&field, &error))?);
        }
        if let Some(name) = certificate(sources, "spec.server.tls", spec.server.tls.as_ref())? {
            // The image expects the certificate authority of the other components here, beside its own
            // certificate.
            pod = pod.with(secret("internal-certificates", name, &[]), file::SSL_DIR);
        }
        for (n, name) in spec.server.client_certificate_authority_refs.iter().enumerate() {
            sources.files("spec.server.clientCertificateAuthorityRefs", name, &["ca.crt"]);
            let volume = secret(&format!("client-certificates-{n}"), name, &[("ca.crt", "ca.crt")]);
            pod = pod.with(volume, &format!("{CLIENTS_DIR}/{n}"));
        }
        for (n, name) in spec.server.token_service_certificate_authority_refs.iter().enumerate() {
            let field = "spec.server.tokenServiceCertificateAuthorityRefs";
            trust.add_if_there(sources, field, name, format!("{n}-ca.crt"));
        }
        trust.add_all(sources, "spec.certificateRefs", &spec.certificate_refs);
        let pod = pod.trusting(trust);
        let exclusive = sources.exclusive([&cache.volume_source, &reports.volume_source]);
        let front = service::service(site, site.name(), &[service::Port::served(served)]);
        Ok(ComponentObjects {
            strategy: if exclusive { Strategy::Recreate } else { Strategy::Rolling },
            policies: vec![policy::ingress(site, [served.container_port()])],
            ..ComponentObjects::new(site, rendered, pod, vec![front])
        })
    }
}

fn input(
    spec: &TrivySpec,
    release: &Release,
    sources: &mut Sources<'_>,
    trust: &mut Trust,
) -> Result<file::Trivy, PlanError> {
    let server = &spec.server;
    let clients = 0..server.client_certificate_authority_refs.len();
    let update = spec.update.as_ref();
    let token = update.and_then(|update| update.github_token_ref.as_ref());
    Ok(file::Trivy {
        tls: is_tls(spec.served()),
        client_authorities: clients.map(|n| format!("{CLIENTS_DIR}/{n}/ca.crt")).collect(),
        log_level: spec.log.level.to_string(),
        debug_mode: server.debug_mode,
        read_timeout: duration("spec.server.readTimeout", &server.read_timeout)?,
        write_timeout: duration("spec.server.writeTimeout", &server.write_timeout)?,
        idle_timeout: duration("spec.server.idleTimeout", &server.idle_timeout)?,
        vulnerability_types: spec.vulnerability_types.clone(),
        severities: spec.severities.clone(),
        ignore_unfixed: server.ignore_unfixed,
        skip_update: update.is_some_and(|update| update.skip),
        offline_scan: spec.offline_scan,
        insecure: server.insecure,
        timeout: duration("spec.timeout", &spec.timeout)?,
        db_repository: repository(release, update, "dbRepository", |update| &update.db_repository)?,
        java_db_repository: repository(release, update, "javaDBRepository", |update| {
            &update.java_db_repository
        })?,
        github_token: token.map(|secret| sources.key("spec.update.githubTokenRef", secret, "github-token")),
        redis: redis(spec, release, sources, trust)?,
        outbound: outbound(spec),
    })
}

/// Returns a repository of Trivy's databases, or an error if the release does not read it.
fn repository(
    release: &Release,
    update: Option<&TrivyUpdate>,
    name: &str,
    field: fn(&TrivyUpdate) -> &Option<String>,
) -> Result<Option<String>, PlanError> {
    let repository = update.and_then(|update| field(update).clone()).filter(|text| !text.is_empty());
    let value = repository.as_ref().map(|text| text as &dyn std::fmt::Display);
    match refuse_ignored(release, Feature::TrivyRepositories, &format!("spec.update.{name}"), value) {
        Some(refusal) => Err(refusal.into()),
        None => Ok(repository),
    }
}

/// Returns the HTTP proxy. `spec.proxy` is newer than `spec.server.proxy` and takes precedence.
fn outbound(spec: &TrivySpec) -> Outbound {
    match (&spec.proxy, &spec.server.proxy) {
        (None, Some(old)) => {
            let url = Some(old.url.clone());
            Outbound { http: url.clone(), https: url, without: old.no_proxy.clone() }
        }
        (proxy, _) => wiring::outbound(proxy.as_ref(), []),
    }
}

fn redis(
    spec: &TrivySpec,
    release: &Release,
    sources: &mut Sources<'_>,
    trust: &mut Trust,
) -> Result<file::TrivyRedis, PlanError> {
    let field = "spec.redis";
    let Some(redis) = &spec.redis else {
        return Err(PlanError::new(format!(
            "{field} is missing: set the address of the Redis with the job queue"
        )));
    };
    let (usual_jobs, usual_pool) = (TrivyJobs::default(), TrivyPool::default());
    let (jobs, pool) =
        (redis.jobs.as_ref().unwrap_or(&usual_jobs), redis.pool.as_ref().unwrap_or(&usual_pool));
    Ok(file::TrivyRedis {
        server: wiring::redis(sources, trust, field, &redis.connection.server, release)?,
        database: wiring::redis_database(field, redis.connection.database)?,
        store_namespace: redis.namespace.clone(),
        queue_namespace: jobs.namespace.clone(),
        scan_job_ttl: duration("spec.redis.jobs.scanTTL", &jobs.scan_ttl)?,
        idle_timeout: duration("spec.redis.pool.idleTimeout", &pool.idle_timeout)?,
        connection_timeout: duration("spec.redis.pool.connectionTimeout", &pool.connection_timeout)?,
        read_timeout: duration("spec.redis.pool.readTimeout", &pool.read_timeout)?,
        write_timeout: duration("spec.redis.pool.writeTimeout", &pool.write_timeout)?,
        max_active: count(pool.max_active),
        max_idle: count(pool.max_idle),
    })
}
