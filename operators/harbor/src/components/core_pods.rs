//! The pods of Core, and the objects that they need.

use std::sync::Arc;

use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use windlass::{PlanError, PlanState};
use windlass_runtime::key::ObjectKey;

use crate::api::children::Component as _;
use crate::api::core_kind::{Core, CoreSpec};
use crate::api::status::condition::SCHEMA_CLEAN;
use crate::catalogue::{self, Release};
use crate::config::SecretKey;
use crate::config::core_env as file;
use crate::schema::{self, Readings, SchemaCheck};
use crate::wiring::{self, certificate, is_tls};
use crate::workload::{
    Check, ComponentBlueprint, Container, Deployed, Making, Parts, Pod, Probes, Site, Sources, Trust,
    config_map, duration, empty, mount_part, policy, secret, secret_if_there, service, version,
};

/// The plan of Core.
pub type CoreBlueprint = ComponentBlueprint<Core>;

/// The field of the status with the version at which it was last ready.
const VERSION: &str = "version";
/// How many times ten seconds the migration of a large database may take, before Core is killed for not starting.
const MIGRATION: i32 = 360;

impl Deployed for Core {
    const BLUEPRINT: &'static str = "core.goharbor.io";
    const PART: catalogue::Component = catalogue::Component::Core;

    fn parts(&self, making: &Making<'_>, sources: &mut Sources<'_>) -> Result<Parts, PlanError> {
        let (site, spec, served) = (making.site, &self.spec, self.spec.served());
        let mut trust = Trust::default();
        let input = input(spec, making.release, site, sources, &mut trust)?;
        let rendered = file::render(&input, making.release, site.name());
        let (port, check) =
            (served.scheme(), Check::Http { path: "/api/v2.0/ping", port: served.scheme(), served });
        let metrics = input.metrics.as_ref().map(|metrics| i32::from(metrics.port));
        let probes = Probes { patience: MIGRATION, ..Probes::of(check) };
        let container = Container::new("core", &making.image, probes)
            .env(rendered.env.clone())
            .port(port, served.container_port())
            .port_if("metrics", metrics)
            .mount(mount_part("configuration", file::CONFIG_PATH, Some(file::CONFIG_KEY)))
            .mount(mount_part("encryption", file::KEY_PATH, Some("key")))
            .mount(mount_part("token-service-private-key", file::TOKEN_KEY_PATH, Some("tls.key")));
        let mut pod = Pod::of(container, &spec.component).with(empty("psc"), "/etc/core/token");
        pod.grace = 120;
        let (key, token) =
            (&spec.database.encryption_key_ref, &spec.components.token_service.certificate_ref);
        sources.files("spec.database.encryptionKeyRef", key, &["secret"]);
        sources.files("spec.components.tokenService.certificateRef", token, &["tls.key"]);
        pod.volumes.extend([
            config_map("configuration", site.name()),
            secret("encryption", key, &[("secret", "key")]),
            secret("token-service-private-key", token, &[("tls.key", "tls.key")]),
        ]);
        if let Some(public) = &spec.public_certificate_ref {
            sources.files("spec.publicCertificateRef", public, &[]);
            pod = pod.with(secret_if_there("ca-download", public, &[("ca.crt", "ca.crt")]), "/etc/core/ca");
        }
        let tls = spec.components.tls.as_ref();
        if let Some(name) = certificate(sources, "spec.components.tls", tls)? {
            pod = pod.with(secret("internal-certificates", name, &[]), file::SSL_DIR);
            trust.add(sources, "spec.components.tls.certificateRef", name, "ca.crt");
        }
        trust.add_all(sources, "spec.certificateRefs", &spec.certificate_refs);
        let schema = Some(self.schema(making, sources, &input));
        let pod = pod.trusting(trust);

        let mut ports = vec![service::Port::served(served)];
        ports.extend(metrics.map(|number| service::Port { name: "metrics", number }));
        let mut front = service::service(site, site.name(), &ports);
        if let Some(metrics) = &input.metrics {
            front = service::scraped(front, i32::from(metrics.port), &metrics.path);
        }
        let front = service::known_to_ingress(front, &self.metadata, served, port);
        let policy = policy::ingress(site, [Some(served.container_port()), metrics].into_iter().flatten());
        Ok(Parts { policies: vec![policy], schema, ..Parts::new(site, rendered, pod, vec![front]) })
    }

    fn tells(&self, seen: &PlanState<'_>, readings: &Readings) -> Option<Value> {
        let key = self.key();
        let wanted =
            version::release(self.meta(), self.pods()).ok().map(|release| release.version().to_string());
        let standing = self.standing().map(str::to_owned);
        if standing == wanted {
            readings.forget(&key);
        }
        let (numbers, clean) = match readings.of(&key) {
            Some(reading) => (reading.numbers(), Some(reading.condition())),
            None => self.told(),
        };
        Some(json!({
            VERSION: if seen.is_ready() { wanted } else { standing },
            schema::FIELD: numbers,
            "conditions": Vec::from_iter(clean),
        }))
    }
}

