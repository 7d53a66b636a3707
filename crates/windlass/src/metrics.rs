//! What is counted, per kind of node.

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

/// What became of a visit to a node.
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

/// What blueprints of a process count: `windlass_node_total` by controller, kind and result, `windlass_node_seconds`, and
/// `windlass_node_fights_total`. Made once, shared by all of them.
#[derive(Clone, Debug)]
pub struct PlanMetrics {
    results: Family<ResultLabels, Counter>,
    seconds: Family<NodeLabels, Histogram, fn() -> Histogram>,
    fights: Family<NodeLabels, Counter>,
}

impl PlanMetrics {
    /// Counts that nobody sees.
    pub fn hidden() -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.000_1, 4.0, 10));
        Self {
            results: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            fights: Family::default(),
        }
    }

    /// Counts that a process shows. Call it once for each registry.
    pub fn shown_in(metrics: &Metrics) -> Self {
        let own = Self::hidden();
        metrics.with_registry(|registry| {
            registry.register(
                "windlass_node",
                "Visits to nodes of plans, by what became of them",
                own.results.clone(),
            );
            registry.register("windlass_node_seconds", "How long visits to nodes took", own.seconds.clone());
            registry.register(
                "windlass_node_fights",
                "How often an object was written so often that somebody must be writing against us",
                own.fights.clone(),
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

    pub(crate) fn fought(&self, controller: &str, kind: &str) {
        self.fights.get_or_create(&node(controller, kind)).inc();
    }
}

fn node(controller: &str, kind: &str) -> NodeLabels {
    NodeLabels { controller: controller.into(), kind: kind.into() }
}
