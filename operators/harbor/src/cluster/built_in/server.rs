//! A built-in server with a volume: a StatefulSet with one pod, its Services, and its claim.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ResourceRequirements, Service};
use serde_json::{Value, json};
use windlass::naming::{self, name};
use windlass::{Plan, PlanError, Planned};
use windlass_runtime::json::typed;

use crate::api::embedded::Embedded;
use crate::catalogue::Component;
use crate::cluster::{Image, Site};
use crate::workload::{at_field, policy};

/// User and group of Harbor's database and cache images.
const USER: i64 = 999;

/// The description of a server.
pub(super) struct Server<'s> {
    /// Name of its objects.
    pub(super) name: String,
    /// The component, for labels.
    pub(super) component: Component,
    /// The container image.
    pub(super) image: Image,
    /// The command; `None` uses the command of the image.
    pub(super) command: Option<Vec<String>>,
    /// The environment variables.
    pub(super) env: Vec<Value>,
    /// The port of the server. Its name is the component's word.
    pub(super) port: u16,
    /// Mount path of the volume.
    pub(super) data: &'static str,
    /// Mount paths and size limits of memory volumes for temporary files.
    pub(super) scratch: Vec<(&'static str, &'static str)>,
    /// Files from a ConfigMap that the server reads.
    pub(super) files: Option<Files>,
    /// Handler of the liveness probe.
    pub(super) lives: Value,
    /// Handler of the readiness and startup probes.
    pub(super) serves: Value,
    /// Failure threshold of the startup probe, which runs every ten seconds.
    pub(super) patience: i32,
    /// Command of an init container with the same image.
    pub(super) before: Option<Vec<String>>,
    /// CPU and memory of the container.
    pub(super) resources: Option<&'s Embedded<ResourceRequirements>>,
    /// Path of the resources in the spec, for error messages.
    pub(super) field: &'static str,
}

/// Files that a server reads.
pub(super) struct Files {
    /// The ConfigMap. The keys are the names of the files.
    pub(super) config_map: String,
    /// Directory and name of each file. Other files of the image in that directory stay visible.
    pub(super) paths: Vec<(&'static str, &'static str)>,
}

impl Server<'_> {
    /// Adds the server and its objects to the plan, after the nodes in `before`. Returns the nodes; the last
    /// one is the StatefulSet.
    pub(super) fn plan(
        self,
        site: &Site<'_>,
        before: &[Planned],
        plan: &mut Plan,
    ) -> Result<Vec<Planned>, PlanError> {
        let component = self.component.as_str();
        let selector = BTreeMap::from([
            (format!("{component}.goharbor.io/name"), self.name.clone()),
            (format!("{component}.goharbor.io/namespace"), site.names.namespace().to_owned()),
        ]);
        self.policies(site, &selector, plan);
        let headless = name([&*self.name, "headless"], naming::LABEL);
        let port = json!({"name": component, "port": self.port, "targetPort": component, "protocol": "TCP"});
        let service = |name: &str, more: Value| -> Result<Service, PlanError> {
            let mut spec = json!({"selector": selector, "ports": [port]});
            if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
                spec.extend(more);
            }
            Ok(typed(&json!({"metadata": site.metadata(name), "spec": spec}))?)
        };
        // The DNS name of the pod also resolves while the pod is not ready.
        let own = json!({"clusterIP": "None", "publishNotReadyAddresses": true});
        let own = plan.add(service(&headless, own)?);
        let shared = plan.add(service(&self.name, json!({}))?);
        let set = json!({
            "metadata": site.metadata(&self.name),
            "spec": {
                "replicas": 1,
                "serviceName": headless,
                "selector": {"matchLabels": selector},
                "template": {"metadata": {"labels": selector}, "spec": self.pod()?},
            },
        });
        let set: StatefulSet = typed(&set)?;
        let server = plan.add(set).after(before).after([&own]);
        Ok(vec![own, shared, server])
    }

    /// Adds the NetworkPolicies: ingress from everywhere to the port, because the password protects it and
    /// the operator reads the schema version of the database; no egress.
    fn policies(&self, site: &Site<'_>, pods: &BTreeMap<String, String>, plan: &mut Plan) {
        let wanted = policy::wanted(&site.cluster.metadata, site.settings.network_policies);
        let metadata = |way: &str| site.metadata(&name([&*self.name, way], naming::SUBDOMAIN));
        let come = policy::to_ports(metadata("ingress"), pods.clone(), [i32::from(self.port)]);
        plan.add(come).when(wanted);
        plan.add(policy::nowhere(metadata("egress"), pods.clone())).when(wanted);
    }

    fn pod(&self) -> Result<Value, PlanError> {
        let resources = match self.resources {
            Some(resources) => json!(resources.typed().map_err(|error| at_field(self.field, &error))?),
            None => Value::Null,
        };
        let probe = |handler: &Value, failures: i32| {
            let mut probe = json!({"periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": failures});
            if let (Some(probe), Some(handler)) = (probe.as_object_mut(), handler.as_object()) {
                probe.extend(handler.clone());
            }
            probe
        };
        let confined = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
        let mut mounts = vec![json!({"name": "data", "mountPath": self.data})];
        let mut volumes = vec![json!({"name": "data", "persistentVolumeClaim": {"claimName": self.name}})];
        for (at, (path, size)) in self.scratch.iter().enumerate() {
            mounts.push(json!({"name": format!("scratch-{at}"), "mountPath": path}));
            let memory = json!({"medium": "Memory", "sizeLimit": size});
            volumes.push(json!({"name": format!("scratch-{at}"), "emptyDir": memory}));
        }
        if let Some(Files { config_map, paths }) = &self.files {
            for (directory, name) in paths {
                let path = format!("{directory}/{name}");
                mounts.push(json!({"name": "file", "mountPath": path, "subPath": name, "readOnly": true}));
            }
            volumes.push(json!({"name": "file", "configMap": {"name": config_map}}));
        }
        let component = self.component.as_str();
        let container = json!({
            "name": component,
            "image": self.image.reference,
            "imagePullPolicy": self.image.policy,
            "command": self.command,
            "env": self.env,
            "ports": [{"name": component, "containerPort": self.port}],
            "volumeMounts": mounts,
            "startupProbe": probe(&self.lives, self.patience),
            "livenessProbe": probe(&self.lives, 3),
            "readinessProbe": probe(&self.serves, 2),
            "resources": resources,
            "securityContext": confined,
        });
        let before = self.before.as_ref().map(|command| {
            json!([{
                "name": "prepare",
                "image": self.image.reference,
                "imagePullPolicy": self.image.policy,
                "command": command,
                "volumeMounts": [{"name": "data", "mountPath": self.data}],
                "securityContext": confined,
            }])
        });
        Ok(json!({
            "initContainers": before,
            "containers": [container],
            "volumes": volumes,
            "enableServiceLinks": false,
            "automountServiceAccountToken": false,
            // A database that writes its memory to disk needs time to stop.
            "terminationGracePeriodSeconds": 120,
            "imagePullSecrets": self.image.secrets(),
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
                // PostgreSQL refuses a data directory that its group may write, so the ownership of a correct
                // volume must not change.
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        }))
    }
}

/// Returns an environment variable with the value of a key of a Secret.
pub(super) fn secret_env(variable: &str, secret: &str, key: &str) -> Value {
    json!({"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
}
