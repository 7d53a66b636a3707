//! Runs Harbor on Kubernetes.
//!
//! Read [`api`] first (what a user writes), then [`catalogue`] (what each release of Harbor is made of) and [`config`] (the files it
//! reads), then [`components`]: one file each, from a spec to what runs. [`workload`] is what these share, [`settings`] how all of it
//! is configured. This file puts them together.

pub mod api;
pub mod catalogue;
pub mod components;
pub mod config;
pub mod harbor;
pub mod settings;
mod wiring;
pub mod workload;

use windlass_operator::Operator;

use crate::settings::HarborSettings;

/// The operator: all kinds, and the controllers of the components.
pub fn operator() -> Operator {
    operator_with(&HarborSettings::default())
}

/// The same, configured.
pub fn operator_with(settings: &HarborSettings) -> Operator {
    let operator = Operator::new("harbor-operator")
        .about("Runs Harbor: registries, and all that belongs to them")
        .version(env!("CARGO_PKG_VERSION"));
    components::with_components(with_kinds(operator), settings)
}

fn with_kinds(operator: Operator) -> Operator {
    api::definitions().into_iter().fold(operator, Operator::definition)
}
