//! What the objects of a Harbor are called.
//!
//! Names are API: what runs is found by them, and so are the keys without which a database is worthless. None may ever change.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use windlass::naming::{self, name};

use crate::api::Harbor;
use crate::api::component::Served;
use crate::api::names::{annotation, label};

/// The longest common name of a certificate.
const COMMON_NAME: usize = 64;

/// The parts of a Harbor, as names and labels have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The API.
    Core,
    /// What takes long.
    JobService,
    /// The pages.
    Portal,
    /// The registry.
    Registry,
    /// The registry's controller, which runs in the registry's pods.
    RegistryController,
    /// Charts.
    ChartMuseum,
    /// Metrics.
    Exporter,
    /// Signatures.
    NotaryServer,
    /// The keys of signatures.
    NotarySigner,
    /// Scans.
    Trivy,
    /// The way in, where it is a Service.
    Proxy,
}

impl Part {
    /// In names and labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::JobService => "jobservice",
            Self::Portal => "portal",
            Self::Registry => "registry",
            Self::RegistryController => "registryctl",
            Self::ChartMuseum => "chartmuseum",
            Self::Exporter => "exporter",
            Self::NotaryServer => "notaryserver",
            Self::NotarySigner => "notarysigner",
            Self::Trivy => "trivy",
            Self::Proxy => "proxy",
        }
    }
}

/// The names of one Harbor's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    base: String,
    namespace: String,
}

impl Names {
    /// Of this Harbor.
    pub fn of(harbor: &Harbor) -> Self {
        let base = name([&*harbor.name_any(), "harbor"], naming::LABEL);
        Self { base, namespace: harbor.namespace().unwrap_or_default() }
    }

    /// The name that all its components have: `<harbor>-harbor`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A further object: `<harbor>-harbor-<suffix>`.
    pub fn with(&self, suffix: &str) -> String {
        name([&*self.base, suffix], naming::LABEL)
    }

    /// The Service, and the pods, of a part.
    pub fn service(&self, part: Part) -> String {
        self.with(part.as_str())
    }

    /// The Secret with the certificate of a part.
    pub fn certificate(&self, part: Part) -> String {
        self.with(&format!("internal-tls-{}", part.as_str()))
    }

    /// The names under which a part is reached inside the cluster.
    pub fn hosts(&self, part: Part) -> Vec<String> {
        let (service, namespace) = (self.service(part), &self.namespace);
        vec![service.clone(), format!("{service}.{namespace}"), format!("{service}.{namespace}.svc")]
    }

    /// The URL of a part, without a port.
    pub fn url(&self, part: Part, served: Served) -> String {
        format!("{}://{}", served.scheme(), self.service(part))
    }

    /// The URL of a part, with its port.
    pub fn url_with_port(&self, part: Part, served: Served) -> String {
        format!("{}:{}", self.url(part, served), served.service_port())
    }

    /// The labels by which the pods of a part are found.
    pub fn selector(&self, part: Part) -> BTreeMap<String, String> {
        // The registry's controller has no pods of its own.
        let part = if part == Part::RegistryController { Part::Registry } else { part };
        let label = |what: &str| format!("{}.goharbor.io/{what}", part.as_str());
        [(label("name"), self.service(part)), (label("namespace"), self.namespace.clone())].into()
    }
}

/// The metadata of an object that a Harbor has.
pub fn metadata(names: &Names, name: String) -> ObjectMeta {
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

/// A common name that fits into a certificate.
pub fn common_name(wanted: &str) -> String {
    name([wanted], COMMON_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harbor::blueprint::samples::harbor;

    #[test]
    fn names_are_those_of_ever() {
        let names = Names::of(&harbor("2.6.2", false));
        assert_eq!(names.base(), "sample-harbor");
        assert_eq!(names.service(Part::RegistryController), "sample-harbor-registryctl");
        assert_eq!(names.certificate(Part::Core), "sample-harbor-internal-tls-core");
        assert_eq!(names.url_with_port(Part::Core, Served::Https), "https://sample-harbor-core:443");
        let hosts = ["sample-harbor-core", "sample-harbor-core.registry", "sample-harbor-core.registry.svc"];
        assert_eq!(names.hosts(Part::Core), hosts);
        assert_eq!(names.selector(Part::RegistryController), names.selector(Part::Registry));
    }

    #[test]
    fn b16_long_names_are_shortened_and_stay_apart() {
        let mut harbor = harbor("2.15.2", true);
        harbor.metadata.name = Some("the-registry-of-all-teams-of-the-whole-company-in-production".into());
        let names = Names::of(&harbor);
        let all = [
            names.base().to_owned(),
            names.service(Part::Registry),
            names.certificate(Part::Registry),
            names.certificate(Part::RegistryController),
            names.with("registry-basicauth"),
        ];
        assert!(all.iter().all(|name| name.len() <= 63), "{all:?}");
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
        assert!(common_name(&"x".repeat(80)).len() <= 64);
    }
}
