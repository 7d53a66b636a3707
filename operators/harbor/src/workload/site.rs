//! What the children of a component are called, and how they are found.
//!
//! All of it is API: pods that run are selected by it, and other components reach them by it.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use kube::api::ObjectMeta;

use crate::api::children::Parent;
use crate::api::names::{annotation, label};

/// Where the children of one component are.
#[derive(Clone, Debug)]
pub struct Site {
    controller: &'static str,
    component: String,
    namespace: String,
    name: String,
    ingress: String,
    egress: String,
    selector: BTreeMap<String, String>,
}

impl Site {
    /// Of a component.
    pub fn of<C: Parent>(component: &C) -> Self {
        Self {
            controller: C::CONTROLLER,
            component: component.name_any(),
            namespace: component.namespace().unwrap_or_default(),
            name: component.child(&[]),
            ingress: component.child(&["ingress"]),
            egress: component.child(&["egress"]),
            selector: component.selector().into(),
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

    /// The name of the policy of who may come.
    pub fn ingress(&self) -> &str {
        &self.ingress
    }

    /// The name of the policy of where its pods may go.
    pub fn egress(&self) -> &str {
        &self.egress
    }

    /// The labels by which its pods are selected. They can never be changed.
    pub fn selector(&self) -> BTreeMap<String, String> {
        self.selector.clone()
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
    use crate::api::{ChartMuseum, Portal};
    use serde_json::json;

    #[test]
    fn children_are_named_and_found_as_ever() {
        let portal = json!({"metadata": {"name": "sample-harbor", "namespace": "registry"}, "spec": {}});
        let site = Site::of(&serde_json::from_value::<Portal>(portal).unwrap());
        assert_eq!((site.name(), site.ingress()), ("sample-harbor-portal", "sample-harbor-portal-ingress"));
        let selector: Vec<_> = site.selector().into_iter().collect();
        let expected = [
            ("portal.goharbor.io/name", "sample-harbor-portal"),
            ("portal.goharbor.io/namespace", "registry"),
        ];
        assert_eq!(selector, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn b16_a_long_name_is_shortened_and_stays_the_same_for_ever() {
        let long = "the-registry-of-all-teams-of-the-whole-company-production-harbor-harbor";
        let charts = json!({"metadata": {"name": long}, "spec": {"chart": {"storage": {}}}});
        let site = Site::of(&serde_json::from_value::<ChartMuseum>(charts).unwrap());
        assert_eq!(site.name(), "the-registry-of-all-teams-of-the-whole-company-produ-2c79731644");
        assert_eq!(site.name().len(), 63);
        assert_eq!(site.selector()["chartmuseum.goharbor.io/name"], site.name());
    }
}
