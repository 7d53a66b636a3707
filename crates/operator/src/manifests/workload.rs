//! The Deployment of an operator.

use serde_json::{Value, json};

use super::{Declared, Install, Reach, labels, metrics, webhooks};
use crate::operator::Operator;

/// The port of health in the Pod, in clear.
const HEALTH_PORT: u16 = 8081;

/// Seconds for which webhooks go on answering after the Pod got the signal to stop: API servers learn a
/// little later that it is gone.
const LINGER: u32 = 5;

pub(super) fn namespace(operator: &Operator, install: &Install) -> Value {
    let mut labels = labels(operator);
    labels["pod-security.kubernetes.io/enforce"] = "restricted".into();
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": install.namespace, "labels": labels}})
}

/// Returns the Deployment, and a PodDisruptionBudget if webhooks depend on its Pods.
pub(super) fn deployment(operator: &Operator, install: &Install, declared: &Declared) -> Vec<Value> {
    let has_webhooks = !declared.hooks.is_empty() || !declared.converted.is_empty();
    let mut ports = vec![
        json!({"name": "health", "containerPort": HEALTH_PORT}),
        json!({"name": "metrics", "containerPort": metrics::PORT}),
    ];
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
    // With webhooks, a Pod is ready when they answer, so that only such Pods are called. Readiness cannot
    // wait for the caches to sync: a converted kind is listed through the webhook.
    let ready = if has_webhooks { "/readyz/webhooks" } else { "/readyz" };
    let mut args = vec!["run".to_owned(), "--leader-elect".into(), "--log-format=json".into()];
    args.push("--metrics-secure".into());
    args.push(format!("--metrics-bind-address=:{}", metrics::PORT));
    args.push(format!("--health-probe-bind-address=:{HEALTH_PORT}"));
    if has_webhooks {
        args.push(format!("--webhook-linger={LINGER}"));
    }
    let probe = |path: &str, period: u32| json!({"httpGet": {"path": path, "port": "health"}, "periodSeconds": period});
    let mut container = json!({
        "name": "operator",
        "image": install.image,
        "args": args,
        "env": env,
        "ports": ports,
        "livenessProbe": probe("/healthz", 20),
        "readinessProbe": probe(ready, 5),
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
    // Webhooks fail closed: one Pod of two answers while the other is moved.
    let replicas = if has_webhooks { 2 } else { 1 };
    let spread = has_webhooks.then(|| {
        json!([{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": labels(operator)}}])
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": operator.name, "namespace": install.namespace, "labels": labels(operator)},
        "spec": {
            "replicas": replicas,
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
                    "topologySpreadConstraints": spread,
                    // Longer than the process takes to finish its work.
                    "terminationGracePeriodSeconds": 40,
                },
            },
        },
    });
    let budget = has_webhooks.then(|| {
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": operator.name, "namespace": install.namespace, "labels": labels(operator)},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels(operator)}},
        })
    });
    [deployment].into_iter().chain(budget).collect()
}
