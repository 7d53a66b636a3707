//! Runs Harbor on Kubernetes.
//!
//! Read [`api`] first (what a user writes), then [`catalogue`] (what each release of Harbor is made of) and [`config`] (the files it
//! reads), then [`components`]: one file each, from a spec to what runs, [`harbor`], which makes a Harbor of them, and [`cluster`], which gives it what it needs. [`workload`] is what
//! components share, [`schema`] reads how far a database is migrated, [`versions`] judges versions at admission, [`settings`] is how all of it is configured. This file puts them together.

pub mod api;
pub mod catalogue;
pub mod cluster;
pub mod components;
pub mod config;
pub mod harbor;
pub mod schema;
pub mod settings;
pub mod takeover;
pub mod versions;
mod wiring;
pub mod workload;

use std::sync::Arc;

use windlass_operator::Operator;

use crate::api::children::Parent as _;
use crate::api::{Harbor, conversion, validation};
use crate::cluster::HarborClusterBlueprint;
use crate::harbor::HarborBlueprint;
use crate::settings::HarborSettings;
use crate::versions::ByCatalogue;

/// The operator: all kinds, their conversion and validation, and the controllers of Harbor and of its components.
pub fn operator() -> Operator {
    operator_with(&HarborSettings::default())
}

/// The same, configured.
pub fn operator_with(settings: &HarborSettings) -> Operator {
    let operator = Operator::new("harbor-operator")
        .about("Runs Harbor container registries and their components")
        .version(env!("CARGO_PKG_VERSION"));
    let operator = match settings.workers {
        Some(workers) => operator.workers(workers),
        None => operator,
    };
    let (unjudged, ignored) = (settings.unjudged.clone(), settings.ignored.clone());
    // Conversion goes with the definitions: without it, the API server would drop what the other version does not know.
    let operator = operator
        .define(api::definitions)
        .settings(settings::keys::keys())
        .part(move |_| {
            for key in &ignored {
                tracing::warn!(key, "this setting has no effect any more: remove it");
            }
            Ok(())
        })
        .part(conversion::converters)
        .part(takeover::webhooks::watchman)
        .part(move |setup| validation::validators(setup, &ByCatalogue, &unjudged));
    with_cluster(with_harbor(components::with_components(operator, settings), settings), settings)
}

fn with_harbor(operator: Operator, settings: &HarborSettings) -> Operator {
    if !settings.runs(Harbor::CONTROLLER) {
        return operator;
    }
    let blueprint = HarborBlueprint::new(settings.clone());
    components::with_blueprint(operator, blueprint, &Arc::new(settings.clone()))
}

fn with_cluster(operator: Operator, settings: &HarborSettings) -> Operator {
    if !settings.runs(HarborClusterBlueprint::CONTROLLER) {
        return operator;
    }
    let blueprint = HarborClusterBlueprint::new(settings.clone());
    components::with_blueprint(operator, blueprint, &Arc::new(settings.clone()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn descriptions_and_flags_can_be_understood_alone() {
        windlass_operator::check_wording(&super::operator()).unwrap();
    }
}
