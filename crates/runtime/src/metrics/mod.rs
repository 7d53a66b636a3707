//! Metrics under the names of controller-runtime, so that dashboards keep working.
//!
//! [`Metrics`] is the registry of a process. Controllers and queues register themselves;
//! [`encode`](Metrics::encode) writes everything in the OpenMetrics text format, for an admin server. Figures
//! that are kept anyway (a queue's depth, a cache's size) are read at scrape time and cost nothing in
//! between.
//!
//! It does not serve anything.

mod cache;
mod controller;
mod process;
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
use self::process::ProcessCollector;
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
    process: ProcessCollector,
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
    /// Creates a registry with all metrics of this crate, all zero.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let controllers = ControllerFamilies::register(&mut registry);
        let queues = QueueCollector::default();
        let caches = CacheCollector::default();
        let requests = RequestCollector::default();
        let process = ProcessCollector::new();
        registry.register_collector(Box::new(queues.clone()));
        registry.register_collector(Box::new(caches.clone()));
        registry.register_collector(Box::new(requests.clone()));
        registry.register_collector(Box::new(process.clone()));
        Self {
            shared: Arc::new(Shared {
                registry: Mutex::new(registry),
                controllers,
                queues,
                caches,
                requests,
                process,
            }),
        }
    }

    /// Returns the metrics of one controller, which are visible from now on.
    pub fn controller(&self, name: &str, workers: usize) -> ControllerMetrics {
        self.shared.controllers.of(name, workers)
    }

    /// Exposes a queue under this name; `stats` returns `None` once the queue is gone.
    pub fn queue(&self, name: &str, stats: impl Fn() -> Option<Stats> + Send + Sync + 'static) {
        self.shared.queues.enlist(name, Arc::new(stats));
    }

    /// Exposes the content and the watches of a cache: `windlass_cache_*`, by kind.
    pub fn cache(&self, cache: &Cache) {
        let cache = cache.clone();
        self.shared.caches.enlist(Arc::new(move || cache.reports()));
    }

    /// Exposes the requests of a client to the API server at `host` (host and port, as the label shows them).
    pub fn client(&self, client: &Client, host: impl Into<String>) {
        self.shared.requests.enlist(client.clone(), host.into());
    }

    /// Sets the program and version that `windlass_build_info` shows.
    pub fn build_info(&self, program: impl Into<String>, version: impl Into<String>) {
        self.shared.process.set_build(program.into(), version.into());
    }

    /// Adds a custom collector.
    pub fn register(&self, collector: impl Collector) {
        self.shared.registry.lock().register_collector(Box::new(collector));
    }

    /// Adds custom metrics with the tools of `prometheus-client`.
    ///
    /// The name of a counter is given without `_total`: the encoder appends it.
    pub fn with_registry<T>(&self, add: impl FnOnce(&mut Registry) -> T) -> T {
        add(&mut self.shared.registry.lock())
    }

    /// Encodes all metrics in the OpenMetrics text format.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        if let Err(error) = prometheus_client::encoding::text::encode(&mut text, &self.shared.registry.lock())
        {
            tracing::error!(%error, "metrics could not be encoded");
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

    /// Parses samples by name and labels; panics on malformed text.
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
    fn a_controller_exposes_all_its_metrics_before_its_first_reconcile() {
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
    async fn a_queue_exposes_its_depth_by_priority_and_its_counters() {
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
    fn a_dropped_queue_is_no_longer_exposed_and_one_of_its_name_replaces_it() {
        let metrics = Metrics::new();
        metrics.queue("foo", || None);
        assert!(!metrics.encode().contains("workqueue_depth{"));
        metrics.queue("foo", || Some(Stats { adds: 1, ..Stats::default() }));
        metrics.queue("foo", || Some(Stats { adds: 2, ..Stats::default() }));
        assert_eq!(parse(&metrics.encode())["workqueue_adds_total{name=\"foo\",controller=\"foo\"}"], 2.0);
    }

    #[test]
    fn seam_m14_watches_are_exposed_by_kind_only_with_size_staleness_and_restarts() {
        use crate::cache::{SyncState, WatchReport};
        let metrics = Metrics::new();
        let watch = |name: &str, objects, age| WatchReport {
            resource: crate::resource::ResourceType::of::<k8s_openapi::api::core::v1::Secret>(),
            namespace: Some("shop".into()),
            labels: crate::cache::LabelSelector::default(),
            fields: format!("metadata.name={name}").parse().unwrap(),
            state: if objects > 0 { SyncState::Synced } else { SyncState::Starting },
            shapes: 1,
            objects,
            bytes: 900,
            last_event_age: Duration::from_secs(age),
            events: 7,
            restarts: 2,
            lists: 1,
            undecodable: 0,
        };
        let watches = [watch("password", 1, 4), watch("token", 0, 9)];
        metrics.shared.caches.enlist(Arc::new(move || watches.to_vec()));
        let text = metrics.encode();
        let samples = parse(&text);
        let of = |name: &str| samples.get(&format!("windlass_cache_{name}{{kind=\"secrets\"}}")).copied();
        assert_eq!(
            (of("objects"), of("bytes"), of("watches")),
            (Some(1.0), Some(1800.0), Some(2.0)),
            "{text}"
        );
        assert_eq!((of("last_event_age_seconds"), of("synced")), (Some(9.0), Some(0.0)), "the worst of them");
        assert_eq!(
            (of("events_total"), of("restarts_total"), of("lists_total")),
            (Some(14.0), Some(4.0), Some(2.0))
        );
        assert!(!text.contains("password") && !text.contains("token"), "{text}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn seam_m14_the_process_and_its_build_are_exposed() {
        let metrics = Metrics::new();
        let samples = parse(&metrics.encode());
        let of = |name: &str| *samples.get(name).unwrap_or_else(|| panic!("{name} in {samples:?}"));
        assert!(of("process_resident_memory_bytes") > 1_000_000.0);
        assert!(of("process_virtual_memory_bytes") >= of("process_resident_memory_bytes"));
        assert!(of("process_cpu_seconds_total") > 0.0);
        assert!(of("process_open_fds") >= 3.0 && of("process_max_fds") >= of("process_open_fds"));
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        assert!((now - 86_400.0..=now).contains(&of("process_start_time_seconds")));
        let build = samples.keys().find(|name| name.starts_with("windlass_build_info{"));
        assert!(build.unwrap().contains(&format!("runtime_version=\"{}\"", env!("CARGO_PKG_VERSION"))));
    }

    #[test]
    fn custom_metrics_are_exposed_beside_ours() {
        let metrics = Metrics::new();
        metrics.with_registry(|registry| {
            let counter = prometheus_client::metrics::counter::Counter::<u64>::default();
            counter.inc();
            registry.register("harbor_projects", "How many projects.", counter);
        });
        assert_eq!(parse(&metrics.encode())["harbor_projects_total"], 1.0);
    }
}
