//! The components of Harbor: one file for each, from its spec to its objects.

pub(crate) mod chartmuseum;
pub(crate) mod chartmuseum_storage;
pub(crate) mod core_pods;
pub(crate) mod exporter;
pub(crate) mod jobservice;
pub(crate) mod notaryserver;
pub(crate) mod notarysigner;
pub(crate) mod portal;
pub mod registry;
mod registry_config;
pub(crate) mod registry_storage;
pub(crate) mod registryctl;
pub(crate) mod trivy;

use std::sync::Arc;

use windlass::Blueprint;
use windlass_operator::Operator;

use crate::api::children::Parent as _;
use crate::api::names::annotation;
use crate::api::{
    ChartMuseum, Core, Exporter, JobService, NotaryServer, NotarySigner, Portal, Registry,
    RegistryController, Trivy,
};
use crate::settings::HarborSettings;
use crate::workload::{ComponentBlueprint, Deployed};

/// Adds the controllers of all components that are not disabled.
pub(crate) fn with_components(operator: Operator, settings: &HarborSettings) -> Operator {
    let settings = &Arc::new(settings.clone());
    let operator = with::<Portal>(operator, settings);
    let operator = with::<Registry>(operator, settings);
    let operator = if settings.runs(RegistryController::CONTROLLER) {
        with_blueprint(operator, registryctl::RegistryControllerBlueprint, settings)
    } else {
        operator
    };
    let operator = with::<Core>(operator, settings);
    let operator = with::<JobService>(operator, settings);
    let operator = with::<Trivy>(operator, settings);
    let operator = with::<Exporter>(operator, settings);
    let operator = with::<ChartMuseum>(operator, settings);
    let operator = with::<NotaryServer>(operator, settings);
    with::<NotarySigner>(operator, settings)
}

fn with<C: Deployed>(operator: Operator, settings: &Arc<HarborSettings>) -> Operator {
    if settings.runs(C::CONTROLLER) {
        with_blueprint(operator, ComponentBlueprint::<C>::new(Arc::clone(settings)), settings)
    } else {
        operator
    }
}

/// Adds the controller of a blueprint for the operator's class of objects.
pub(crate) fn with_blueprint<B: Blueprint + Clone>(
    operator: Operator,
    blueprint: B,
    settings: &Arc<HarborSettings>,
) -> Operator {
    let class = settings.class.clone();
    operator.blueprint_with(blueprint, move |controller| {
        let controller = controller.class_annotation(annotation::CLASS);
        match &class {
            Some(class) => controller.class(class),
            None => controller,
        }
    })
}
