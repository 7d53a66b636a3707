//! The pod template of a component: containers and the volumes that they share.

use k8s_openapi::api::core::v1::{
    Capabilities, Container as KubeContainer, ContainerPort, EnvFromSource, EnvVar, ExecAction, Lifecycle,
    LifecycleHandler, PodSecurityContext, PodSpec, SeccompProfile, SecurityContext, Volume, VolumeMount,
};
use windlass::PlanError;

use crate::api::component::ComponentSpec;
use crate::config::Env;

use super::volume::{mount, some};
use super::{Probes, Trust};

/// User and group of Harbor's images. The images have a user name, for which Kubernetes cannot verify
/// `runAsNonRoot`.
pub const USER: i64 = 10_000;

/// Seconds that a stopping pod continues to serve, until its endpoints are updated everywhere.
const LAST_CALL: &str = "5";

/// A container of a component. Unset fields keep the values of the image.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    name: &'static str,
    image: String,
    command: Option<Vec<String>>,
    args: Option<Vec<String>>,
    /// The environment variables.
    pub env: Vec<Env>,
    env_from: Vec<EnvFromSource>,
    ports: Vec<(&'static str, i32)>,
    /// The mounts of the container.
    pub mounts: Vec<VolumeMount>,
    probes: Probes,
}

/// A pod template.
#[derive(Clone, Debug)]
pub struct Pod {
    /// The containers; the first one is the component itself.
    pub(crate) containers: Vec<(Container, ComponentSpec)>,
    /// The volumes of the pod.
    pub volumes: Vec<Volume>,
    /// Termination grace period in seconds.
    pub grace: i64,
}

impl Pod {
    /// Returns a pod with one container.
    pub(crate) fn of(container: Container, spec: &ComponentSpec) -> Self {
        Self { containers: vec![(container, spec.clone())], volumes: Vec::new(), grace: 60 }
    }

    /// Mounts a volume into the first container.
    #[must_use]
    pub fn with(mut self, volume: Volume, path: &str) -> Self {
        self.mount(&volume, path);
        self.volumes.push(volume);
        self
    }

    /// Mounts additional certificate authorities into all containers.
    #[must_use]
    pub(crate) fn trusting(mut self, trust: Trust) -> Self {
        if let Some((volume, mount)) = trust.volume() {
            self.volumes.push(volume);
            for (container, _) in &mut self.containers {
                container.mounts.push(mount.clone());
            }
        }
        self
    }

    fn mount(&mut self, volume: &Volume, path: &str) {
        if let Some((container, _)) = self.containers.first_mut() {
            container.mounts.push(mount(&volume.name, path));
        }
    }

    /// Returns the pod spec. Pod-level settings, and what is added to all containers, come from the
    /// component's spec.
    pub(super) fn spec(self, component: &ComponentSpec) -> Result<PodSpec, PlanError> {
        let (mut volumes, mut pull_secrets) = (self.volumes, Vec::new());
        // Sidecars have volumes and pull Secrets of their own.
        for (_, spec) in &self.containers {
            for volume in typed("spec.extraVolumes", &spec.extra_volumes)? {
                if !volumes.contains(&volume) {
                    volumes.push(volume);
                }
            }
            for secret in &spec.image_pull_secrets {
                if !pull_secrets.contains(secret) {
                    pull_secrets.push(secret.clone());
                }
            }
        }
        let containers = self
            .containers
            .into_iter()
            .map(|(container, spec)| container.spec(&spec))
            .collect::<Result<_, _>>()?;
        Ok(PodSpec {
            containers,
            volumes: some(volumes),
            termination_grace_period_seconds: Some(self.grace),
            // A Service called `harbor` or `registry` would otherwise set environment variables that Harbor
            // reads.
            enable_service_links: Some(false),
            automount_service_account_token: Some(component.automount_service_account_token.unwrap_or(false)),
            service_account_name: component.service_account_name.clone(),
            security_context: Some(PodSecurityContext {
                run_as_non_root: Some(true),
                run_as_user: Some(USER),
                run_as_group: Some(USER),
                fs_group: Some(USER),
                fs_group_change_policy: Some("OnRootMismatch".to_owned()),
                seccomp_profile: Some(SeccompProfile {
                    type_: "RuntimeDefault".to_owned(),
                    localhost_profile: None,
                }),
                ..PodSecurityContext::default()
            }),
            image_pull_secrets: some(pull_secrets),
            node_selector: Some(component.node_selector.clone()).filter(|labels| !labels.is_empty()),
            tolerations: some(typed("spec.tolerations", &component.tolerations)?),
            affinity: match &component.affinity {
                Some(affinity) => Some(affinity.typed().map_err(|error| at_field("spec.affinity", &error))?),
                None => None,
            },
            topology_spread_constraints: some(typed(
                "spec.topologySpreadConstraints",
                &component.topology_spread_constraints,
            )?),
            priority_class_name: component.priority_class_name.clone(),
            ..PodSpec::default()
        })
    }
}

