//! The Deployment of a component.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::ObjectMeta;
use windlass::PlanError;

use crate::api::component::ComponentSpec;

use super::{Pod, Site};

/// The update strategy of a Deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// Rolling update: new pods are started first.
    #[default]
    Rolling,
    /// Recreate: old pods are deleted first, because both cannot mount the volumes at the same time.
    Recreate,
}

impl Strategy {
    /// Returns the strategy of the spec, or Recreate if a claim can be mounted by one node only: a new pod
    /// would wait forever for the old one to stop.
    pub(crate) fn chosen(field: &str, asked: &str, exclusive: bool) -> Result<Self, PlanError> {
        match asked {
            "RollingUpdate" | "" if !exclusive => Ok(Self::Rolling),
            "RollingUpdate" | "Recreate" | "" => Ok(Self::Recreate),
            other => Err(PlanError::new(format!(
                "{field}: {other:?} is not a strategy: write RollingUpdate or Recreate"
            ))),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Rolling => "RollingUpdate",
            Self::Recreate => "Recreate",
        }
    }
}

/// Returns the Deployment of a component. The pod template contains nothing that depends on the version of
/// the operator.
pub(crate) fn deployment(
    site: &Site,
    component: &ComponentSpec,
    pod: Pod,
    strategy: Strategy,
) -> Result<Deployment, PlanError> {
    let strategy = DeploymentStrategy { type_: Some(strategy.as_str().to_owned()), rolling_update: None };
    let spec =
        DeploymentSpec { strategy: Some(strategy), ..deployment_spec(site.selector(), component, pod)? };
    Ok(Deployment { metadata: site.metadata(site.name()), spec: Some(spec), status: None })
}

/// Returns the spec of a Deployment whose pods have this selector.
pub(crate) fn deployment_spec(
    selector: BTreeMap<String, String>,
    component: &ComponentSpec,
    pod: Pod,
) -> Result<DeploymentSpec, PlanError> {
    let mut labels = component.template_labels.clone();
    labels.extend(selector.clone());
    let metadata = ObjectMeta {
        labels: Some(labels),
        annotations: Some(component.template_annotations.clone()).filter(|all| !all.is_empty()),
        ..ObjectMeta::default()
    };
    Ok(DeploymentSpec {
        replicas: Some(component.replicas()),
        selector: LabelSelector { match_labels: Some(selector), match_expressions: None },
        template: PodTemplateSpec { metadata: Some(metadata), spec: Some(pod.spec(component)?) },
        ..DeploymentSpec::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exclusive_volume_forces_the_recreate_strategy() {
        let chosen = |asked, exclusive| Strategy::chosen("spec.updateStrategyType", asked, exclusive).ok();
        assert_eq!(chosen("RollingUpdate", false), Some(Strategy::Rolling));
        assert_eq!(chosen("RollingUpdate", true), Some(Strategy::Recreate));
        assert_eq!(chosen("Recreate", false), Some(Strategy::Recreate));
        assert_eq!(chosen("Sometimes", false), None);
    }
}
