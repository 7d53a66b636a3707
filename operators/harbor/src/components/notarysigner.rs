//! NotarySigner: stores the signing keys, up to Harbor 2.8.

use k8s_openapi::api::core::v1::{EnvFromSource, SecretEnvSource};
use windlass::PlanError;

use crate::api::notary::NotarySigner;
use crate::catalogue;
use crate::config::notary as file;
use crate::wiring::CERTIFICATE;
use crate::workload::{
    Check, ComponentObjects, Container, Deployed, Pod, Probes, RenderContext, Sources, config_map, mount,
    policy, secret, service,
};

use super::notaryserver::{storage, with_database_authority};

/// Port of the pods and of the Service.
pub(crate) const PORT: i32 = 7899;

impl Deployed for NotarySigner {
    const BLUEPRINT: &'static str = "notarysigner.goharbor.io";
    const COMPONENT: catalogue::Component = catalogue::Component::NotarySigner;

    fn objects(
        &self,
        context: &RenderContext<'_>,
        sources: &mut Sources<'_>,
    ) -> Result<ComponentObjects, PlanError> {
        let (site, spec) = (context.site, &self.spec);
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
        let container = Container::new("notarysigner", &context.image, probes)
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
        let pod = with_database_authority(pod, sources, Some(&spec.storage.postgres));
        let front = service::service(site, site.name(), &[service::Port { name: "api", number: PORT }]);
        let objects = ComponentObjects::new(site, rendered, pod, vec![front]);
        Ok(ComponentObjects { policies: vec![policy::ingress(site, [PORT])], ..objects })
    }
}
