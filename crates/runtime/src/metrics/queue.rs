//! Metrics of queues, read at scrape time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::queue::{Histogram, Stats};

type Source = Arc<dyn Fn() -> Option<Stats> + Send + Sync>;

#[derive(Clone, Default)]
pub(super) struct QueueCollector {
    queues: Arc<Mutex<BTreeMap<String, Source>>>,
}

impl fmt::Debug for QueueCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueCollector").finish_non_exhaustive()
    }
}

impl QueueCollector {
    pub(super) fn enlist(&self, name: &str, stats: Source) {
        self.queues.lock().insert(name.to_owned(), stats);
    }

    fn all(&self) -> Vec<(String, Stats)> {
        let mut queues = self.queues.lock();
        let mut all = Vec::new();
        queues.retain(|name, stats| {
            let stats = stats();
            let there = stats.is_some();
            all.extend(stats.map(|stats| (name.clone(), stats)));
            there
        });
        all
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByQueue {
    name: String,
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPriority {
    name: String,
    controller: String,
    priority: String,
}

impl Collector for QueueCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let queues = self.all();
        let mut depth =
            encoder.encode_descriptor("workqueue_depth", "Number of ready keys", None, MetricType::Gauge)?;
        for (name, stats) in &queues {
            let counted = stats.depth.iter().map(|(priority, count)| (priority.to_string(), count));
            let beyond = stats.depth.beyond().map(|count| ("exceeded_cardinality_limit".to_owned(), count));
            for (priority, count) in counted.chain(beyond) {
                let labels = ByPriority { name: name.clone(), controller: name.clone(), priority };
                let gauge = ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
                gauge.encode(depth.encode_family(&labels)?)?;
            }
        }
        let mut family =
            |name: &str, help: &str, kind, one: &dyn Fn(&Stats, MetricEncoder<'_>) -> fmt::Result| {
                let mut family = encoder.encode_descriptor(name, help, None, kind)?;
                for (name, stats) in &queues {
                    let labels = ByQueue { name: name.clone(), controller: name.clone() };
                    one(stats, family.encode_family(&labels)?)?;
                }
                Ok(())
            };
        family(
            "workqueue_adds",
            "Number of times a key became ready",
            MetricType::Counter,
            &|stats, encoder| ConstCounter::new(stats.adds).encode(encoder),
        )?;
        family(
            "workqueue_retries",
            "Number of times a key was added with a delay",
            MetricType::Counter,
            &|stats, encoder| ConstCounter::new(stats.retries).encode(encoder),
        )?;
        family(
            "workqueue_queue_duration_seconds",
            "Time that keys were ready before a worker took them",
            MetricType::Histogram,
            &|stats, encoder| histogram(&stats.queue_time, encoder),
        )?;
        family(
            "workqueue_work_duration_seconds",
            "Time that workers took for a key",
            MetricType::Histogram,
            &|stats, encoder| histogram(&stats.work_time, encoder),
        )?;
        family(
            "workqueue_unfinished_work_seconds",
            "Sum of the running times of all keys in progress",
            MetricType::Gauge,
            &|stats, encoder| ConstGauge::new(stats.unfinished.as_secs_f64()).encode(encoder),
        )?;
        family(
            "workqueue_longest_running_processor_seconds",
            "Running time of the oldest key in progress",
            MetricType::Gauge,
            &|stats, encoder| ConstGauge::new(stats.longest_running.as_secs_f64()).encode(encoder),
        )
    }
}

fn histogram(histogram: &Histogram, mut encoder: MetricEncoder<'_>) -> fmt::Result {
    let buckets: Vec<_> = histogram.buckets().collect();
    encoder.encode_histogram::<NoLabelSet>(histogram.sum(), histogram.count(), &buckets, None)
}
