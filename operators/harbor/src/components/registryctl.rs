//! RegistryController. It has no pods of its own: the [registry](super::registry) runs it, with its Service
//! and its configuration. This file computes its status.

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

/// Annotation on the registry's Deployment: the [`revision`] of the controller that its pods run.
pub(super) const REVISION: &str = "registryctl.goharbor.io/revision";

/// Returns a digest of everything that configures a controller: its spec and its version of Harbor.
pub(super) fn revision(controller: &RegistryController) -> String {
    let generation = controller.metadata.generation.unwrap_or_default();
    match controller.annotations().get(VERSION) {
        Some(version) => format!("{generation}-{version}"),
        None => generation.to_string(),
    }
}

/// The blueprint of a RegistryController: it is ready when the registry's pods run it with its current spec.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegistryControllerBlueprint;

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
                "spec.registryRef: {registry:?} differs from the name of this object, {name:?}, and a Registry runs only \
                 the controller of its own name: give both the same name"
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
            _ => format!("Registry {registry} does not run the current spec yet"),
        };
        plan.pending::<Deployment>(format!("{workload} (of Registry {registry})"), why);
        Ok(())
    }
}

fn workload(owner: &RegistryController) -> String {
    child_of::<Registry>(&owner.spec.registry_ref, &[])
}
