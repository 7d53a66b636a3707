//! The Notary server, to Harbor 2.8: it keeps signatures.

use windlass::PlanError;

use crate::api::component::Served;
use crate::api::notary::{NotaryServer, NotaryServerSpec};
use crate::api::postgres::PostgresConnection;
use crate::catalogue;
use crate::config::notary as file;
use crate::wiring::{self, CERTIFICATE, certificate};
use crate::workload::{
    Check, ComponentBlueprint, Container, Deployed, Making, Parts, Pod, Probes, Sources, config_map, mount,
    policy, port, secret, service,
};

/// The plan of a Notary server.
pub type NotaryServerBlueprint = ComponentBlueprint<NotaryServer>;

/// The port of its pods, with TLS and without.
const PORT: i32 = 4443;

impl Deployed for NotaryServer {
    const BLUEPRINT: &'static str = "notaryserver.goharbor.io";
    const PART: catalogue::Component = catalogue::Component::NotaryServer;

    fn parts(&self, making: &Making<'_>, sources: &mut Sources<'_>) -> Result<Parts, PlanError> {
        let (site, spec) = (making.site, &self.spec);
        let served = Served::with(spec.tls.as_ref());
        let input = input(spec, sources)?;
        let rendered = file::render_server(&input, site.name());
        let probes = Probes::of(Check::Tcp { port: "api" });
        let container = Container::new("notaryserver", &making.image, probes)
            .shell(file::server_command(input.storage.migrate))
            .env(rendered.env.clone())
            .port("api", PORT)
            .mount(mount("configuration", file::SERVER_CONFIG_DIR));
        let mut pod = Pod::of(container, &spec.component);
        pod.volumes.push(config_map("configuration", site.name()));
        if let Some(name) = certificate(sources, "spec.tls", spec.tls.as_ref())? {
            pod = pod.with(secret("certificates", name, &[]), file::SERVER_SSL_DIR);
        }
        let remote = spec.trust_service.remote.as_ref();
        if let Some(name) = remote.and_then(|remote| remote.certificate_ref.as_deref()) {
            sources.files("spec.trustService.remote.certificateRef", name, &CERTIFICATE);
            pod = pod.with(secret("trust-certificates", name, &[]), file::SERVER_TRUST_DIR);
        }
        if let Some(authentication) = &spec.authentication {
            let name = &authentication.token.certificate_ref;
            sources.files("spec.authentication.token.certificateRef", name, &["tls.crt"]);
            pod =
                pod.with(secret("auth-certificates", name, &[("tls.crt", "tls.crt")]), file::SERVER_AUTH_DIR);
        }
        let api = service::Port { name: "api", number: served.service_port() };
        let front = service::service(site, site.name(), &[api]);
        let front = service::known_to_ingress(front, &self.metadata, served, "api");
        let parts = Parts::new(site, rendered, pod, vec![front]);
        Ok(Parts { policies: vec![policy::ingress(site, [PORT])], ..parts })
    }
}

fn input(spec: &NotaryServerSpec, sources: &mut Sources<'_>) -> Result<file::NotaryServer, PlanError> {
    let Some(given) = &spec.storage else {
        return Err(PlanError::new("spec.storage is missing: say where the PostgreSQL of Notary is"));
    };
    let signer = match &spec.trust_service.remote {
        Some(remote) => Some(file::Signer {
            host: remote.host.clone(),
            port: port("spec.trustService.remote.port", remote.port)?,
            key_algorithm: remote.key_algorithm.to_string(),
            certificate: remote.certificate_ref.is_some(),
        }),
        None => None,
    };
    Ok(file::NotaryServer {
        tls: spec.tls.is_some(),
        log_level: spec.log_level().to_string(),
        storage: storage(sources, &given.postgres, spec.migration_enabled, "notaryserver")?,
        signer,
        auth: spec.authentication.as_ref().map(|authentication| {
            let token = &authentication.token;
            file::TokenAuth {
                realm: token.realm.clone(),
                service: token.service.clone(),
                issuer: token.issuer.clone(),
                autoredirect: token.autoredirect,
            }
        }),
    })
}

/// The database of either of Notary's parts.
pub(super) fn storage(
    sources: &mut Sources<'_>,
    postgres: &PostgresConnection,
    migrate: Option<bool>,
    name: &str,
) -> Result<file::NotaryStorage, PlanError> {
    let field = "spec.storage.postgres";
    let password = postgres.password_ref.as_ref();
    Ok(file::NotaryStorage {
        database: wiring::database(field, postgres, name)?,
        password: password
            .map(|secret| sources.database_password_value(&format!("{field}.passwordRef"), secret)),
        migrate: migrate.unwrap_or(true),
    })
}
