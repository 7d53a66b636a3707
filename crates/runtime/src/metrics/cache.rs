//! What caches hold, read when it is asked for.

use std::fmt;
use std::sync::Arc;

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
struct ByWatch {
    kind: String,
    namespace: String,
    selector: String,
}

impl From<&WatchReport> for ByWatch {
    fn from(watch: &WatchReport) -> Self {
        let selectors = [watch.labels.to_string(), watch.fields.to_string()];
        Self {
            kind: watch.resource.group_resource(),
            namespace: watch.namespace.as_ref().map(ToString::to_string).unwrap_or_default(),
            selector: selectors
                .into_iter()
                .filter(|selector| !selector.is_empty())
                .collect::<Vec<_>>()
                .join(";"),
        }
    }
}

impl Collector for CacheCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let sources = self.sources.lock().clone();
        let watches: Vec<_> = sources.iter().flat_map(|watches| watches()).collect();
        let mut family =
            |name: &str, help: &str, kind, one: &dyn Fn(&WatchReport, MetricEncoder<'_>) -> fmt::Result| {
                let mut family = encoder.encode_descriptor(name, help, None, kind)?;
                for watch in &watches {
                    one(watch, family.encode_family(&ByWatch::from(watch))?)?;
                }
                Ok(())
            };
        let gauge = |count: usize| ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
        family("windlass_cache_objects", "Objects in the cache", MetricType::Gauge, &|watch, encoder| {
            gauge(watch.objects).encode(encoder)
        })?;
        family(
            "windlass_cache_bytes",
            "About how many bytes they take",
            MetricType::Gauge,
            &|watch, encoder| gauge(watch.bytes).encode(encoder),
        )?;
        family(
            "windlass_cache_last_event_age_seconds",
            "How long ago the server last said something, bookmarks included",
            MetricType::Gauge,
            &|watch, encoder| ConstGauge::new(watch.last_event_age.as_secs_f64()).encode(encoder),
        )?;
        family(
            "windlass_cache_synced",
            "1 if the cache has seen everything and follows",
            MetricType::Gauge,
            &|watch, encoder| gauge(usize::from(watch.state.is_synced())).encode(encoder),
        )?;
        let mut counter = |name: &str, help: &str, count: &dyn Fn(&WatchReport) -> u64| {
            family(name, help, MetricType::Counter, &|watch, encoder| {
                ConstCounter::new(count(watch)).encode(encoder)
            })
        };
        counter("windlass_cache_events", "Events, bookmarks and pages that came", &|watch| watch.events)?;
        counter("windlass_cache_restarts", "How often the watch was started again", &|watch| watch.restarts)?;
        counter("windlass_cache_lists", "Lists that ended, the first one included", &|watch| watch.lists)?;
        counter("windlass_cache_undecodable", "Objects that did not fit a shape", &|watch| watch.undecodable)
    }
}
