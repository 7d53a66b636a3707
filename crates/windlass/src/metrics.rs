//! Metrics of the nodes of a plan, by kind of node; and of the conditions of owners, by owner.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use windlass_runtime::key::ObjectKey;
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

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ConditionLabels {
    controller: &'static str,
    namespace: String,
    name: String,
    condition: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ControllerLabels {
    controller: &'static str,
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

/// The metrics of all blueprints of a process: `windlass_node_total` by controller, kind and result,
/// `windlass_node_seconds`, and `windlass_node_fights_total`; and `windlass_owner_condition` by owner, up to
/// a [limit](Self::owner_limit). Created once and shared by all blueprints.
#[derive(Clone, Debug)]
pub struct PlanMetrics {
    owners: OwnerGauges,
    results: Family<ResultLabels, Counter>,
    seconds: Family<NodeLabels, Histogram, fn() -> Histogram>,
    fights: Family<NodeLabels, Counter>,
}

impl PlanMetrics {
    /// The default of [`owner_limit`](Self::owner_limit).
    pub const OWNERS: usize = 1000;

    /// Returns metrics that are not served.
    pub fn hidden() -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.000_1, 4.0, 10));
        Self {
            owners: OwnerGauges::new(Self::OWNERS),
            results: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            fights: Family::default(),
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
            registry.register(
                "windlass_owner_condition",
                "Conditions of owners: 1 if the condition is true, else 0; up to --metrics-owner-limit owners",
                own.owners.conditions.clone(),
            );
            registry.register(
                "windlass_owners_without_metrics",
                "Owners that windlass_owner_condition leaves out, because its limit is reached",
                own.owners.left_out.clone(),
            );
        });
        own
    }

    /// Sets the number of owners that have a series each in `windlass_owner_condition`. Default: 1000. With
    /// 0, no owner has one. `windlass_owners_without_metrics` counts the owners that are left out.
    #[must_use]
    pub fn owner_limit(self, limit: usize) -> Self {
        self.owners.all.lock().limit = limit;
        self
    }

    /// Shows the conditions of an owner.
    pub(crate) fn owner_is(&self, controller: &'static str, owner: &ObjectKey, conditions: OwnerConditions) {
        self.owners.show(controller, owner, conditions);
    }

    /// Removes an owner that is gone, or that another instance is responsible for.
    pub(crate) fn owner_gone(&self, controller: &'static str, owner: &ObjectKey) {
        self.owners.remove(controller, owner);
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

/// The conditions of an owner that alerts need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnerConditions {
    pub(crate) ready: bool,
    pub(crate) failed: bool,
    pub(crate) paused: bool,
}

/// The conditions of owners, one series for each condition of each owner.
#[derive(Clone, Debug)]
struct OwnerGauges {
    conditions: Family<ConditionLabels, Gauge>,
    left_out: Family<ControllerLabels, Gauge>,
    all: Arc<Mutex<ShownOwners>>,
}

/// The owners that have series, and those that are left out.
#[derive(Debug)]
struct ShownOwners {
    limit: usize,
    shown: BTreeSet<(&'static str, ObjectKey)>,
    left_out: BTreeMap<&'static str, BTreeSet<ObjectKey>>,
}

impl OwnerGauges {
    fn new(limit: usize) -> Self {
        let all = ShownOwners { limit, shown: BTreeSet::new(), left_out: BTreeMap::new() };
        Self { conditions: Family::default(), left_out: Family::default(), all: Arc::new(Mutex::new(all)) }
    }

    fn show(&self, controller: &'static str, owner: &ObjectKey, conditions: OwnerConditions) {
        // The lock is held while the series are written: they agree with the sets.
        let mut all = self.all.lock();
        if all.limit == 0 {
            return;
        }
        let entry = (controller, owner.clone());
        if !all.shown.contains(&entry) {
            let left_out = all.shown.len() >= all.limit;
            self.leave_out(&mut all, controller, owner, left_out);
            if left_out {
                return;
            }
            all.shown.insert(entry);
        }
        for (labels, truth) in series(controller, owner, conditions) {
            self.conditions.get_or_create(&labels).set(i64::from(truth));
        }
    }

