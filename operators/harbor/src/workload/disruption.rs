//! That not all pods of a component are evicted at once.

use std::collections::BTreeMap;

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::ObjectMeta;

use super::Site;

/// Lets one pod at a time be evicted. Only where there are several: of a single one, a node could never be drained.
pub fn budget(site: &Site) -> PodDisruptionBudget {
    budget_of(site.metadata(site.name()), site.selector())
}

/// The same, for pods that are selected so.
pub fn budget_of(metadata: ObjectMeta, selector: BTreeMap<String, String>) -> PodDisruptionBudget {
    let spec = PodDisruptionBudgetSpec {
        max_unavailable: Some(IntOrString::Int(1)),
        selector: Some(LabelSelector { match_labels: Some(selector), match_expressions: None }),
        ..PodDisruptionBudgetSpec::default()
    };
    PodDisruptionBudget { metadata, spec: Some(spec), status: None }
}
