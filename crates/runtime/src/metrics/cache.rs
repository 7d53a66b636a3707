//! What caches hold, read when it is asked for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// What the cache of one watched kind can tell about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindFigures {
    /// Which kind, and which part of it where not all of it is watched.
    pub kind: String,
    /// How many objects it holds.
    pub objects: u64,
    /// About how many bytes they take.
    pub bytes: u64,
    /// How long ago the server last said something; `None` if it never did.
    pub last_event_age: Option<Duration>,
    /// How often the watch had to be started again.
    pub restarts: u64,
    /// Whether it has seen everything, and follows.
    pub synced: bool,
}

type Source = Arc<dyn Fn() -> Vec<KindFigures> + Send + Sync>;

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

impl Collector for CacheCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let sources = self.sources.lock().clone();
        let kinds: Vec<_> = sources.iter().flat_map(|figures| figures()).collect();
        let mut family =
            |name: &str, help: &str, kind, one: &dyn Fn(&KindFigures, MetricEncoder<'_>) -> fmt::Result| {
                let mut family = encoder.encode_descriptor(name, help, None, kind)?;
                for figures in &kinds {
                    let labels = ByKind {
                        kind: figures.kind.clone(),
                    };
                    one(figures, family.encode_family(&labels)?)?;
                }
                Ok(())
            };
        let gauge = |count: u64| ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
        family(
            "windlass_cache_objects",
            "Objects in the cache",
            MetricType::Gauge,
            &|kind, encoder| gauge(kind.objects).encode(encoder),
        )?;
        family(
            "windlass_cache_bytes",
            "About how many bytes they take",
            MetricType::Gauge,
            &|kind, encoder| gauge(kind.bytes).encode(encoder),
        )?;
        family(
            "windlass_cache_last_event_age_seconds",
            "How long ago the server last said something, bookmarks included",
            MetricType::Gauge,
            &|kind, encoder| match kind.last_event_age {
                Some(age) => ConstGauge::new(age.as_secs_f64()).encode(encoder),
                None => ConstGauge::new(f64::INFINITY).encode(encoder),
            },
        )?;
        family(
            "windlass_cache_restarts",
            "How often the watch was started again",
            MetricType::Counter,
            &|kind, encoder| ConstCounter::new(kind.restarts).encode(encoder),
        )?;
        family(
            "windlass_cache_synced",
            "1 if the cache has seen everything and follows",
            MetricType::Gauge,
            &|kind, encoder| gauge(u64::from(kind.synced)).encode(encoder),
        )
    }
}
