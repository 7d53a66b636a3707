//! Kinds: group, version, kind, plural name and scope, and their API paths.

use std::borrow::Cow;
use std::fmt;

use kube::Resource;
use kube::core::{ClusterResourceScope, NamespaceResourceScope};

/// A kind as the API serves it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceType {
    /// The API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// The version within the group, for example `v1`.
    pub version: Cow<'static, str>,
    /// The kind, for example `Deployment`.
    pub kind: Cow<'static, str>,
    /// The plural name used in paths and RBAC rules, for example `deployments`.
    pub plural: Cow<'static, str>,
    /// True if objects live in namespaces.
    pub namespaced: bool,
}

/// The two scopes that a typed kind can have, as a constant.
pub trait ScopeKind {
    /// True if objects of this scope live in namespaces.
    const NAMESPACED: bool;
}

impl ScopeKind for NamespaceResourceScope {
    const NAMESPACED: bool = true;
}

impl ScopeKind for ClusterResourceScope {
    const NAMESPACED: bool = false;
}

impl ResourceType {
    /// Returns the kind of a Rust type: one of k8s-openapi's, or one made with `#[derive(CustomResource)]`.
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use windlass_runtime::resource::ResourceType;
    ///
    /// let deployments = ResourceType::of::<Deployment>();
    /// assert_eq!(deployments.path(Some("shop")), "/apis/apps/v1/namespaces/shop/deployments");
    /// ```
    pub fn of<K: Resource<DynamicType = (), Scope: ScopeKind>>() -> Self {
        Self {
            group: Cow::Owned(K::group(&()).into_owned()),
            version: Cow::Owned(K::version(&()).into_owned()),
            kind: Cow::Owned(K::kind(&()).into_owned()),
            plural: Cow::Owned(K::plural(&()).into_owned()),
            namespaced: K::Scope::NAMESPACED,
        }
    }

    /// Returns the `apiVersion` of manifests: `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns the path of the collection, in one namespace or across all of them.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        let api_version = self.api_version();
        match namespace {
            Some(namespace) if self.namespaced => {
                format!("/{root}/{api_version}/namespaces/{namespace}/{}", self.plural)
            }
            _ => format!("/{root}/{api_version}/{}", self.plural),
        }
    }

    /// Returns `plural.group`, as CRDs are named and as the API server writes kinds in its messages.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.to_string()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }
}

/// Displays the kind as `Deployment (apps/v1)`.
impl fmt::Display for ResourceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.kind, self.api_version())
    }
}

impl fmt::Debug for ResourceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{Node, Pod};

    #[test]
    fn core_kinds_have_paths_under_api_and_cluster_scoped_kinds_ignore_a_namespace() {
        assert_eq!(ResourceType::of::<Pod>().path(None), "/api/v1/pods");
        assert_eq!(ResourceType::of::<Pod>().path(Some("a")), "/api/v1/namespaces/a/pods");
        assert_eq!(ResourceType::of::<Node>().path(Some("a")), "/api/v1/nodes");
        assert!(!ResourceType::of::<Node>().namespaced);
    }
}
