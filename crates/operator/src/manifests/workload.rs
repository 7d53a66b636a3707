//! Where an operator runs.

use serde_json::{Value, json};

use super::{Declared, Install, Reach, labels, webhooks};
use crate::operator::Operator;

/// The port of health and metrics in the Pod.
const ADMIN_PORT: u16 = 8080;

pub(super) fn namespace(operator: &Operator, install: &Install) -> Value {
    let mut labels = labels(operator);
    labels["pod-security.kubernetes.io/enforce"] = "restricted".into();
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": install.namespace, "labels": labels}})
}

pub(super) fn deployment(operator: &Operator, install: &Install, declared: &Declared) -> Value {
    let has_webhooks = !declared.hooks.is_empty() || !declared.converted.is_empty();
    let mut ports = vec![json!({"name": "admin", "containerPort": ADMIN_PORT})];
    if has_webhooks {
        ports.push(json!({"name": "webhooks", "containerPort": webhooks::PORT}));
    }
    let own_namespace = json!({"fieldRef": {"fieldPath": "metadata.namespace"}});
    let mut env = vec![json!({"name": "POD_NAMESPACE", "valueFrom": own_namespace})];
    match &install.reach {
        Reach::Cluster => {}
        Reach::OwnNamespace => env.push(json!({"name": "WATCH_NAMESPACE", "valueFrom": own_namespace})),
        Reach::Namespaces(names) => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            env.push(json!({"name": "WATCH_NAMESPACE", "value": names.join(",")}));
        }
    }
    let probe = |path: &str, period: u32| json!({"httpGet": {"path": path, "port": "admin"}, "periodSeconds": period});
    let mut container = json!({
        "name": "operator",
        "image": install.image,
        "args": ["run", "--leader-elect", "--log-format=json", format!("--metrics-bind-address=:{ADMIN_PORT}")],
        "env": env,
        "ports": ports,
        "livenessProbe": probe("/healthz", 20),
        "readinessProbe": probe("/readyz", 5),
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
    });
    if !operator.settings.is_empty() {
        let from = json!({"name": format!("{}-settings", operator.name), "optional": true});
        container["envFrom"] = json!([{"configMapRef": from}, {"secretRef": from}]);
    }
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": operator.name, "namespace": install.namespace, "labels": labels(operator)},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels(operator)},
            "template": {
                "metadata": {"labels": labels(operator)},
                "spec": {
                    "serviceAccountName": operator.name,
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": 65532,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [container],
                    // Longer than the process takes to finish what it does.
                    "terminationGracePeriodSeconds": 40,
                },
            },
        },
    })
}
