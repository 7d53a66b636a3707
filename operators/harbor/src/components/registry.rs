//! Registry: Distribution, which stores images. The RegistryController runs in the same pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt as _;
use windlass::{Kinds, PlanError};

use crate::api::children::{Parent as _, child_of};
use crate::api::names::annotation::VERSION;
use crate::api::names::blueprint;
use crate::api::registry::{Registry, RegistrySpec};
use crate::api::registryctl::RegistryController;
use crate::catalogue;
use crate::config::registry as file;
use crate::config::registryctl as controller_file;
use crate::config::{Env, Rendered};
use crate::wiring::{self, certificate, is_tls};
use crate::workload::{
    Check, ComponentBlueprint, ComponentObjects, Config, Container, Deployed, Pod, Probes, RenderContext,
    Sources, Strategy, Trust, config_map, mount, policy, secret, service, version,
};

use super::registry_config::input;
use super::registry_storage::{Stored, stored};
use super::registryctl;

/// The blueprint of a Registry.
pub type RegistryBlueprint = ComponentBlueprint<Registry>;

/// Port of the pods, with and without TLS.
const PORT: i32 = 5000;

impl Deployed for Registry {
    const BLUEPRINT: &'static str = "registry.goharbor.io";
    const COMPONENT: catalogue::Component = catalogue::Component::Registry;

    fn requires(kinds: &mut Kinds) {
        kinds.looks_at_made_by::<PersistentVolumeClaim>(blueprint::HARBOR_CLUSTER);
        kinds.looks_at_made_by::<RegistryController>(blueprint::HARBOR);
    }

    fn objects(
        &self,
        context: &RenderContext<'_>,
        sources: &mut Sources<'_>,
    ) -> Result<ComponentObjects, PlanError> {
        let (site, spec, served) = (context.site, &self.spec, self.spec.served());
        let mut trust = Trust::default();
        let stored = stored(&spec.storage.driver, sources, &mut trust)?;
        let input = input(spec, context.release, &stored, sources, &mut trust)?;
        let rendered = file::render(&input, context.release, site.name());
        let debug = input.http.debug.as_ref().map(|debug| i32::from(debug.port));
        let probes = Probes::of(Check::Http { path: "/", port: "api", served });
        let container = Container::new("registry", &context.image, probes)
            .args(["serve".to_owned(), format!("{}/{}", file::CONFIG_DIR, file::CONFIG_KEY)])
            .env(rendered.env.clone())
            .port("api", PORT)
            .port_if("metrics", debug)
            .mount(mount("registry-config", file::CONFIG_DIR));
        let mut pod = Pod::of(container, &spec.component);
        pod.grace = 120;
        pod.volumes.push(configuration(site.name(), &rendered));
        let pod = files(spec, pod, stored, sources, &mut trust)?;

        let (pod, beside) = beside(self, context, pod, sources, &mut trust)?;
        trust.add_all(sources, "spec.certificateRefs", &spec.certificate_refs);
        let pod = pod.trusting(trust);

        let mut open = vec![service::Port { name: "api", number: served.service_port() }];
        open.extend(debug.map(|number| service::Port { name: "metrics", number }));
        let mut front = service::service(site, site.name(), &open);
        if let Some(file::Debug { port, metrics_path: Some(path) }) = &input.http.debug {
            front = service::scraped(front, i32::from(*port), path);
        }
        let exclusive = sources
            .exclusive(spec.storage.driver.filesystem.iter().map(|filesystem| &filesystem.volume_source));
        let reached = [Some(PORT), debug, beside.as_ref().map(|beside| beside.port)];
        let mut objects = ComponentObjects::new(site, rendered, pod, vec![front]);
        objects.strategy =
            Strategy::chosen("spec.updateStrategyType", &spec.update_strategy_type, exclusive)?;
        objects.policies = vec![policy::ingress(site, reached.into_iter().flatten())];
        if let Some(beside) = beside {
            objects.services.push(beside.front);
            objects.annotations = beside.annotations;
            objects.configs.push(beside.config);
        } else {
            // While the RegistryController is unknown, its ConfigMap is kept.
            objects.configs.push(Config {
                name: child_of::<RegistryController>(site.component(), &[]),
                data: BTreeMap::new(),
            });
        }
        Ok(objects)
    }
}

/// Returns the ConfigMap or Secret with the registry's configuration file.
fn configuration(name: &str, rendered: &Rendered) -> k8s_openapi::api::core::v1::Volume {
    if rendered.secret.contains_key(file::CONFIG_KEY) {
        secret("registry-config", name, &[(file::CONFIG_KEY, file::CONFIG_KEY)])
    } else {
        config_map("registry-config", name)
    }
}

