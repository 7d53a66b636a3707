//! Kinds of objects, and properties of all objects of a kind.

use kube::Resource;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::{ResourceType, ScopeKind};

/// A kind that can be planned or asked for: one of k8s-openapi's, or one made with
/// `#[derive(CustomResource)]`.
pub trait Kind: Resource<DynamicType = (), Scope: ScopeKind> + 'static {}

impl<K: Resource<DynamicType = (), Scope: ScopeKind> + 'static> Kind for K {}

/// Returns the readable name of an object: `Deployment shop-core`, with the namespace if that is not the
/// owner's.
pub(crate) fn id(resource: &ResourceType, key: &ObjectKey, namespace: Option<&str>) -> String {
    match key.namespace() {
        Some(other) if Some(other) != namespace => format!("{} {key}", resource.kind),
        _ => format!("{} {}", resource.kind, key.name()),
    }
}

/// Returns whether the content of the kind is secret, so that digests of it must be keyed.
pub(crate) fn is_secret(resource: &ResourceType) -> bool {
    resource.group.is_empty() && resource.kind == "Secret"
}

/// Returns whether others depend on the content of the kind's objects, not only on their existence.
pub(crate) fn has_content(resource: &ResourceType) -> bool {
    resource.group.is_empty() && matches!(&*resource.kind, "Secret" | "ConfigMap")
}

/// Returns whether objects of the kind hold data that cannot be created again.
pub(crate) fn is_data(resource: &ResourceType) -> bool {
    resource.group.is_empty() && resource.kind == "PersistentVolumeClaim"
}

/// Returns whether only the metadata of the kind's objects is needed. Their content, which may be secret,
/// then never enters the process.
pub(crate) fn is_ready_by_existing(resource: &ResourceType) -> bool {
    matches!(
        (&*resource.group, &*resource.kind),
        ("", "ConfigMap" | "Secret" | "ServiceAccount" | "Endpoints" | "LimitRange" | "ResourceQuota")
            | ("rbac.authorization.k8s.io", _)
            | ("networking.k8s.io", "Ingress" | "IngressClass" | "NetworkPolicy")
            | ("scheduling.k8s.io", "PriorityClass")
            | ("policy", "PodDisruptionBudget")
            | ("autoscaling", "HorizontalPodAutoscaler")
    )
}