impl Core {
    /// The version at which it was last ready, and its database migrated.
    fn standing(&self) -> Option<&str> {
        self.status.as_ref()?.other.get(VERSION)?.as_str()
    }

    /// What its status says of the schema already.
    fn told(&self) -> (Option<Value>, Option<Value>) {
        let Some(status) = &self.status else { return (None, None) };
        let clean = status.conditions.iter().find(|condition| condition.kind == SCHEMA_CLEAN);
        let clean = clean.map(|clean| {
            json!({"type": clean.kind, "status": clean.status, "reason": clean.reason, "message": clean.message})
        });
        (status.other.get(schema::FIELD).cloned(), clean)
    }

    /// The look at the database that this version migrates, unless it has done so.
    fn schema(&self, making: &Making<'_>, sources: &mut Sources<'_>, input: &file::Core) -> SchemaCheck {
        let due = self.standing() != Some(&*making.release.version().to_string());
        let authority = |secret: &String| sources.value("spec.certificateRefs", secret, "ca.crt");
        let authorities = self.spec.certificate_refs.iter().map(authority).collect();
        let SecretKey { name, key, .. } = &input.database_password;
        let target = schema::Target {
            database: input.database.clone(),
            password: sources.value("spec.database.passwordRef", name, key),
            authorities,
            namespace: self.namespace().unwrap_or_default(),
        };
        SchemaCheck { due, owner: self.key(), target, readings: Arc::clone(making.readings) }
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(&*self.namespace().unwrap_or_default(), &*self.name_any())
    }
}

fn input(
    spec: &CoreSpec,
    release: &Release,
    site: &Site,
    sources: &mut Sources<'_>,
    trust: &mut Trust,
) -> Result<file::Core, PlanError> {
    let (served, components) = (spec.served(), &spec.components);
    let (database, database_password, pool) = wiring::core_database(sources, &spec.database)?;
    let connection = &spec.redis.connection;
    let redis = wiring::redis(sources, trust, "spec.redis", &connection.server, release)?;
    let registry = &components.registry;
    let registry_redis = match &registry.redis {
        Some(given) => {
            let field = "spec.components.registry.redis";
            let redis = wiring::redis(sources, trust, field, &given.server, release)?;
            Some((redis, wiring::redis_database(field, given.database)?))
        }
        None => None,
    };
    let urls = file::Urls {
        core: format!("{}://{}:{}", served.scheme(), site.name(), served.service_port()),
        jobservice: components.job_service.url.clone(),
        registry: registry.url.clone(),
        registry_controller: registry.controller_url.clone(),
        portal: components.portal.url.clone(),
        token_service: components.token_service.url.clone(),
        chartmuseum: components.chart_repository.as_ref().map(|charts| charts.url.clone()),
        notary: components.notary_server.as_ref().map(|notary| notary.url.clone()),
        trivy: components.trivy.as_ref().map(|trivy| trivy.adapter_url.clone()),
    };
    let optional = [&urls.chartmuseum, &urls.notary, &urls.trivy];
    let neighbours = [&urls.core, &urls.jobservice, &urls.registry, &urls.registry_controller, &urls.portal]
        .into_iter()
        .chain(optional.into_iter().flatten())
        .map(String::as_str);
    let outbound = wiring::outbound(spec.proxy.as_ref(), neighbours);
    let password = &registry.credentials.password_ref;
    Ok(file::Core {
        external_url: spec.external_endpoint.clone(),
        tls: is_tls(served),
        log_level: spec.log_level().to_string(),
        gzip: spec.http.as_ref().is_none_or(|http| http.enable_gzip),
        config_expiration: duration("spec.configExpiration", &spec.config_expiration)?,
        database,
        database_password,
        pool,
        redis,
        redis_database: wiring::redis_database("spec.redis", connection.database)?,
        redis_idle_timeout: duration("spec.redis.idleTimeout", &spec.redis.idle_timeout)?,
        registry_redis,
        urls,
        storage_provider: registry.storage_provider_name.clone().unwrap_or_else(|| "filesystem".to_owned()),
        sync_registry: registry.sync,
        secrets: file::Secrets {
            admin_password: sources.key(
                "spec.adminInitialPasswordRef",
                &spec.admin_initial_password_ref,
                "secret",
            ),
            core: sources.key("spec.secretRef", &spec.secret_ref, "secret"),
            jobservice: sources.key(
                "spec.components.jobService.secretRef",
                &components.job_service.secret_ref,
                "secret",
            ),
            csrf: sources.key("spec.csrfKeyRef", &spec.csrf_key_ref, "key"),
            registry_password: sources.key(
                "spec.components.registry.credentials.passwordRef",
                password,
                "secret",
            ),
        },
        registry_username: registry.credentials.username.clone(),
        metrics: wiring::metrics(spec.metrics.as_ref())?,
        trace: wiring::trace(sources, spec.trace.as_ref())?,
        outbound,
    })
}
