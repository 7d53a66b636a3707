//! Runs Harbor on Kubernetes.
//!
//! Read [`api`] first (what a user writes), then [`catalogue`] (what each release of Harbor is made of) and [`config`] (the files it
//! reads), then [`components`]: one file each, from a spec to what runs. [`workload`] is what these share. This file puts them together.

pub mod api;
pub mod catalogue;
pub mod components;
pub mod config;
pub mod harbor;
mod wiring;
pub mod workload;

use windlass_operator::Operator;

use crate::workload::Defaults;

/// The operator: all kinds, and the controllers of the components.
pub fn operator() -> Operator {
    operator_with(&Defaults::default())
}

/// The same, with other defaults.
pub fn operator_with(defaults: &Defaults) -> Operator {
    let operator = Operator::new("harbor-operator")
        .about("Runs Harbor: registries, and all that belongs to them")
        .version(env!("CARGO_PKG_VERSION"));
    components::with_components(with_kinds(operator), defaults)
}

fn with_kinds(operator: Operator) -> Operator {
    api::definitions().into_iter().fold(operator, Operator::definition)
}
