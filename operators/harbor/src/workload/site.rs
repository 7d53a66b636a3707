//! What the children of a component are called, and how they are found.
//!
//! All of it is API: pods that run are selected by it, and other components reach them by it.

use std::collections::BTreeMap;

use kube::api::ObjectMeta;
use windlass::naming::{self, name};

use crate::api::names::{annotation, label};

/// The name of a component's children: `<component>-<controller>`, shortened with a digest where that is too long for a Service.
///
/// ```
/// use harbor_operator::workload::child_name;
///
/// assert_eq!(child_name("sample-harbor", "core"), "sample-harbor-core");
/// ```
pub fn child_name(component: &str, controller: &str) -> String {
    name([component, controller], naming::LABEL)
}

/// Where the children of one component are.
#[derive(Clone, Debug)]
pub struct Site {
    controller: &'static str,
    component: String,
    namespace: String,
    name: String,
}

impl Site {
    /// Of the component of this name.
    pub fn new(controller: &'static str, component: &str, namespace: &str) -> Self {
        Self {
            controller,
            component: component.to_owned(),
            namespace: namespace.to_owned(),
            name: child_name(component, controller),
        }
    }

    /// The controller: `core`.
    pub fn controller(&self) -> &'static str {
        self.controller
    }

    /// The component itself.
    pub fn component(&self) -> &str {
        &self.component
    }

    /// The namespace of all of it.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name that its children share.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of a further child: `<component>-<controller>-<suffix>`.
    pub fn further(&self, suffix: &str) -> String {
        name([&*self.component, self.controller, suffix], naming::LABEL)
    }

    /// The labels by which its pods are selected. They can never be changed.
    pub fn selector(&self) -> BTreeMap<String, String> {
        let of_pods = |what: &str| format!("{}.goharbor.io/{what}", self.controller);
        [(of_pods("name"), self.name.clone()), (of_pods("namespace"), self.namespace.clone())].into()
    }

    /// The metadata of a child of this name.
    pub fn metadata(&self, name: impl Into<String>) -> ObjectMeta {
        let warning = format!("⚠️ This Resource is managed by *{}* ⚠️", self.controller);
        ObjectMeta {
            name: Some(name.into()),
            namespace: Some(self.namespace.clone()),
            labels: Some([(label::CONTROLLER.to_owned(), self.controller.to_owned())].into()),
            annotations: Some([(annotation::WARNING.to_owned(), warning)].into()),
            ..ObjectMeta::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_named_and_found_as_ever() {
        let site = Site::new("core", "sample-harbor", "registry");
        assert_eq!(
            (site.name(), &*site.further("ingress")),
            ("sample-harbor-core", "sample-harbor-core-ingress")
        );
        let selector: Vec<_> = site.selector().into_iter().collect();
        let expected =
            [("core.goharbor.io/name", "sample-harbor-core"), ("core.goharbor.io/namespace", "registry")];
        assert_eq!(selector, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn b16_a_long_name_is_shortened_and_stays_the_same_for_ever() {
        let long = "the-registry-of-all-teams-of-the-whole-company-production-harbor-harbor";
        let site = Site::new("chartmuseum", long, "default");
        assert_eq!(site.name(), "the-registry-of-all-teams-of-the-whole-company-produ-e78f1a2f81");
        assert_eq!(site.name().len(), 63);
        assert_eq!(site.selector()["chartmuseum.goharbor.io/name"], site.name());
        assert_ne!(site.name(), child_name(long, "core"));
    }
}
