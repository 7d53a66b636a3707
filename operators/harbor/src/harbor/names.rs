//! Names of the objects of a Harbor.
//!
//! Names are API: running pods, and keys that databases depend on, are found by them. They never change.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use windlass::naming::{self, name};

use crate::api::Harbor;
use crate::api::component::Served;
use crate::api::names::{annotation, label};
use crate::catalogue::Component;

/// Longest common name of a certificate, in characters.
const COMMON_NAME: usize = 64;

/// The names of one Harbor's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    base: String,
    namespace: String,
}

impl Names {
    /// Returns the names for a Harbor.
    pub(crate) fn of(harbor: &Harbor) -> Self {
        let base = name([&*harbor.name_any(), "harbor"], naming::LABEL);
        Self { base, namespace: harbor.namespace().unwrap_or_default() }
    }

    /// Returns the name of all its components: `<harbor>-harbor`.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Returns the namespace of the Harbor.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the name of another object: `<harbor>-harbor-<suffix>`.
    pub(crate) fn with(&self, suffix: &str) -> String {
        name([&*self.base, suffix], naming::LABEL)
    }

    /// Returns the name of the Service and the Deployment of a component.
    pub(crate) fn service(&self, component: Component) -> String {
        self.with(component.as_str())
    }

    /// Returns the name of the Secret with the certificate of a component.
    pub(crate) fn certificate(&self, component: Component) -> String {
        self.with(&format!("internal-tls-{}", component.as_str()))
    }

    /// Returns the host names of a component inside the cluster.
    pub(crate) fn hosts(&self, component: Component) -> Vec<String> {
        let (service, namespace) = (self.service(component), &self.namespace);
        vec![service.clone(), format!("{service}.{namespace}"), format!("{service}.{namespace}.svc")]
    }

    /// Returns the URL of a component, without a port.
    pub(crate) fn url(&self, component: Component, served: Served) -> String {
        format!("{}://{}", served.scheme(), self.service(component))
    }

    /// Returns the URL of a component, with its port.
    pub(crate) fn url_with_port(&self, component: Component, served: Served) -> String {
        format!("{}:{}", self.url(component, served), served.service_port())
    }

    /// Returns the labels that select the pods of a component.
    pub(crate) fn selector(&self, component: Component) -> BTreeMap<String, String> {
        // The RegistryController has no pods of its own.
        let component =
            if component == Component::RegistryController { Component::Registry } else { component };
        let label = |what: &str| format!("{}.goharbor.io/{what}", component.as_str());
        [(label("name"), self.service(component)), (label("namespace"), self.namespace.clone())].into()
    }
}

/// Returns the metadata of an object of a Harbor.
pub(crate) fn metadata(names: &Names, name: String) -> ObjectMeta {
    let text = |text: &str| text.to_owned();
    ObjectMeta {
        name: Some(name),
        namespace: Some(names.namespace().to_owned()),
        labels: Some([(text(label::CONTROLLER), text("harbor"))].into()),
        annotations: Some(
            [(text(annotation::WARNING), text("⚠️ This Resource is managed by *harbor* ⚠️"))].into(),
        ),
        ..ObjectMeta::default()
    }
}

/// Returns a common name that fits into a certificate.
pub(crate) fn common_name(wanted: &str) -> String {
    name([wanted], COMMON_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harbor::blueprint::samples::harbor;

    #[test]
    fn names_never_change() {
        let names = Names::of(&harbor("2.6.2", false));
        assert_eq!(names.base(), "sample-harbor");
        assert_eq!(names.service(Component::RegistryController), "sample-harbor-registryctl");
        assert_eq!(names.certificate(Component::Core), "sample-harbor-internal-tls-core");
        assert_eq!(names.url_with_port(Component::Core, Served::Https), "https://sample-harbor-core:443");
        let hosts = ["sample-harbor-core", "sample-harbor-core.registry", "sample-harbor-core.registry.svc"];
        assert_eq!(names.hosts(Component::Core), hosts);
        assert_eq!(names.selector(Component::RegistryController), names.selector(Component::Registry));
    }

    #[test]
    fn b16_long_names_are_shortened_and_stay_apart() {
        let mut harbor = harbor("2.15.2", true);
        harbor.metadata.name = Some("the-registry-of-all-teams-of-the-whole-company-in-production".into());
        let names = Names::of(&harbor);
        let all = [
            names.base().to_owned(),
            names.service(Component::Registry),
            names.certificate(Component::Registry),
            names.certificate(Component::RegistryController),
            names.with("registry-basicauth"),
        ];
        assert!(all.iter().all(|name| name.len() <= 63), "{all:?}");
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
        assert!(common_name(&"x".repeat(80)).len() <= 64);
    }
}
