//! Metrics of controllers.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Bucket bounds of the reconcile time in seconds, as dashboards expect them.
const SECONDS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByController {
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    controller: String,
    result: &'static str,
}

type HistogramFamily = Family<ByController, Histogram, fn() -> Histogram>;

#[derive(Clone)]
pub(super) struct ControllerFamilies {
    total: Family<ByResult, Counter>,
    errors: Family<ByController, Counter>,
    terminal: Family<ByController, Counter>,
    panics: Family<ByController, Counter>,
    timeouts: Family<ByController, Counter>,
    time: HistogramFamily,
    max_concurrent: Family<ByController, Gauge>,
    active: Family<ByController, Gauge>,
}

impl ControllerFamilies {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let families = Self {
            total: Family::default(),
            errors: Family::default(),
            terminal: Family::default(),
            panics: Family::default(),
            timeouts: Family::default(),
            time: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            max_concurrent: Family::default(),
            active: Family::default(),
        };
        let name = |suffix: &str| format!("controller_runtime_{suffix}");
        registry.register(name("reconcile"), "Reconciles by result", families.total.clone());
        registry.register(name("reconcile_errors"), "Reconciles that failed", families.errors.clone());
        registry.register(
            name("terminal_reconcile_errors"),
            "Reconciles that failed and are not retried before something changes",
            families.terminal.clone(),
        );
        registry.register(name("reconcile_panics"), "Reconciles that panicked", families.panics.clone());
        registry.register(
            name("reconcile_timeouts"),
            "Reconciles that exceeded the controller's deadline",
            families.timeouts.clone(),
        );
        registry.register(name("reconcile_time_seconds"), "Duration of reconciles", families.time.clone());
        registry.register(
            name("max_concurrent_reconciles"),
            "Number of workers of the controller",
            families.max_concurrent.clone(),
        );
        registry.register(name("active_workers"), "Number of busy workers", families.active.clone());
        families
    }

    pub(super) fn of(&self, controller: &str, workers: usize) -> ControllerMetrics {
        let labels = ByController { controller: controller.to_owned() };
        let total =
            |result| self.total.get_or_create_owned(&ByResult { controller: controller.to_owned(), result });
        let workers = i64::try_from(workers).unwrap_or(i64::MAX);
        self.max_concurrent.get_or_create_owned(&labels).set(workers);
        ControllerMetrics {
            success: total("success"),
            error: total("error"),
            requeue: total("requeue"),
            requeue_after: total("requeue_after"),
            errors: self.errors.get_or_create_owned(&labels),
            terminal: self.terminal.get_or_create_owned(&labels),
            panics: self.panics.get_or_create_owned(&labels),
            timeouts: self.timeouts.get_or_create_owned(&labels),
            time: self.time.get_or_create_owned(&labels),
            active: self.active.get_or_create_owned(&labels),
        }
    }
}

/// The end of a reconcile, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReconcileResult {
    Success,
    RequeueAfter,
    Requeue,
    Error,
    TerminalError,
    Panic,
    Timeout,
}

/// The metrics of one controller: handles, looked up once.
#[derive(Clone)]
pub struct ControllerMetrics {
    success: Counter,
    error: Counter,
    requeue: Counter,
    requeue_after: Counter,
    errors: Counter,
    terminal: Counter,
    panics: Counter,
    timeouts: Counter,
    time: Histogram,
    active: Gauge,
}

impl fmt::Debug for ControllerMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerMetrics").finish_non_exhaustive()
    }
}

impl ControllerMetrics {
    /// Counts a worker as busy until the returned guard is dropped.
    pub fn begin(&self) -> Active<'_> {
        self.active.inc();
        Active { metrics: self }
    }

    /// Counts a panic outside of a reconcile: in a mapping or a predicate.
    pub(crate) fn panicked(&self) {
        self.panics.inc();
    }
}

/// Guard of a busy worker.
#[derive(Debug)]
#[must_use = "the worker counts as busy until this is dropped"]
pub struct Active<'a> {
    metrics: &'a ControllerMetrics,
}

impl Active<'_> {
    pub(crate) fn end(self, result: ReconcileResult, took: Duration) {
        let metrics = self.metrics;
        metrics.time.observe(took.as_secs_f64());
        match result {
            ReconcileResult::Success => metrics.success.inc(),
            ReconcileResult::RequeueAfter => metrics.requeue_after.inc(),
            ReconcileResult::Requeue => metrics.requeue.inc(),
            ReconcileResult::Error
            | ReconcileResult::TerminalError
            | ReconcileResult::Panic
            | ReconcileResult::Timeout => {
                metrics.errors.inc();
                metrics.error.inc()
            }
        };
        match result {
            ReconcileResult::TerminalError => metrics.terminal.inc(),
            ReconcileResult::Panic => metrics.panics.inc(),
            ReconcileResult::Timeout => metrics.timeouts.inc(),
            _ => 0,
        };
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.metrics.active.dec();
    }
}
