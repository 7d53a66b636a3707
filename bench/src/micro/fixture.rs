//! Pods as a cluster has them: about 10 KB of JSON each, many alike.

use serde::Deserialize;
use serde_json::{Value, json};
use windlass_runtime::cache::{OfKind, Shape};
use windlass_runtime::intern::Str;
use windlass_runtime::meta::Meta;
use windlass_runtime::resource::ResourceType;

/// The fields of a Pod that an operator typically reads.
#[derive(Debug, Deserialize)]
pub(crate) struct PodShape {
    metadata: Meta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Option<Str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: Option<Str>,
    #[serde(rename = "podIP")]
    pod_ip: Option<std::net::IpAddr>,
    conditions: Box<[Condition]>,
}

#[derive(Debug, Deserialize)]
struct Condition {
    r#type: Str,
    status: Str,
}

impl Shape for PodShape {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl OfKind for PodShape {
    fn resource() -> ResourceType {
        ResourceType::of::<k8s_openapi::api::core::v1::Pod>()
    }
}

impl PodShape {
    /// A checksum over every field, so that none is optimised away or missing.
    pub(crate) fn is_whole(&self) -> bool {
        let ready =
            self.status.conditions.iter().any(|one| &*one.r#type == "Ready" && &*one.status == "True");
        ready && self.spec.node_name.is_some() && self.status.phase.is_some() && self.status.pod_ip.is_some()
    }
}

/// Pod `index` of a cluster with 200 applications in 50 namespaces on 100 nodes.
pub(crate) fn pod(index: usize) -> Value {
    let app = format!("application-{}", index % 200);
    let namespace = format!("team-{}", index % 50);
    let name = format!("{app}-7d4b9c6f5d-{index:05}");
    let owner = format!("{:08x}-1111-4222-8333-{:012x}", index % 200, index % 200);
    let container = |container: &str| {
        json!({
            "name": container,
            "image": format!("registry.example.com/{namespace}/{app}/{container}:v1.24.{}", index % 200),
            "imagePullPolicy": "IfNotPresent",
            "command": ["/usr/local/bin/entrypoint", "--config=/etc/config/settings.yaml", "--verbosity=2"],
            "env": (0..10).map(|n| json!({"name": format!("SETTING_NUMBER_{n}"), "value": format!("the value of setting {n} of {app}")})).collect::<Vec<_>>(),
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}, {"name": "metrics", "containerPort": 9090, "protocol": "TCP"}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3},
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http", "scheme": "HTTP"}, "periodSeconds": 5, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3},
            "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true, "capabilities": {"drop": ["ALL"]}},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "volumeMounts": [{"name": "config", "mountPath": "/etc/config", "readOnly": true}, {"name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true}],
        })
    };
    let managed = |manager: &str, subresource: Option<&str>| {
        json!({
            "manager": manager, "operation": "Update", "apiVersion": "v1", "time": "2026-11-15T10:00:00Z", "fieldsType": "FieldsV1",
            "subresource": subresource,
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}, "f:pod-template-hash": {}, "f:version": {}}, "f:annotations": {".": {}, "f:checksum": {}}, "f:ownerReferences": {".": {}, format!("k:{{\"uid\":\"{owner}\"}}"): {}}},
                "f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {".": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:name": {}, "f:env": {".": {}, "k:{\"name\":\"SETTING_NUMBER_0\"}": {".": {}, "f:name": {}, "f:value": {}}, "k:{\"name\":\"SETTING_NUMBER_1\"}": {".": {}, "f:name": {}, "f:value": {}}}, "f:ports": {".": {}, "k:{\"containerPort\":8080,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:name": {}, "f:protocol": {}}}, "f:resources": {".": {}, "f:limits": {".": {}, "f:cpu": {}, "f:memory": {}}, "f:requests": {".": {}, "f:cpu": {}, "f:memory": {}}}}}, "f:dnsPolicy": {}, "f:enableServiceLinks": {}, "f:restartPolicy": {}, "f:schedulerName": {}, "f:securityContext": {}, "f:terminationGracePeriodSeconds": {}},
            },
        })
    };
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-11-15T10:00:05Z", "observedGeneration": 1});
    let status = |container: &str| {
        json!({
            "name": container, "ready": true, "started": true, "restartCount": 0, "image": format!("registry.example.com/{namespace}/{app}/{container}:v1.24.{}", index % 200),
            "imageID": format!("registry.example.com/{app}@sha256:{:064x}", index % 200), "containerID": format!("containerd://{index:064x}"),
            "state": {"running": {"startedAt": "2026-11-15T10:00:03Z"}}, "lastState": {},
        })
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "generateName": format!("{app}-7d4b9c6f5d-"), "namespace": namespace,
            "uid": format!("{index:08x}-aaaa-4bbb-8ccc-{index:012x}"), "resourceVersion": (1_000_000 + index).to_string(),
            "creationTimestamp": "2026-11-15T10:00:00Z", "generation": 1,
            "labels": {"app": app, "pod-template-hash": "7d4b9c6f5d", "version": format!("v1.24.{}", index % 200), "team": namespace},
            "annotations": {"checksum": format!("{:064x}", index % 200)},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{app}-7d4b9c6f5d"), "uid": owner, "controller": true, "blockOwnerDeletion": true}],
            "managedFields": [managed("kube-controller-manager", None), managed("operator", None), managed("kubelet", Some("status"))],
        },
        "spec": {
            "nodeName": format!("node-{:03}.example.internal", index % 100), "serviceAccountName": app, "serviceAccount": app,
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30, "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority", "priority": 0, "securityContext": {},
            "containers": [container("main"), container("sidecar")],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}, {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
            "volumes": [{"name": "config", "configMap": {"name": app, "defaultMode": 420}}, {"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]}}],
        },
        "status": {
            "phase": "Running", "hostIP": "10.0.0.1", "podIP": format!("10.{}.{}.{}", 64 + index / 65_536, index / 256 % 256, index % 256), "startTime": "2026-11-15T10:00:01Z", "qosClass": "Burstable",
            "conditions": [condition("PodReadyToStartContainers"), condition("Initialized"), condition("Ready"), condition("ContainersReady"), condition("PodScheduled")],
            "containerStatuses": [status("main"), status("sidecar")],
        },
    })
}