impl Container {
    /// Returns a container with a name, an image and probes.
    pub(crate) fn new(name: &'static str, image: impl Into<String>, probes: Probes) -> Self {
        Self {
            name,
            image: image.into(),
            command: None,
            args: None,
            env: Vec::new(),
            env_from: Vec::new(),
            ports: Vec::new(),
            mounts: Vec::new(),
            probes,
        }
    }

    /// Runs a shell command instead of the image's entry point.
    #[must_use]
    pub(crate) fn shell(mut self, command: String) -> Self {
        self.command = Some(vec!["/bin/sh".to_owned(), "-c".to_owned()]);
        self.args = Some(vec![command]);
        self
    }

    /// Sets the arguments of the command.
    #[must_use]
    pub(crate) fn args<const N: usize>(mut self, args: [String; N]) -> Self {
        self.args = Some(args.into());
        self
    }

    /// Adds variables to the environment.
    #[must_use]
    pub(crate) fn env(mut self, env: impl IntoIterator<Item = Env>) -> Self {
        self.env.extend(env);
        self
    }

    /// Adds a whole ConfigMap or Secret to the environment.
    #[must_use]
    pub(crate) fn env_from(mut self, source: EnvFromSource) -> Self {
        self.env_from.push(source);
        self
    }

    /// Adds a named port.
    #[must_use]
    pub(crate) fn port(self, name: &'static str, port: i32) -> Self {
        self.port_if(name, Some(port))
    }

    /// Adds a named port if it is set.
    #[must_use]
    pub(crate) fn port_if(mut self, name: &'static str, port: Option<i32>) -> Self {
        self.ports.extend(port.map(|port| (name, port)));
        self
    }

    /// Mounts a volume or a path of it.
    #[must_use]
    pub(crate) fn mount(self, mount: VolumeMount) -> Self {
        self.mounts([mount])
    }

    /// Mounts volumes or paths of them.
    #[must_use]
    pub(crate) fn mounts(mut self, mounts: impl IntoIterator<Item = VolumeMount>) -> Self {
        self.mounts.extend(mounts);
        self
    }

    fn spec(self, spec: &ComponentSpec) -> Result<KubeContainer, PlanError> {
        let mut env: Vec<EnvVar> = self.env.into_iter().map(EnvVar::from).collect();
        for extra in typed("spec.extraEnv", &spec.extra_env)? {
            let name: &str = &extra.name;
            if env.iter().any(|ours| ours.name == name) {
                return Err(PlanError::new(format!(
                    "spec.extraEnv: {name:?} is set by the operator: remove it, and change the field of the spec that it stands for"
                )));
            }
            env.push(extra);
        }
        let mut mounts = self.mounts;
        mounts.extend(typed("spec.extraVolumeMounts", &spec.extra_volume_mounts)?);
        let port = |(name, port): (&str, i32)| ContainerPort {
            name: Some(name.to_owned()),
            container_port: port,
            ..ContainerPort::default()
        };
        let wait = ExecAction { command: Some(vec!["sleep".to_owned(), LAST_CALL.to_owned()]) };
        Ok(KubeContainer {
            name: self.name.to_owned(),
            image: Some(self.image),
            image_pull_policy: Some(spec.pull_policy().to_string()),
            command: self.command,
            args: self.args,
            env: some(env),
            env_from: some(self.env_from),
            ports: some(self.ports.into_iter().map(port).collect()),
            volume_mounts: some(mounts),
            startup_probe: Some(self.probes.startup()),
            liveness_probe: Some(self.probes.liveness()),
            readiness_probe: Some(self.probes.readiness()),
            resources: match &spec.resources {
                Some(resources) => {
                    Some(resources.typed().map_err(|error| at_field("spec.resources", &error))?)
                }
                None => None,
            },
            // None of Harbor's programs waits for open connections when it stops.
            lifecycle: Some(Lifecycle {
                pre_stop: Some(LifecycleHandler { exec: Some(wait), ..LifecycleHandler::default() }),
                ..Lifecycle::default()
            }),
            security_context: Some(SecurityContext {
                allow_privilege_escalation: Some(false),
                capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
                ..SecurityContext::default()
            }),
            ..KubeContainer::default()
        })
    }
}

fn typed<T: crate::api::embedded::Embed + serde::de::DeserializeOwned>(
    field: &str,
    all: &[crate::api::embedded::Embedded<T>],
) -> Result<Vec<T>, PlanError> {
    let one = |(at, one): (usize, &crate::api::embedded::Embedded<T>)| {
        one.typed().map_err(|error| at_field(&format!("{field}[{at}]"), &error))
    };
    all.iter().enumerate().map(one).collect()
}

pub(crate) fn at_field(field: &str, error: &dyn std::fmt::Display) -> PlanError {
    PlanError::new(format!("{field}: {error}"))
}
