//! The webhook configurations of an operator, and the Service that they name.

use serde_json::{Value, json};

use super::{Declared, Install, Reach, labels};
use crate::hooks::{Hook, Sort};
use crate::operator::Operator;
use crate::webhook_names::WebhookNames;

/// The port that the webhook server listens on in its Pod.
pub(super) const PORT: u16 = 9443;

/// Returns the Service and the configurations; nothing if there are no webhooks.
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
        },
    });
    let of = |sort: Sort, kind: &str| {
        let hooks: Vec<Value> = declared
            .hooks
            .iter()
            .filter(|hook| hook.sort == sort)
            .map(|hook| webhook(&names, operator, install, hook))
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

/// Returns one webhook without `caBundle`: the leader writes it, and an apply that does not name it leaves it
/// alone.
fn webhook(names: &WebhookNames, operator: &Operator, install: &Install, hook: &Hook) -> Value {
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
        "matchConditions": match_conditions(operator, install, hook),
        "failurePolicy": if hook.fails_open { "Ignore" } else { "Fail" },
        "namespaceSelector": selector,
        "rules": [{"apiGroups": [hook.group], "apiVersions": [hook.version], "resources": [hook.plural],
            "operations": hook.operations}],
        "sideEffects": "None",
        "timeoutSeconds": 10,
    })
}

/// Returns the conditions for requests to the webhook. Other requests pass even while the webhook cannot be
/// reached, so that an object can always be deleted: finalizers are removed from objects that are being
/// deleted, and by updates that leave the spec unchanged.
fn match_conditions(operator: &Operator, install: &Install, hook: &Hook) -> Value {
    let account = format!("system:serviceaccount:{}:{}", install.namespace, operator.name);
    let mut conditions = vec![
        json!({"name": "not-being-deleted",
            "expression": "request.operation == 'DELETE' || !has(object.metadata.deletionTimestamp)"}),
        json!({"name": "not-the-operator", "expression": format!("request.userInfo.username != '{account}'")}),
    ];
    if !hook.any_update {
        let changed = "request.operation != 'UPDATE' || !has(object.spec) || !has(oldObject.spec) || \
                       object.spec != oldObject.spec";
        conditions.push(json!({"name": "spec-changed", "expression": changed}));
    }
    Value::Array(conditions)
}

/// Returns the conversion section of a kind's definition.
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
