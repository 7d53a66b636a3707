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
use self::controller::ControllerFamilies;
pub(crate) use self::controller::ReconcileResult;
pub use self::controller::{Active, ControllerMetrics};
use self::queue::QueueCollector;
use self::requests::RequestCollector;
use crate::cache::Cache;
use crate::client::Client;
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

    /// Shows what a cache holds and how its watches do: `windlass_cache_*`, by kind, namespace and selector.
    pub fn cache(&self, cache: &Cache) {
        let cache = cache.clone();
        self.shared.caches.enlist(Arc::new(move || cache.watches()));
    }

    /// Shows what a client asks of the API server at `host` (host and port, as it shall be shown).
    pub fn client(&self, client: &Client, host: impl Into<String>) {
        self.shared.requests.enlist(client.clone(), host.into());
    }

    /// Adds metrics of your own.
    pub fn register(&self, collector: impl Collector) {
        self.shared.registry.lock().register_collector(Box::new(collector));
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
#[allow(clippy::float_cmp)] // whole numbers, written and read
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
        assert_eq!(samples["controller_runtime_max_concurrent_reconciles{controller=\"foo\"}"], 3.0);
    }

    #[test]
    fn a_reconcile_is_counted_by_its_result_and_time() {
        let metrics = Metrics::new();
        let controller = metrics.controller("foo", 1);
        let active = controller.begin();
        assert_eq!(parse(&metrics.encode())["controller_runtime_active_workers{controller=\"foo\"}"], 1.0);
        active.end(ReconcileResult::Success, Duration::from_millis(7));
        let samples = parse(&metrics.encode());
        assert_eq!(samples["controller_runtime_active_workers{controller=\"foo\"}"], 0.0);
        assert_eq!(samples["controller_runtime_reconcile_total{controller=\"foo\",result=\"success\"}"], 1.0);
        let bucket = |le: &str| {
            format!("controller_runtime_reconcile_time_seconds_bucket{{le=\"{le}\",controller=\"foo\"}}")
        };
        assert_eq!((samples[&bucket("0.005")], samples[&bucket("0.01")]), (0.0, 1.0));
        assert_eq!(samples.keys().filter(|name| name.contains("time_seconds_bucket")).count(), 41);
    }

    #[test]
    fn a_worker_that_is_cancelled_is_no_longer_active() {
        let metrics = Metrics::new();
        drop(metrics.controller("foo", 1).begin());
        assert_eq!(parse(&metrics.encode())["controller_runtime_active_workers{controller=\"foo\"}"], 0.0);
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
        queue.get().await.expect("open").finish(Next::Retry { at_most: None });
        let samples = parse(&metrics.encode());
        let depth = |priority: i32| {
            samples[&format!("workqueue_depth{{name=\"foo\",controller=\"foo\",priority=\"{priority}\"}}")]
        };
        assert_eq!((depth(0), depth(-100)), (0.0, 2.0));
        let labels = "{name=\"foo\",controller=\"foo\"}";
        assert_eq!(samples[&format!("workqueue_adds_total{labels}")], 3.0);
        assert_eq!(samples[&format!("workqueue_retries_total{labels}")], 1.0);
        assert_eq!(samples[&format!("workqueue_queue_duration_seconds_count{labels}")], 1.0);
        assert_eq!(samples[&format!("workqueue_work_duration_seconds_count{labels}")], 1.0);
        assert_eq!(samples[&format!("workqueue_unfinished_work_seconds{labels}")], 0.0);
        assert_eq!(samples[&format!("workqueue_longest_running_processor_seconds{labels}")], 0.0);
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
        let depths: Vec<_> = samples.iter().filter(|(name, _)| name.starts_with("workqueue_depth")).collect();
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
        metrics.queue("foo", || Some(Stats { adds: 1, ..Stats::default() }));
        metrics.queue("foo", || Some(Stats { adds: 2, ..Stats::default() }));
        assert_eq!(parse(&metrics.encode())["workqueue_adds_total{name=\"foo\",controller=\"foo\"}"], 2.0);
    }

    #[test]
    fn d12_watches_are_shown_by_kind_namespace_and_selector_with_size_staleness_and_restarts() {
        use crate::cache::{SyncState, WatchReport};
        let metrics = Metrics::new();
        let watch = |namespace: Option<&str>, objects| WatchReport {
            resource: crate::resource::ResourceType::of::<k8s_openapi::api::apps::v1::Deployment>(),
            namespace: namespace.map(Into::into),
            labels: "app=web".parse().unwrap(),
            fields: crate::cache::FieldSelector::default(),
            state: SyncState::Synced,
            shapes: 1,
            objects,
            bytes: 900,
            last_event_age: Duration::from_secs(4),
            events: 7,
            restarts: 2,
            lists: 1,
            undecodable: 0,
        };
        let watches = [watch(None, 3), watch(Some("shop"), 4)];
        metrics.shared.caches.enlist(Arc::new(move || watches.to_vec()));
        let samples = parse(&metrics.encode());
        let labels = |namespace: &str| {
            format!("{{kind=\"deployments.apps\",namespace=\"{namespace}\",selector=\"app=web\"}}")
        };
        assert_eq!(samples[&format!("windlass_cache_objects{}", labels(""))], 3.0);
        assert_eq!(samples[&format!("windlass_cache_objects{}", labels("shop"))], 4.0);
        assert_eq!(samples[&format!("windlass_cache_bytes{}", labels(""))], 900.0);
        assert_eq!(samples[&format!("windlass_cache_last_event_age_seconds{}", labels(""))], 4.0);
        assert_eq!(samples[&format!("windlass_cache_restarts_total{}", labels(""))], 2.0);
        assert_eq!(samples[&format!("windlass_cache_synced{}", labels(""))], 1.0);
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
