//! Names of child objects: `<name>-<controller>`, followed by the purpose of the child.
//!
//! Names are persisted and therefore never change. A name that is too long is truncated and made unique with
//! a digest.

use kube::{Resource, ResourceExt as _};
use windlass::naming::{LABEL, name};

use super::component::ComponentSpec;
use super::{
    ChartMuseum, Core, Exporter, Harbor, HarborCluster, JobService, NotaryServer, NotarySigner, Portal,
    Registry, RegistryController, Trivy,
};

/// Kind whose child objects are named after it.
pub trait Parent: Resource<DynamicType = ()> + Sized {
    /// Name of the controller in object names, labels and annotations.
    const CONTROLLER: &'static str;

    /// Returns the name of a child: the object's name, the controller, and the purpose of the child.
    fn child(&self, what: &[&str]) -> String {
        child_of::<Self>(&self.name_any(), what)
    }

    /// Returns the immutable selector labels of the pods: `<controller>.goharbor.io/name` and `/namespace`.
    fn selector(&self) -> [(String, String); 2] {
        let label = |what: &str| format!("{}.goharbor.io/{what}", Self::CONTROLLER);
        [(label("name"), self.child(&[])), (label("namespace"), self.namespace().unwrap_or_default())]
    }
}

/// Returns the name of a child from the owner's name, for cases in which the owner does not exist yet.
pub(crate) fn child_of<K: Parent>(owner: &str, what: &[&str]) -> String {
    name([owner, K::CONTROLLER].into_iter().chain(what.iter().copied()), LABEL)
}

/// Harbor component: a kind whose pods run one image.
pub trait Component: Parent {
    /// Returns the pod settings of the component.
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
    /// The only child of this operator is a Harbor, named `<name>-harbor`.
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
