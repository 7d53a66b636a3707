//! The operator of the 2048 game: every Game has a Deployment, a Service and an Ingress.
//!
//! Read [`api`] first (the kind), then [`blueprint`] (the objects that a Game consists of): a new operator is
//! little more than these two files. [`webhooks`] and [`metrics`] are optional. This file puts them together.

pub mod api;
pub mod blueprint;
pub mod metrics;
pub mod webhooks;

use windlass_operator::{BoxError, Operator, Setup};

use crate::blueprint::GameBlueprint;
use crate::webhooks::{Defaults, Rules};

/// The operator: one kind, its blueprint, two webhooks and a metric.
pub fn operator() -> Operator {
    Operator::new("mygame")
        .about("Serves every Game: a Deployment, a Service and an Ingress")
        .version(env!("CARGO_PKG_VERSION"))
        .definition(api::definition)
        .blueprint(GameBlueprint)
        .part(webhooks_and_metrics)
}

fn webhooks_and_metrics(setup: &mut Setup<'_>) -> Result<(), BoxError> {
    setup.defaulter(Defaults)?.name("mgame.kb.io");
    setup.validator(Rules)?.name("vgame.kb.io");
    let games = setup.cache().reader(&setup.scope());
    setup.metrics().register(metrics::Games(games));
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn descriptions_and_flags_can_be_understood_alone() {
        windlass_operator::check_wording(&super::operator()).unwrap();
    }
}
