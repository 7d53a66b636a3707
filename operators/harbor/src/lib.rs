//! Runs Harbor on Kubernetes.
//!
//! Read [`api`] first (the custom resources), then [`catalogue`] (the releases of Harbor) and [`config`] (the
//! files that its components read), then [`components`] (one file each, from a spec to its pods), [`harbor`]
//! (a whole Harbor) and [`cluster`] (a Harbor with database, cache and storage). [`workload`] is shared by
//! all components, [`schema`] reads the migration state of a database, [`versions`] checks versions at
//! admission, and [`settings`] configures all of it. This file puts them together.

// Contributors read these pages with `--document-private-items`.
#![allow(rustdoc::private_intra_doc_links)]

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

/// Returns the operator with its default settings: all kinds, their conversion and validation, and all
/// controllers.
pub fn operator() -> Operator {
    operator_with(&HarborSettings::default())
}

/// Returns the operator with these settings.
pub fn operator_with(settings: &HarborSettings) -> Operator {
    let operator = Operator::new("harbor-operator")
        .about("Runs Harbor container registries and their components")
        .version(env!("CARGO_PKG_VERSION"));
    let operator = match settings.workers {
        Some(workers) => operator.workers(workers),
        None => operator,
    };
    let (unjudged, ignored) = (settings.unjudged.clone(), settings.ignored.clone());
    // Conversion goes with the definitions: without it, the API server would drop fields that the other
    // version does not have.
    let operator = operator
        .define(api::definitions)
        .settings(settings::keys::keys())
        .part(move |_| {
            for key in &ignored {
                tracing::warn!(key, "this setting no longer has an effect: remove it");
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
