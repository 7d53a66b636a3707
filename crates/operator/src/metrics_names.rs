//! The names of the objects around an operator's metrics.

use windlass_runtime::key::ObjectKey;

use crate::operator::Operator;

/// The names of the objects around an operator's metrics: in one place, because the process and the manifests
/// must agree.
pub(crate) struct MetricsNames {
    pub(crate) service: String,
    pub(crate) secret: ObjectKey,
    pub(crate) dns: String,
}

impl MetricsNames {
    pub(crate) fn of(operator: &Operator, namespace: &str) -> Self {
        let service = format!("{}-metrics", operator.name);
        Self {
            dns: format!("{service}.{namespace}.svc"),
            secret: ObjectKey::namespaced(namespace, &*service),
            service,
        }
    }
}
