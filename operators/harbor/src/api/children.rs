//! How children are named: `<name>-<controller>`, then what they are for. Persisted, and so never changed; a name that is too
//! long is cut, and told apart by a digest.

use kube::{Resource, ResourceExt as _};
use windlass::naming::{LABEL, name};

use super::component::ComponentSpec;
use super::{
    ChartMuseum, Core, Exporter, Harbor, HarborCluster, JobService, NotaryServer, NotarySigner, Portal,
    Registry, RegistryController, Trivy,
};

/// A kind whose children are named after it.
pub trait Parent: Resource<DynamicType = ()> + Sized {
    /// The word for its controller in names, labels and annotations.
    const CONTROLLER: &'static str;

    /// The name of a child: the object's own, the controller's, and what the child is for.
    ///
    /// ```
    /// use harbor_operator::api::{Portal, children::Parent};
    /// let portal: Portal = serde_json::from_value(serde_json::json!({"metadata": {"name": "x"}, "spec": {}}))?;
    /// assert_eq!(portal.child(&[]), "x-portal");
    /// assert_eq!(portal.child(&["ingress"]), "x-portal-ingress");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    fn child(&self, what: &[&str]) -> String {
        child_of::<Self>(&self.name_any(), what)
    }

    /// The labels by which its pods are found, and which cannot change: `<controller>.goharbor.io/name` and `/namespace`.
    fn selector(&self) -> [(String, String); 2] {
        let label = |what: &str| format!("{}.goharbor.io/{what}", Self::CONTROLLER);
        [(label("name"), self.child(&[])), (label("namespace"), self.namespace().unwrap_or_default())]
    }
}

/// The name of a child of the object of this name: where there is no object yet.
pub fn child_of<K: Parent>(owner: &str, what: &[&str]) -> String {
    name([owner, K::CONTROLLER].into_iter().chain(what.iter().copied()), LABEL)
}

/// A component: a kind with pods of one image.
pub trait Component: Parent {
    /// How its pods are run.
    fn pods(&self) -> &ComponentSpec;
}

macro_rules! components {
    ($($kind:ident = $controller:literal),+ $(,)?) => {
        $(
            impl Parent for $kind {
                const CONTROLLER: &'static str = $controller;
            }

            impl Component for $kind {
                fn pods(&self) -> &ComponentSpec {
                    &self.spec.component
                }
            }
        )+
    };
}

components! {
    ChartMuseum = "chartmuseum",
    Core = "core",
    Exporter = "exporter",
    JobService = "jobservice",
    NotaryServer = "notaryserver",
    NotarySigner = "notarysigner",
    Portal = "portal",
    Registry = "registry",
    RegistryController = "registryctl",
    Trivy = "trivy",
}

impl Parent for Harbor {
    const CONTROLLER: &'static str = "harbor";
}

impl Parent for HarborCluster {
    /// Its one child of ours is a Harbor, named `<name>-harbor`.
    const CONTROLLER: &'static str = "harbor";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_a_cluster_to_a_deployment_names_are_as_they_always_were() {
        let harbor = child_of::<HarborCluster>("x", &[]);
        let component = child_of::<Harbor>(&harbor, &[]);
        assert_eq!(component, "x-harbor-harbor");
        assert_eq!(child_of::<RegistryController>(&component, &[]), "x-harbor-harbor-registryctl");
        assert_eq!(child_of::<Harbor>(&harbor, &["core", "csrf"]), "x-harbor-harbor-core-csrf");
    }

    #[test]
    fn a_long_name_is_cut_and_still_told_apart() {
        let long = "a".repeat(60);
        let (one, other) = (child_of::<Core>(&long, &[]), child_of::<Core>(&long, &["ingress"]));
        assert!(one.len() <= LABEL && other.len() <= LABEL && one != other, "{one} {other}");
    }
}
