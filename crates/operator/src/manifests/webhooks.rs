//! How the API server finds an operator's webhooks.

use serde_json::{Value, json};

use super::{Declared, Install, Reach, labels};
use crate::hooks::{Hook, Sort};
use crate::operator::Operator;
use crate::webhook_names::WebhookNames;

/// The port that the webhook server listens on in its Pod.
pub(super) const PORT: u16 = 9443;

/// The Service and the configurations; nothing where there are no webhooks.
pub(super) fn configurations(operator: &Operator, install: &Install, declared: &Declared) -> Vec<Value> {
    if declared.hooks.is_empty() && declared.converted.is_empty() {
        return Vec::new();
    }
    let names = WebhookNames::of(operator, &install.namespace);
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": names.service, "namespace": install.namespace, "labels": labels(operator)},
        "spec": {
            "selector": labels(operator),
            "ports": [{"name": "webhooks", "port": 443, "targetPort": "webhooks"}],
            // A converted kind cannot be listed before its webhook answers, and a process is not ready before it has listed.
            "publishNotReadyAddresses": true,
        },
    });
    let of = |sort: Sort, kind: &str| {
        let hooks: Vec<Value> = declared
            .hooks
            .iter()
            .filter(|hook| hook.sort == sort)
            .map(|hook| webhook(&names, install, hook))
            .collect();
        (!hooks.is_empty()).then(|| {
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": {"name": names.configuration, "labels": labels(operator)},
                "webhooks": hooks,
            })
        })
    };
    let mutating = of(Sort::Mutating, "MutatingWebhookConfiguration");
    let validating = of(Sort::Validating, "ValidatingWebhookConfiguration");
    [service].into_iter().chain(mutating).chain(validating).collect()
}

/// No `caBundle`: the leader writes it, and an apply that does not name it leaves it alone.
fn webhook(names: &WebhookNames, install: &Install, hook: &Hook) -> Value {
    let watched: Vec<String> = match install.reach {
        Reach::Cluster => Vec::new(),
        Reach::OwnNamespace | Reach::Namespaces(_) => install.watched().into_iter().collect(),
    };
    let selector = (!watched.is_empty()).then(|| {
        json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": watched}]})
    });
    json!({
        "name": hook.name,
        "admissionReviewVersions": ["v1", "v1beta1"],
        "clientConfig": {"service": {"name": names.service, "namespace": install.namespace, "path": hook.path, "port": 443}},
        "failurePolicy": if hook.fails_open { "Ignore" } else { "Fail" },
        "namespaceSelector": selector,
        "rules": [{"apiGroups": [hook.group], "apiVersions": [hook.version], "resources": [hook.plural],
            "operations": hook.operations}],
        "sideEffects": "None",
        "timeoutSeconds": 10,
    })
}

/// How a kind is converted.
pub(super) fn conversion(operator: &Operator, install: &Install) -> Value {
    let names = WebhookNames::of(operator, &install.namespace);
    json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"service": {"name": names.service, "namespace": install.namespace,
                "path": windlass_runtime::webhook::CONVERT, "port": 443}},
            "conversionReviewVersions": ["v1"],
        },
    })
}
