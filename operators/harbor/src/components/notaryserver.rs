//! NotaryServer: stores signatures, up to Harbor 2.8.

use windlass::PlanError;

use crate::api::component::Served;
use crate::api::notary::{NotaryServer, NotaryServerSpec};
use crate::api::postgres::PostgresConnection;
use crate::catalogue;
use crate::config::notary as file;
use crate::wiring::{self, CERTIFICATE, certificate};
use crate::workload::{
    Check, ComponentObjects, Container, Deployed, Pod, Probes, RenderContext, Sources, config_map, mount,
    policy, port, secret, service,
};

/// Port of the pods, with and without TLS.
const PORT: i32 = 4443;

impl Deployed for NotaryServer {
    const BLUEPRINT: &'static str = "notaryserver.goharbor.io";
    const COMPONENT: catalogue::Component = catalogue::Component::NotaryServer;

    fn objects(
        &self,
        context: &RenderContext<'_>,
        sources: &mut Sources<'_>,
    ) -> Result<ComponentObjects, PlanError> {
        let (site, spec) = (context.site, &self.spec);
        let served = Served::with(spec.tls.as_ref());
        let input = input(spec, sources)?;
        let rendered = file::render_server(&input, site.name());
        let probes = Probes::of(Check::Tcp { port: "api" });
        let container = Container::new("notaryserver", &context.image, probes)
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
        let postgres = spec.storage.as_ref().map(|storage| &storage.postgres);
        let pod = with_database_authority(pod, sources, postgres);
        let api = service::Port { name: "api", number: served.service_port() };
        let front = service::service(site, site.name(), &[api]);
        let front = service::known_to_ingress(front, &self.metadata, served, "api");
        let objects = ComponentObjects::new(site, rendered, pod, vec![front]);
        Ok(ComponentObjects { policies: vec![policy::ingress(site, [PORT])], ..objects })
    }
}

fn input(spec: &NotaryServerSpec, sources: &mut Sources<'_>) -> Result<file::NotaryServer, PlanError> {
    let Some(notary_storage) = &spec.storage else {
        return Err(PlanError::new("spec.storage is missing: set the address of Notary's PostgreSQL"));
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
        storage: storage(sources, &notary_storage.postgres, spec.migration_enabled, "notaryserver")?,
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

/// Returns the database of NotaryServer or NotarySigner.
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
        authority: postgres.certificate_ref.is_some(),
        password: password
            .map(|secret| sources.database_password_value(&format!("{field}.passwordRef"), secret)),
        migrate: migrate.unwrap_or(true),
    })
}

/// Mounts the certificate authority of the database, if there is one.
pub(super) fn with_database_authority(
    pod: Pod,
    sources: &mut Sources<'_>,
    postgres: Option<&PostgresConnection>,
) -> Pod {
    let Some(name) = postgres.and_then(|postgres| postgres.certificate_ref.as_deref()) else { return pod };
    sources.files("spec.storage.postgres.certificateRef", name, &["ca.crt"]);
    pod.with(secret("database-certificate", name, &[("ca.crt", "ca.crt")]), file::DATABASE_SSL_DIR)
}
