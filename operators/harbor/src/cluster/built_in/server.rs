//! One server with a volume: a StatefulSet of one pod, its Services, and the claim.

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

/// The user and group that Harbor's images of servers run as.
const USER: i64 = 999;

/// A server.
pub(super) struct Server<'s> {
    /// What its objects are called.
    pub(super) name: String,
    /// The component that it is, for labels.
    pub(super) component: Component,
    /// What it runs.
    pub(super) image: Image,
    /// Its command, where that is not the image's.
    pub(super) command: Option<Vec<String>>,
    /// Its environment.
    pub(super) env: Vec<Value>,
    /// The port of the server, which has the name of the component.
    pub(super) port: u16,
    /// Where the volume is.
    pub(super) data: &'static str,
    /// Where files are that are nobody's, in memory, and how large they get.
    pub(super) scratch: Vec<(&'static str, &'static str)>,
    /// A file of a ConfigMap's that it reads.
    pub(super) file: Option<File>,
    /// Whether it lives, as a probe's handler.
    pub(super) lives: Value,
    /// Whether it can serve, as a probe's handler.
    pub(super) serves: Value,
    /// How many times ten seconds it may take to start.
    pub(super) patience: i32,
    /// A command that is run before, with the same image.
    pub(super) before: Option<Vec<String>>,
    /// CPU and memory.
    pub(super) resources: Option<&'s Embedded<ResourceRequirements>>,
    /// The field of the spec, for messages.
    pub(super) field: &'static str,
}

/// A file that a server reads.
pub(super) struct File {
    /// The ConfigMap that it is in, under its own name.
    pub(super) config_map: String,
    /// Its directory. Other files that the image has there stay.
    pub(super) directory: &'static str,
    /// Its name.
    pub(super) name: &'static str,
}

impl Server<'_> {
    /// Plans it, with what must come before it. The last is the server itself.
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
        // The pod has a name of its own also while it is not ready.
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

    /// Whoever knows the password may come, the operator too, which asks the database how far it is migrated; the server itself goes nowhere.
    fn policies(&self, site: &Site<'_>, pods: &BTreeMap<String, String>, plan: &mut Plan) {
        let wanted = policy::wanted(&site.cluster.metadata, site.settings.network_policies);
        let metadata = |way: &str| site.metadata(&name([&*self.name, way], naming::SUBDOMAIN));
        let come = policy::to_ports(metadata("ingress"), pods.clone(), [i32::from(self.port)]);
        plan.add(come).when(wanted);
        plan.add(policy::nowhere(metadata("egress"), pods.clone())).when(wanted);
    }

    fn pod(&self) -> Result<Value, PlanError> {
        let resources = match self.resources {
            Some(given) => json!(given.typed().map_err(|error| at_field(self.field, &error))?),
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
        if let Some(File { config_map, directory, name }) = &self.file {
            let path = format!("{directory}/{name}");
            mounts.push(json!({"name": "file", "mountPath": path, "subPath": name, "readOnly": true}));
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
            // A database that writes its memory to disk is not to be hurried.
            "terminationGracePeriodSeconds": 120,
            "imagePullSecrets": self.image.secrets(),
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
                // PostgreSQL refuses data that others of its group may write: a volume that is right is left as it is.
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        }))
    }
}

/// A variable of the environment that is a value of a Secret.
pub(super) fn secret_env(variable: &str, secret: &str, key: &str) -> Value {
    json!({"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
}
