//! Metrics of the nodes of a plan, by kind of node.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use windlass_runtime::metrics::Metrics;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct NodeLabels {
    controller: String,
    kind: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabels {
    controller: String,
    kind: String,
    result: &'static str,
}

/// The result of a visit to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeResult {
    Created,
    Applied,
    Unchanged,
    Deleted,
    Waiting,
    Failed,
}

impl NodeResult {
    fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Applied => "applied",
            Self::Unchanged => "unchanged",
            Self::Deleted => "deleted",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
        }
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct DecisionLabels {
    controller: String,
    actor: &'static str,
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RuleLabels {
    controller: String,
    rule: &'static str,
}

/// The metrics of all blueprints of a process: `windlass_node_total` by controller, kind and result,
/// `windlass_node_seconds`, `windlass_node_fights_total`; for directors `windlass_decisions_total` by actor
/// and state, and `windlass_held_total` by rule. Created once and shared by all blueprints.
#[derive(Clone, Debug)]
pub struct PlanMetrics {
    results: Family<ResultLabels, Counter>,
    seconds: Family<NodeLabels, Histogram, fn() -> Histogram>,
    fights: Family<NodeLabels, Counter>,
    decisions: Family<DecisionLabels, Counter>,
    rules: Family<RuleLabels, Counter>,
}

impl PlanMetrics {
    /// Returns metrics that are not served.
    pub fn hidden() -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.000_1, 4.0, 10));
        Self {
            results: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            fights: Family::default(),
            decisions: Family::default(),
            rules: Family::default(),
        }
    }

    /// Registers the metrics of a process. Call it once for each registry.
    pub fn shown_in(metrics: &Metrics) -> Self {
        let own = Self::hidden();
        metrics.with_registry(|registry| {
            registry.register("windlass_node", "Visits to nodes of plans, by result", own.results.clone());
            registry.register("windlass_node_seconds", "Duration of visits to nodes", own.seconds.clone());
            registry.register(
                "windlass_node_fights",
                "Objects that were written so often that another writer must be changing them",
                own.fights.clone(),
            );
            registry.register("windlass_decisions", "Decisions of actors, by state", own.decisions.clone());
            registry.register(
                "windlass_held",
                "Subjects that a rule of an actor held back, counted in each pass",
                own.rules.clone(),
            );
        });
        own
    }

    pub(crate) fn visited(&self, controller: &str, kind: &str, result: NodeResult, took: Duration) {
        let labels =
            ResultLabels { controller: controller.into(), kind: kind.into(), result: result.as_str() };
        self.results.get_or_create(&labels).inc();
        self.seconds.get_or_create(&node(controller, kind)).observe(took.as_secs_f64());
    }

    pub(crate) fn decided(&self, controller: &str, actor: &'static str, state: &'static str) {
        self.decisions.get_or_create(&DecisionLabels { controller: controller.into(), actor, state }).inc();
    }

    pub(crate) fn held(&self, controller: &str, rule: &'static str) {
        self.rules.get_or_create(&RuleLabels { controller: controller.into(), rule }).inc();
    }

    pub(crate) fn fought(&self, controller: &str, kind: &str) {
        self.fights.get_or_create(&node(controller, kind)).inc();
    }
}

fn node(controller: &str, kind: &str) -> NodeLabels {
    NodeLabels { controller: controller.into(), kind: kind.into() }
}
