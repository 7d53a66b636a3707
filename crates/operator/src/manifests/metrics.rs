//! The Service of an operator's metrics, the rights to serve and to read them, and a NetworkPolicy.

use serde_json::{Value, json};
use windlass_runtime::access::Access;

use super::{Declared, Install, labels, rbac};
use crate::metrics_names::MetricsNames;
use crate::operator::Operator;

/// The port of the metrics in the Pod, over TLS.
pub(super) const PORT: u16 = 8443;

/// Returns the Service, and the right to the Secret of its certificate.
pub(super) fn service(operator: &Operator, install: &Install) -> Result<Vec<Value>, serde_json::Error> {
    let names = MetricsNames::of(operator, &install.namespace);
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": names.service, "namespace": install.namespace, "labels": labels(operator)},
        "spec": {
            "selector": labels(operator),
            "ports": [{"name": "metrics", "port": PORT, "targetPort": "metrics"}],
        },
    });
    let mut objects = vec![service];
    let (_, roles) = Access::none().certificates(&names.secret).roles(&names.service, [""; 0]);
    for role in roles {
        objects.extend(rbac::bound(operator, install, &names.service, role)?);
    }
    Ok(objects)
}

/// Returns the right of the operator to review tokens and permissions, and the role `metrics-reader` for
/// those who may read metrics. Both are cluster-wide: reviews and URLs have no namespace.
pub(super) fn authorization(operator: &Operator, install: &Install) -> Result<Vec<Value>, serde_json::Error> {
    let cluster_name = operator.cluster_name(&install.namespace);
    let reviewer = format!("{cluster_name}.metrics-auth");
    let role = Access::none().guard().cluster_role(&reviewer);
    let reader = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": format!("{cluster_name}.metrics-reader"), "labels": labels(operator)},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    });
    Ok(vec![
        rbac::labelled(operator, serde_json::to_value(role)?),
        rbac::binding(operator, install, "ClusterRole", &reviewer, None),
        reader,
    ])
}

/// Returns a NetworkPolicy that lets only namespaces labelled `metrics: enabled` reach the metrics. Webhooks
/// stay open, because the addresses of API servers are not known; health is reached from the Pod's own node.
pub(super) fn network_policy(operator: &Operator, install: &Install, declared: &Declared) -> Value {
    let scrapers = json!([{"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}]);
    let mut ingress = vec![json!({"from": scrapers, "ports": [{"port": "metrics", "protocol": "TCP"}]})];
    if !declared.hooks.is_empty() || !declared.converted.is_empty() {
        ingress.push(json!({"ports": [{"port": "webhooks", "protocol": "TCP"}]}));
    }
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": operator.name, "namespace": install.namespace, "labels": labels(operator)},
        "spec": {
            "podSelector": {"matchLabels": labels(operator)},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    })
}
