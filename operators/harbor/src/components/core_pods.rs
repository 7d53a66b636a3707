//! The pods of Core, and the objects that they need.

use std::sync::Arc;

use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use windlass::{PlanError, PlanState};
use windlass_runtime::key::ObjectKey;

use crate::api::children::Component as _;
use crate::api::core_kind::{Core, CoreSpec};
use crate::api::status::condition::SCHEMA_CLEAN;
use crate::catalogue::{self, Release, Version, admit_change};
use crate::config::SecretKey;
use crate::config::core_env as file;
use crate::schema::{self, Readings, SchemaCheck};
use crate::wiring::{self, certificate, is_tls};
use crate::workload::{
    Check, ComponentObjects, Container, Deployed, Pod, Probes, RenderContext, Site, Sources, Trust,
    config_map, duration, empty, mount_part, policy, secret, secret_if_there, service, version,
};

/// The status field with the version at which Core was last ready.
const VERSION: &str = "version";
/// Failure threshold of Core's startup probe, which runs every ten seconds: the migration of a large database
/// takes time.
const MIGRATION: i32 = 360;

impl Deployed for Core {
    const BLUEPRINT: &'static str = "core.goharbor.io";
    const COMPONENT: catalogue::Component = catalogue::Component::Core;

    fn objects(
        &self,
        context: &RenderContext<'_>,
        sources: &mut Sources<'_>,
    ) -> Result<ComponentObjects, PlanError> {
        self.refuse_downgrade(context.release)?;
        let (site, spec, served) = (context.site, &self.spec, self.spec.served());
        let mut trust = Trust::default();
        let input = input(spec, context.release, site, sources, &mut trust)?;
        let rendered = file::render(&input, context.release, site.name());
        let (port, check) =
            (served.scheme(), Check::Http { path: "/api/v2.0/ping", port: served.scheme(), served });
        let metrics = input.metrics.as_ref().map(|metrics| i32::from(metrics.port));
        let probes = Probes { patience: MIGRATION, ..Probes::of(check) };
        let container = Container::new("core", &context.image, probes)
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
        let schema = Some(self.schema(context, sources, &input));
        let pod = pod.trusting(trust);

        let mut ports = vec![service::Port::served(served)];
        ports.extend(metrics.map(|number| service::Port { name: "metrics", number }));
        let mut front = service::service(site, site.name(), &ports);
        if let Some(metrics) = &input.metrics {
            front = service::scraped(front, i32::from(metrics.port), &metrics.path);
        }
        let front = service::known_to_ingress(front, &self.metadata, served, port);
        let policy = policy::ingress(site, [Some(served.container_port()), metrics].into_iter().flatten());
        Ok(ComponentObjects {
            policies: vec![policy],
            schema,
            ..ComponentObjects::new(site, rendered, pod, vec![front])
        })
    }

    fn status_fields(&self, seen: &PlanState<'_>, readings: &Readings) -> Option<Value> {
        let key = self.key();
        let release = version::release(self.meta(), self.pods()).ok();
        let wanted = release.as_ref().map(|release| release.version().to_string());
        let standing = self.standing().map(str::to_owned);
        if release.is_none_or(|release| !self.is_schema_due(&release)) {
            readings.forget(&key);
        }
        let (numbers, clean) = match readings.of(&key) {
            Some(reading) => (reading.numbers(), Some(reading.condition())),
            None => self.written_schema(),
        };
        Some(json!({
            VERSION: if seen.is_ready() { wanted } else { standing },
            schema::FIELD: numbers,
            "conditions": Vec::from_iter(clean),
        }))
    }
}

impl Core {
    /// Returns the version at which Core was last ready with a migrated database.
    fn standing(&self) -> Option<&str> {
        self.status.as_ref()?.other.get(VERSION)?.as_str()
    }

    /// Returns true if the database has to be read: the version was never ready, or a newer version has
    /// migrated the database further than this one can read.
    fn is_schema_due(&self, release: &Release) -> bool {
        let number =
            self.status.as_ref().and_then(|status| status.other.get(schema::FIELD)?.get("version")?.as_i64());
        let too_new = release.schema().zip(number).is_some_and(|(newest, number)| number > i64::from(newest));
        too_new || self.standing() != Some(&*release.version().to_string())
    }

