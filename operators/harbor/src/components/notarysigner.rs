//! The Notary signer, to Harbor 2.8: it keeps the keys that sign.

use k8s_openapi::api::core::v1::{EnvFromSource, SecretEnvSource};
use windlass::PlanError;

use crate::api::notary::NotarySigner;
use crate::catalogue;
use crate::config::notary as file;
use crate::wiring::CERTIFICATE;
use crate::workload::{
    Check, ComponentBlueprint, Container, Deployed, Making, Parts, Pod, Probes, Sources, config_map, mount,
    policy, secret, service,
};

use super::notaryserver::storage;

/// The plan of a Notary signer.
pub type NotarySignerBlueprint = ComponentBlueprint<NotarySigner>;

/// The port of its pods and of its Service.
pub const PORT: i32 = 7899;

impl Deployed for NotarySigner {
    const BLUEPRINT: &'static str = "notarysigner.goharbor.io";
    const PART: catalogue::Component = catalogue::Component::NotarySigner;

    fn parts(&self, making: &Making<'_>, sources: &mut Sources<'_>) -> Result<Parts, PlanError> {
        let (site, spec) = (making.site, &self.spec);
        let input = file::NotarySigner {
            log_level: spec.log_level().to_string(),
            storage: storage(sources, &spec.storage.postgres, spec.migration_enabled, "notarysigner")?,
        };
        let rendered = file::render_signer(&input, site.name());
        let aliases = &spec.storage.aliases_ref;
        sources.files("spec.storage.aliasesRef", aliases, &[]);
        let keys = SecretEnvSource { name: aliases.clone(), optional: None };
        let keys = EnvFromSource {
            prefix: Some(file::SIGNER_ALIAS_PREFIX.to_owned()),
            secret_ref: Some(keys),
            ..EnvFromSource::default()
        };
        let probes = Probes::of(Check::Tcp { port: "api" });
        let container = Container::new("notarysigner", &making.image, probes)
            .shell(file::signer_command(input.storage.migrate))
            .env(rendered.env.clone())
            .env_from(keys)
            .port("api", PORT)
            .mount(mount("configuration", file::SIGNER_CONFIG_DIR));
        let certificate = &spec.authentication.certificate_ref;
        sources.files("spec.authentatication.certificateRef", certificate, &CERTIFICATE);
        let mut pod = Pod::of(container, &spec.component)
            .with(secret("certificates", certificate, &[]), file::SIGNER_SSL_DIR);
        pod.volumes.push(config_map("configuration", site.name()));
        let front = service::service(site, site.name(), &[service::Port { name: "api", number: PORT }]);
        let parts = Parts::new(site, rendered, pod, vec![front]);
        Ok(Parts { policies: vec![policy::ingress(site, [PORT])], ..parts })
    }
}
