//! Names and labels of the children of a component.
//!
//! All of them are API: running pods are selected by them, and other components connect to them by name.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use kube::api::ObjectMeta;

use crate::api::children::Parent;
use crate::api::names::{annotation, label};

/// Names and labels of the children of one component.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    controller: &'static str,
    component: String,
    namespace: String,
    name: String,
    ingress: String,
    egress: String,
    selector: BTreeMap<String, String>,
}

impl Site {
    /// Returns the site of a component.
    pub(crate) fn of<C: Parent>(component: &C) -> Self {
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

    /// Returns the name of the component.
    pub(crate) fn component(&self) -> &str {
        &self.component
    }

    /// Returns the namespace of the component.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the name that the children share.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name of the ingress NetworkPolicy.
    pub(crate) fn ingress(&self) -> &str {
        &self.ingress
    }

    /// Returns the name of the egress NetworkPolicy.
    pub(crate) fn egress(&self) -> &str {
        &self.egress
    }

    /// Returns the labels that select the pods. They are immutable.
    pub(crate) fn selector(&self) -> BTreeMap<String, String> {
        self.selector.clone()
    }

    /// Returns the metadata of a child with this name.
    pub(crate) fn metadata(&self, name: impl Into<String>) -> ObjectMeta {
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
    fn names_and_selectors_of_children_never_change() {
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
