//! The PodDisruptionBudget of a component.

use std::collections::BTreeMap;

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::ObjectMeta;

use super::Site;

/// Returns a budget that allows the eviction of one pod at a time. Only for several replicas: with one
/// replica, a node could never be drained.
pub(crate) fn budget(site: &Site) -> PodDisruptionBudget {
    budget_of(site.metadata(site.name()), site.selector())
}

/// Returns a budget for pods with this selector.
pub(crate) fn budget_of(metadata: ObjectMeta, selector: BTreeMap<String, String>) -> PodDisruptionBudget {
    let spec = PodDisruptionBudgetSpec {
        max_unavailable: Some(IntOrString::Int(1)),
        selector: Some(LabelSelector { match_labels: Some(selector), match_expressions: None }),
        ..PodDisruptionBudgetSpec::default()
    };
    PodDisruptionBudget { metadata, spec: Some(spec), status: None }
}
