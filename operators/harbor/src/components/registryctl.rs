//! The registry's controller. It has no pods of its own: the [registry](super::registry) runs it, with its Service and its
//! configuration. Here is only said whether it does.

use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt as _;
use serde_json::Value;
use windlass::readiness::{Readiness, deployment};
use windlass::{Blueprint, Controls, Kinds, Needs, Plan, PlanError, PlanState, Takeover};

use crate::api::children::{Parent as _, child_of};
use crate::api::names::annotation::VERSION;
use crate::api::{Registry, RegistryController};
use crate::takeover;
use crate::workload::{Deployed as _, status};

/// On the registry's Deployment: the [`revision`] of the controller that its pods run.
pub(super) const REVISION: &str = "registryctl.goharbor.io/revision";

/// Changes with all that is said of a controller: its spec, and the version of Harbor that it is of.
pub(super) fn revision(controller: &RegistryController) -> String {
    let generation = controller.metadata.generation.unwrap_or_default();
    match controller.annotations().get(VERSION) {
        Some(version) => format!("{generation}-{version}"),
        None => generation.to_string(),
    }
}

/// Ready when the registry's pods run the controller as its spec has it.
#[derive(Clone, Copy, Debug)]
pub struct RegistryControllerBlueprint;

impl Controls for RegistryControllerBlueprint {
    type Owner = RegistryController;
    const NAME: &'static str = "registryctl.goharbor.io";

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.looks_at_made_by::<Deployment>(Registry::BLUEPRINT);
    }

    fn status(&self, _: &RegistryController, seen: &PlanState<'_>) -> Option<Value> {
        Some(status(RegistryController::CONTROLLER, seen, None))
    }

    fn takeover(&self) -> Takeover<RegistryController> {
        takeover::from_upstream()
    }
}

impl Blueprint for RegistryControllerBlueprint {
    fn draw(
        &self,
        owner: &RegistryController,
        needs: &mut Needs<'_>,
        plan: &mut Plan,
    ) -> Result<(), PlanError> {
        let (name, registry) = (owner.name_any(), &owner.spec.registry_ref);
        if name != *registry {
            return Err(PlanError::new(format!(
                "spec.registryRef: {registry:?} is another name than this object's, {name:?}, and a Registry runs the \
                 controller of its own name only: give both one name"
            )));
        }
        let workload = workload(owner);
        let deployed = needs.object::<Deployment>(&workload);
        let Some(found) = deployed.get() else { return Ok(()) };
        let runs = found.annotations().get(REVISION).is_some_and(|runs| *runs == revision(owner));
        let rolled = deployed.live(deployment);
        let why = match (runs, rolled) {
            (true, Some(Readiness::Ready)) => return Ok(()),
            (true, Some(Readiness::Waiting(why) | Readiness::Failed(why))) => why,
            _ => format!("Registry {registry} does not run this spec yet"),
        };
        plan.pending::<Deployment>(format!("{workload} (of Registry {registry})"), why);
        Ok(())
    }
}

fn workload(owner: &RegistryController) -> String {
    child_of::<Registry>(&owner.spec.registry_ref, &[])
}