/// Mounts all files that the registry and its controller read.
fn files(
    spec: &RegistrySpec,
    mut pod: Pod,
    stored: Stored,
    sources: &mut Sources<'_>,
    trust: &mut Trust,
) -> Result<Pod, PlanError> {
    if let Some(authentication) = &spec.authentication {
        if let Some(passwords) = &authentication.ht_passwd {
            sources.files("spec.authentication.htPasswd.secretRef", &passwords.secret_ref, &["htpasswd"]);
            let volume =
                secret("authentication-htpasswd", &passwords.secret_ref, &[("htpasswd", "htpasswd")]);
            pod = pod.with(volume, directory(file::HTPASSWD_PATH));
        } else if let Some(token) = &authentication.token {
            sources.files("spec.authentication.token.certificateRef", &token.certificate_ref, &["tls.crt"]);
            let volume =
                secret("authentication-certificate", &token.certificate_ref, &[("tls.crt", "tls.crt")]);
            pod = pod.with(volume, directory(file::TOKEN_BUNDLE_PATH));
        }
    }
    let schema1 = spec.compatibility.as_ref().and_then(|compatibility| compatibility.schema1.as_ref());
    if let Some(name) = schema1.and_then(|schema1| schema1.certificate_ref.as_deref()) {
        sources.files("spec.compatibility.schema1.certificateRef", name, &["tls.key"]);
        let volume = secret("compatibility-schema1-certificate", name, &[("tls.key", "tls.key")]);
        pod = pod.with(volume, directory(file::SCHEMA1_KEY_PATH));
    }
    for (volume, mount) in stored.volumes {
        pod.volumes.push(volume);
        if let Some((container, _)) = pod.containers.first_mut() {
            container.mounts.push(mount);
        }
    }
    let tls = spec.http.as_ref().and_then(|http| http.tls.as_ref());
    if let Some(name) = certificate(sources, "spec.http.tls", tls)? {
        pod = pod.with(secret("internal-certificates", name, &[]), file::SSL_DIR);
        trust.add(sources, "spec.http.tls.certificateRef", name, "ca.crt");
    }
    Ok(pod)
}

fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(directory, _)| directory)
}

/// The objects of the RegistryController.
struct Beside {
    front: k8s_openapi::api::core::v1::Service,
    config: Config,
    port: i32,
    annotations: BTreeMap<String, String>,
}

/// Adds the RegistryController to the registry's pods, with all mounts of the registry, because it opens the
/// same storage.
fn beside(
    registry: &Registry,
    context: &RenderContext<'_>,
    mut pod: Pod,
    sources: &mut Sources<'_>,
    trust: &mut Trust,
) -> Result<(Pod, Option<Beside>), PlanError> {
    let Some(controller) = sources.object::<RegistryController>(&registry.name_any()) else {
        return Ok((pod, None));
    };
    let spec = &controller.spec;
    let named =
        |error: PlanError| PlanError::new(format!("RegistryController {}: {error}", controller.name_any()));
    // Without a version of its own, the controller has the registry's release.
    let release = match (controller.annotations().get(VERSION), &spec.component.image) {
        (None, None) => context.release.clone(),
        _ => version::release(&controller.metadata, &spec.component).map_err(named)?,
    };
    let it = catalogue::Component::RegistryController;
    let image = version::image(&release, it, &spec.component, context.settings).map_err(named)?;
    let (served, own) = (spec.served(), "RegistryController spec");
    let key = |sources: &mut Sources<'_>, field: &str, secret: &Option<String>| {
        secret.as_ref().map(|secret| sources.key(&format!("{own}.authentication.{field}"), secret, "secret"))
    };
    let input = controller_file::RegistryController {
        tls: is_tls(served),
        log_level: spec.log_level().to_string(),
        core_secret: key(sources, "coreSecretRef", &spec.authentication.core_secret_ref),
        jobservice_secret: key(sources, "jobServiceSecretRef", &spec.authentication.job_service_secret_ref),
        trace: wiring::trace(sources, registry.spec.trace.as_ref())?,
    };
    let rendered = controller_file::render(&input);
    let name = child_of::<RegistryController>(context.site.component(), &[]);
    let (mut env, mut mounts): (Vec<Env>, Vec<_>) = pod
        .containers
        .first()
        .map(|(registry, _)| (registry.env.clone(), registry.mounts.clone()))
        .unwrap_or_default();
    env.extend(rendered.env);
    env.sort_by(|one, other| one.name.cmp(&other.name));
    mounts.push(mount("registryctl-config", controller_file::CONFIG_DIR));
    pod.volumes.push(config_map("registryctl-config", &name));
    if let Some(secret_name) = certificate(sources, &format!("{own}.tls"), spec.tls.as_ref())? {
        pod.volumes.push(secret("ctl-internal-certificates", secret_name, &[]));
        mounts.push(mount("ctl-internal-certificates", controller_file::SSL_DIR));
        trust.add(sources, &format!("{own}.tls.certificateRef"), secret_name, "ctl-ca.crt");
    }
    let port = served.scheme();
    let probes = Probes::of(Check::Http { path: "/api/health", port, served });
    let container = Container::new(RegistryController::CONTROLLER, image, probes)
        .env(env)
        .port(port, served.container_port())
        .mounts(mounts);
    pod.containers.push((container, spec.component.clone()));
    let beside = Beside {
        front: service::service(context.site, &name, &[service::Port::served(served)]),
        config: Config { name, data: rendered.config },
        port: served.container_port(),
        annotations: [(registryctl::REVISION.to_owned(), registryctl::revision(&controller))].into(),
    };
    Ok((pod, Some(beside)))
}
