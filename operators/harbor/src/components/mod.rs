//! The components of Harbor: one file each, from its spec to its parts.

pub mod chartmuseum;
mod chartmuseum_storage;
pub mod core;
pub mod exporter;
pub mod jobservice;
pub mod notaryserver;
pub mod notarysigner;
pub mod portal;
pub mod registry;
mod registry_config;
mod registry_storage;
pub mod registryctl;
pub mod trivy;

use windlass_operator::Operator;

use crate::workload::Defaults;

/// Adds the controllers of all components to an operator.
pub fn with_components(operator: Operator, defaults: &Defaults) -> Operator {
    operator
        .blueprint(portal::PortalBlueprint::new(defaults.clone()))
        .blueprint(registry::RegistryBlueprint::new(defaults.clone()))
        .blueprint(registryctl::RegistryControllerBlueprint)
        .blueprint(core::CoreBlueprint::new(defaults.clone()))
        .blueprint(jobservice::JobServiceBlueprint::new(defaults.clone()))
        .blueprint(trivy::TrivyBlueprint::new(defaults.clone()))
        .blueprint(exporter::ExporterBlueprint::new(defaults.clone()))
        .blueprint(chartmuseum::ChartMuseumBlueprint::new(defaults.clone()))
        .blueprint(notaryserver::NotaryServerBlueprint::new(defaults.clone()))
        .blueprint(notarysigner::NotarySignerBlueprint::new(defaults.clone()))
}