    /// Refuses a version that is older than the one to which Core has migrated the database.
    fn refuse_downgrade(&self, release: &Release) -> Result<(), PlanError> {
        let standing = self.standing().and_then(|text| text.parse::<Version>().ok());
        match standing.filter(|standing| release.version() < standing) {
            Some(standing) => {
                admit_change(&standing, release.version())?;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Returns the schema and its condition from the current status.
    fn written_schema(&self) -> (Option<Value>, Option<Value>) {
        let Some(status) = &self.status else { return (None, None) };
        let clean = status.conditions.iter().find(|condition| condition.kind == SCHEMA_CLEAN);
        let clean = clean.map(|clean| {
            json!({"type": clean.kind, "status": clean.status, "reason": clean.reason, "message": clean.message})
        });
        (status.other.get(schema::FIELD).cloned(), clean)
    }

    /// Returns the check of the database that this version migrates, unless the migration is already done.
    fn schema(
        &self,
        context: &RenderContext<'_>,
        sources: &mut Sources<'_>,
        input: &file::Core,
    ) -> SchemaCheck {
        let due = self.is_schema_due(context.release);
        let own = self.spec.database.connection.certificate_ref.iter();
        let own = own.map(|secret| ("spec.database.certificateRef", secret));
        let listed = self.spec.certificate_refs.iter().map(|secret| ("spec.certificateRefs", secret));
        let authority = |(field, secret): (&str, &String)| sources.value(field, secret, "ca.crt");
        let authorities = own.chain(listed).map(authority).collect();
        let SecretKey { name, key, .. } = &input.database_password;
        let target = schema::Target {
            database: input.database.clone(),
            password: sources.value("spec.database.passwordRef", name, key),
            authorities,
            namespace: self.namespace().unwrap_or_default(),
        };
        SchemaCheck {
            due,
            newest: context.release.schema(),
            owner: self.key(),
            target,
            readings: Arc::clone(context.readings),
        }
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
    let (database, database_password, pool) = wiring::core_database(sources, trust, &spec.database)?;
    let connection = &spec.redis.connection;
    let redis = wiring::redis(sources, trust, "spec.redis", &connection.server, release)?;
    let registry = &components.registry;
    let registry_redis = match &registry.redis {
        Some(registry_redis) => {
            let field = "spec.components.registry.redis";
            let redis = wiring::redis(sources, trust, field, &registry_redis.server, release)?;
            Some((redis, wiring::redis_database(field, registry_redis.database)?))
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
        cache_layer: wiring::cache_layer(spec.cache_layer.as_ref(), release)?,
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns the first Core of the test manifests, with a status.
    fn core(status: &Value) -> Core {
        let manifests = include_str!("../../tests/manifests/components.yaml");
        let all: Vec<Value> = serde_saphyr::from_multiple(manifests).unwrap();
        let mut core = all.into_iter().find(|object| object["kind"] == "Core").unwrap();
        core["status"] = status.clone();
        serde_json::from_value(core).unwrap()
    }

    fn release(version: &str) -> Release {
        Release::of(&version.parse().unwrap()).unwrap()
    }

    #[test]
    fn seam_m12_core_refuses_a_version_older_than_the_one_that_migrated_its_database() {
        let migrated = core(&json!({"version": "2.15.2"}));
        let refused = migrated.refuse_downgrade(&release("2.14.4")).unwrap_err().to_string();
        assert!(refused.contains("2.15.2") && refused.contains("cannot be downgraded"), "{refused}");
        assert!(migrated.refuse_downgrade(&release("2.15.2")).is_ok());
        let waiting = core(&json!({"version": "2.14.4"}));
        assert!(waiting.refuse_downgrade(&release("2.14.4")).is_ok(), "set back before the migration");
        assert!(waiting.refuse_downgrade(&release("2.15.2")).is_ok(), "an upgrade");
    }

    #[test]
    fn seam_m12_the_schema_is_read_again_while_it_is_newer_than_the_version_can_read() {
        let old = release("2.14.4");
        let at = |version: i64| core(&json!({"version": "2.14.4", schema::FIELD: {"version": version}}));
        let newest = i64::from(old.schema().unwrap());
        assert!(!at(newest).is_schema_due(&old), "ready at this version");
        assert!(at(newest + 1).is_schema_due(&old), "a newer version has migrated the database");
        assert!(at(newest).is_schema_due(&release("2.15.2")), "an upgrade");
    }
}
