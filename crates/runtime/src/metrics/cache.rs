//! Metrics of caches by kind, read at scrape time.
//!
//! Watches of one kind share their series: a watch of one object by name would otherwise put that name into a
//! label, with a set of series for each.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::cache::WatchReport;

type Source = Arc<dyn Fn() -> Vec<WatchReport> + Send + Sync>;

#[derive(Clone, Default)]
pub(super) struct CacheCollector {
    sources: Arc<Mutex<Vec<Source>>>,
}

impl fmt::Debug for CacheCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheCollector").finish_non_exhaustive()
    }
}

impl CacheCollector {
    pub(super) fn enlist(&self, figures: Source) {
        self.sources.lock().push(figures);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByKind {
    kind: String,
}

/// The sums of all watches of one kind; of state and staleness, the worst.
#[derive(Default)]
struct KindReport {
    watches: usize,
    unsynced: usize,
    objects: usize,
    bytes: usize,
    last_event_age: Duration,
    events: u64,
    restarts: u64,
    lists: u64,
    undecodable: u64,
}

impl KindReport {
    fn add(&mut self, watch: &WatchReport) {
        // Watches that have ended are reported without shapes: only their counters matter.
        if watch.shapes > 0 {
            self.watches += 1;
            self.unsynced += usize::from(!watch.state.is_synced());
            self.last_event_age = self.last_event_age.max(watch.last_event_age);
        }
        self.objects += watch.objects;
        self.bytes += watch.bytes;
        self.events += watch.events;
        self.restarts += watch.restarts;
        self.lists += watch.lists;
        self.undecodable += watch.undecodable;
    }
}

impl Collector for CacheCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let sources = self.sources.lock().clone();
        let mut kinds: BTreeMap<String, KindReport> = BTreeMap::new();
        for watch in sources.iter().flat_map(|watches| watches()) {
            kinds.entry(watch.resource.group_resource()).or_default().add(&watch);
        }
        let mut family =
            |name: &str, help: &str, metric, one: &dyn Fn(&KindReport, MetricEncoder<'_>) -> fmt::Result| {
                let mut family = encoder.encode_descriptor(name, help, None, metric)?;
                for (kind, report) in &kinds {
                    one(report, family.encode_family(&ByKind { kind: kind.clone() })?)?;
                }
                Ok(())
            };
        let gauge = |count: usize| ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
        let mut gauges = |name: &str, help: &str, count: &dyn Fn(&KindReport) -> usize| {
            family(name, help, MetricType::Gauge, &|kind, encoder| gauge(count(kind)).encode(encoder))
        };
        gauges("windlass_cache_watches", "Watches of the kind", &|kind| kind.watches)?;
        gauges("windlass_cache_objects", "Objects in the cache", &|kind| kind.objects)?;
        gauges("windlass_cache_bytes", "Approximate size of the cached objects in bytes", &|kind| {
            kind.bytes
        })?;
        gauges("windlass_cache_synced", "1 if all watches of the kind are synced, 0 otherwise", &|kind| {
            usize::from(kind.unsynced == 0)
        })?;
        family(
            "windlass_cache_last_event_age_seconds",
            "Seconds since the last event or bookmark, of the watch for which it is the longest",
            MetricType::Gauge,
            &|kind, encoder| ConstGauge::new(kind.last_event_age.as_secs_f64()).encode(encoder),
        )?;
        let mut counter = |name: &str, help: &str, count: &dyn Fn(&KindReport) -> u64| {
            family(name, help, MetricType::Counter, &|kind, encoder| {
                ConstCounter::new(count(kind)).encode(encoder)
            })
        };
        counter("windlass_cache_events", "Events, bookmarks and list pages received", &|kind| kind.events)?;
        counter("windlass_cache_restarts", "Restarts of watches", &|kind| kind.restarts)?;
        counter("windlass_cache_lists", "Completed lists, including the first", &|kind| kind.lists)?;
        counter("windlass_cache_undecodable", "Objects that could not be decoded", &|kind| kind.undecodable)
    }
}