    fn remove(&self, controller: &'static str, owner: &ObjectKey) {
        let mut all = self.all.lock();
        self.leave_out(&mut all, controller, owner, false);
        if all.shown.remove(&(controller, owner.clone())) {
            let none = OwnerConditions { ready: false, failed: false, paused: false };
            for (labels, _) in series(controller, owner, none) {
                self.conditions.remove(&labels);
            }
        }
    }

    /// Adds an owner to those that are left out, or removes it from them, and counts them if that changed.
    fn leave_out(
        &self,
        all: &mut ShownOwners,
        controller: &'static str,
        owner: &ObjectKey,
        is_left_out: bool,
    ) {
        let left_out = all.left_out.entry(controller).or_default();
        let changed = if is_left_out { left_out.insert(owner.clone()) } else { left_out.remove(owner) };
        if changed {
            let count = i64::try_from(left_out.len()).unwrap_or(i64::MAX);
            self.left_out.get_or_create(&ControllerLabels { controller }).set(count);
        }
    }
}

fn series(
    controller: &'static str,
    owner: &ObjectKey,
    conditions: OwnerConditions,
) -> [(ConditionLabels, bool); 3] {
    let OwnerConditions { ready, failed, paused } = conditions;
    [("Ready", ready), ("Failed", failed), ("Paused", paused)].map(|(condition, truth)| {
        let (namespace, name) = (owner.namespace().unwrap_or_default().into(), owner.name().into());
        (ConditionLabels { controller, namespace, name, condition }, truth)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: OwnerConditions = OwnerConditions { ready: true, failed: false, paused: false };

    fn lines(metrics: &Metrics, start: &str) -> Vec<String> {
        let text = metrics.encode();
        let mut lines: Vec<String> = text
            .lines()
            .filter_map(|line| line.strip_prefix(start)?.strip_prefix('{'))
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    }

    #[test]
    fn seam_m14_owners_have_series_up_to_the_limit_and_the_rest_is_counted() {
        let metrics = Metrics::new();
        let plans = PlanMetrics::shown_in(&metrics).owner_limit(1);
        let owner = |name: &str| ObjectKey::namespaced("shop", name);
        let conditions = || lines(&metrics, "windlass_owner_condition");
        let left_out = || lines(&metrics, "windlass_owners_without_metrics");
        plans.owner_is("games", &owner("a"), READY);
        plans.owner_is("games", &owner("b"), READY);
        plans.owner_is("games", &owner("b"), READY);
        let of = |name: &str, condition: &str, value: u8| {
            format!(
                "controller=\"games\",namespace=\"shop\",name=\"{name}\",condition=\"{condition}\"}} {value}"
            )
        };
        let a = [of("a", "Failed", 0), of("a", "Paused", 0), of("a", "Ready", 1)];
        assert_eq!(conditions(), a);
        assert_eq!(left_out(), ["controller=\"games\"} 1"]);

        // The place of an owner that is gone is taken by the next one that is reconciled.
        plans.owner_gone("games", &owner("a"));
        assert_eq!(conditions(), [""; 0]);
        plans.owner_is("games", &owner("b"), OwnerConditions { ready: false, failed: true, paused: true });
        let b = [of("b", "Failed", 1), of("b", "Paused", 1), of("b", "Ready", 0)];
        assert_eq!(conditions(), b);
        assert_eq!(left_out(), ["controller=\"games\"} 0"]);
    }

    #[test]
    fn seam_m14_no_owner_has_series_if_the_limit_is_zero() {
        let metrics = Metrics::new();
        let plans = PlanMetrics::shown_in(&metrics).owner_limit(0);
        plans.owner_is("games", &ObjectKey::cluster("a"), READY);
        assert_eq!(lines(&metrics, "windlass_owner_condition"), [""; 0]);
        assert_eq!(lines(&metrics, "windlass_owners_without_metrics"), [""; 0]);
    }
}
