//! The metrics, under the names that controller-runtime gave them, so that dashboards keep working.
//!
//! [`Metrics`] is a registry that one process has once. Controllers and queues enlist themselves; [`encode`](Metrics::encode)
//! writes everything in the OpenMetrics text format, for an admin server to serve. Figures that somebody keeps anyway (a queue's
//! depth, a cache's size) are read at that moment and cost nothing in between.
//!
//! It does not serve anything, and keeps no figures of its own process (memory, CPU).

mod cache;
mod controller;
mod queue;
mod requests;

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::registry::Registry;

use self::cache::CacheCollector;
pub use self::cache::KindFigures;
use self::controller::ControllerFamilies;
pub(crate) use self::controller::ReconcileResult;
pub use self::controller::{Active, ControllerMetrics};
use self::queue::QueueCollector;
use self::requests::RequestCollector;
pub use self::requests::RequestCount;
use crate::queue::Stats;

/// All metrics of a process. Clones are handles of the same registry.
#[derive(Clone)]
pub struct Metrics {
    shared: Arc<Shared>,
}

struct Shared {
    registry: Mutex<Registry>,
    controllers: ControllerFamilies,
    queues: QueueCollector,
    caches: CacheCollector,
    requests: RequestCollector,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// A registry with everything that this crate counts, all zero.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let controllers = ControllerFamilies::register(&mut registry);
        let queues = QueueCollector::default();
        let caches = CacheCollector::default();
        let requests = RequestCollector::default();
        registry.register_collector(Box::new(queues.clone()));
        registry.register_collector(Box::new(caches.clone()));
        registry.register_collector(Box::new(requests.clone()));
        Self {
            shared: Arc::new(Shared {
                registry: Mutex::new(registry),
                controllers,
                queues,
                caches,
                requests,
            }),
        }
    }

    /// The metrics of one controller, all of them visible from now on.
    pub fn controller(&self, name: &str, workers: usize) -> ControllerMetrics {
        self.shared.controllers.of(name, workers)
    }

    /// Shows a queue under this name; `stats` answers `None` once the queue is gone.
    pub fn queue(&self, name: &str, stats: impl Fn() -> Option<Stats> + Send + Sync + 'static) {
        self.shared.queues.enlist(name, Arc::new(stats));
    }

    /// Shows what caches hold, one row per watched kind.
    pub fn cache(&self, figures: impl Fn() -> Vec<KindFigures> + Send + Sync + 'static) {
        self.shared.caches.enlist(Arc::new(figures));
    }

    /// Shows how often a client asked the API server for what.
    pub fn requests(&self, counts: impl Fn() -> Vec<RequestCount> + Send + Sync + 'static) {
        self.shared.requests.enlist(Arc::new(counts));
    }

    /// Adds metrics of your own.
    pub fn register(&self, collector: impl Collector) {
        self.shared
            .registry
            .lock()
            .register_collector(Box::new(collector));
    }

    /// Adds metrics of your own, with the tools of `prometheus-client`.
    ///
    /// A counter's name goes without `_total`: the encoder appends it.
    pub fn with_registry<T>(&self, add: impl FnOnce(&mut Registry) -> T) -> T {
        add(&mut self.shared.registry.lock())
    }

    /// Everything, in the OpenMetrics text format.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        if let Err(error) = prometheus_client::encoding::text::encode(&mut text, &self.shared.registry.lock())
        {
            tracing::error!(%error, "metrics could not be written");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Add, Backoff, Next, Priority, Queue};
    use std::collections::BTreeMap;
    use std::time::Duration;

    /// Samples by name and labels; panics on text that is not what it claims to be.
    fn parse(text: &str) -> BTreeMap<String, f64> {
        assert!(text.ends_with("# EOF\n"));
        let samples = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            (name.to_owned(), value.parse().expect("a number"))
        });
        let samples: Vec<_> = samples.collect();
        let by_name: BTreeMap<_, _> = samples.iter().cloned().collect();
        assert_eq!(by_name.len(), samples.len(), "a sample is there twice: {text}");
        by_name
    }

    #[test]
    fn a_controller_shows_all_its_metrics_before_it_does_anything() {
        let metrics = Metrics::new();
        let _controller = metrics.controller("foo", 3);
        let samples = parse(&metrics.encode());
        for result in ["success", "error", "requeue", "requeue_after"] {
            let name =
                format!("controller_runtime_reconcile_total{{controller=\"foo\",result=\"{result}\"}}");
            assert_eq!(samples[&name], 0.0);
        }
        for name in [
            "controller_runtime_reconcile_errors_total",
            "controller_runtime_terminal_reconcile_errors_total",
            "controller_runtime_reconcile_panics_total",
            "controller_runtime_reconcile_timeouts_total",
            "controller_runtime_reconcile_time_seconds_count",
            "controller_runtime_active_workers",
        ] {
            assert_eq!(samples[&format!("{name}{{controller=\"foo\"}}")], 0.0, "{name}");
        }
        assert_eq!(
            samples["controller_runtime_max_concurrent_reconciles{controller=\"foo\"}"],
            3.0
        );
    }

    #[test]
    fn a_reconcile_is_counted_by_its_result_and_time() {
        let metrics = Metrics::new();
        let controller = metrics.controller("foo", 1);
        let active = controller.begin();
        assert_eq!(
            parse(&metrics.encode())["controller_runtime_active_workers{controller=\"foo\"}"],
            1.0
        );
        active.end(ReconcileResult::Success, Duration::from_millis(7));
        let samples = parse(&metrics.encode());
        assert_eq!(
            samples["controller_runtime_active_workers{controller=\"foo\"}"],
            0.0
        );
        assert_eq!(
            samples["controller_runtime_reconcile_total{controller=\"foo\",result=\"success\"}"],
            1.0
        );
        let bucket = |le: &str| {
            format!("controller_runtime_reconcile_time_seconds_bucket{{le=\"{le}\",controller=\"foo\"}}")
        };
        assert_eq!((samples[&bucket("0.005")], samples[&bucket("0.01")]), (0.0, 1.0));
        assert_eq!(
            samples
                .keys()
                .filter(|name| name.contains("time_seconds_bucket"))
                .count(),
            41
        );
    }

    #[test]
    fn a_worker_that_is_cancelled_is_no_longer_active() {
        let metrics = Metrics::new();
        drop(metrics.controller("foo", 1).begin());
        assert_eq!(
            parse(&metrics.encode())["controller_runtime_active_workers{controller=\"foo\"}"],
            0.0
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_shows_its_depth_by_priority_and_what_passed_through_it() {
        let metrics = Metrics::new();
        let queue: Queue<&str> = Queue::new(Backoff::default());
        let weak = queue.clone();
        metrics.queue("foo", move || Some(weak.stats()));
        queue.add("a", Add::now());
        queue.add("b", Add::now().priority(Priority::LOW));
        queue.add("c", Add::now().priority(Priority::LOW));
        queue
            .get()
            .await
            .expect("open")
            .finish(Next::Retry { at_most: None });
        let samples = parse(&metrics.encode());
        let depth = |priority: i32| {
            samples[&format!("workqueue_depth{{name=\"foo\",controller=\"foo\",priority=\"{priority}\"}}")]
        };
        assert_eq!((depth(0), depth(-100)), (0.0, 2.0));
        let labels = "{name=\"foo\",controller=\"foo\"}";
        assert_eq!(samples[&format!("workqueue_adds_total{labels}")], 3.0);
        assert_eq!(samples[&format!("workqueue_retries_total{labels}")], 1.0);
        assert_eq!(
            samples[&format!("workqueue_queue_duration_seconds_count{labels}")],
            1.0
        );
        assert_eq!(
            samples[&format!("workqueue_work_duration_seconds_count{labels}")],
            1.0
        );
        assert_eq!(
            samples[&format!("workqueue_unfinished_work_seconds{labels}")],
            0.0
        );
        assert_eq!(
            samples[&format!("workqueue_longest_running_processor_seconds{labels}")],
            0.0
        );
    }

    #[tokio::test]
    async fn pq29_more_than_25_priorities_share_a_label() {
        let metrics = Metrics::new();
        let queue: Queue<i32> = Queue::new(Backoff::default());
        for priority in 0..30 {
            queue.add(priority, Add::now().priority(Priority(priority)));
        }
        metrics.queue("foo", move || Some(queue.stats()));
        let samples = parse(&metrics.encode());
        let depths: Vec<_> = samples
            .iter()
            .filter(|(name, _)| name.starts_with("workqueue_depth"))
            .collect();
        assert_eq!(depths.len(), 26);
        let beyond =
            "workqueue_depth{name=\"foo\",controller=\"foo\",priority=\"exceeded_cardinality_limit\"}";
        assert_eq!(samples[beyond], 5.0);
    }

    #[test]
    fn a_queue_that_is_gone_is_no_longer_shown_and_one_of_its_name_replaces_it() {
        let metrics = Metrics::new();
        metrics.queue("foo", || None);
        assert!(!metrics.encode().contains("workqueue_depth{"));
        metrics.queue("foo", || {
            Some(Stats {
                adds: 1,
                ..Stats::default()
            })
        });
        metrics.queue("foo", || {
            Some(Stats {
                adds: 2,
                ..Stats::default()
            })
        });
        assert_eq!(
            parse(&metrics.encode())["workqueue_adds_total{name=\"foo\",controller=\"foo\"}"],
            2.0
        );
    }

    #[test]
    fn caches_and_requests_are_shown_as_their_keepers_count_them() {
        let metrics = Metrics::new();
        metrics.cache(|| {
            vec![KindFigures {
                kind: "pods".into(),
                objects: 3,
                bytes: 900,
                last_event_age: Some(Duration::from_secs(4)),
                restarts: 2,
                synced: true,
            }]
        });
        metrics.requests(|| {
            vec![RequestCount {
                method: "GET".into(),
                host: "api:6443".into(),
                code: "200".into(),
                count: 8,
            }]
        });
        let samples = parse(&metrics.encode());
        assert_eq!(samples["windlass_cache_objects{kind=\"pods\"}"], 3.0);
        assert_eq!(samples["windlass_cache_bytes{kind=\"pods\"}"], 900.0);
        assert_eq!(
            samples["windlass_cache_last_event_age_seconds{kind=\"pods\"}"],
            4.0
        );
        assert_eq!(samples["windlass_cache_restarts_total{kind=\"pods\"}"], 2.0);
        assert_eq!(samples["windlass_cache_synced{kind=\"pods\"}"], 1.0);
        assert_eq!(
            samples["rest_client_requests_total{code=\"200\",method=\"GET\",host=\"api:6443\"}"],
            8.0
        );
    }

    #[test]
    fn metrics_of_your_own_stand_beside_ours() {
        let metrics = Metrics::new();
        metrics.with_registry(|registry| {
            let counter = prometheus_client::metrics::counter::Counter::<u64>::default();
            counter.inc();
            registry.register("harbor_projects", "How many projects.", counter);
        });
        assert_eq!(parse(&metrics.encode())["harbor_projects_total"], 1.0);
    }
}
