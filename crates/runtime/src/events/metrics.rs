//! What became of events, in figures.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) recorded: AtomicU64,
    pub(super) created: AtomicU64,
    pub(super) patched: AtomicU64,
    pub(super) overflown: AtomicU64,
    pub(super) limited: AtomicU64,
    pub(super) failed: AtomicU64,
}

/// What became of events so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventStats {
    /// Events that were recorded.
    pub recorded: u64,
    /// Event objects that were made.
    pub created: u64,
    /// Counts of series that were written.
    pub patched: u64,
    /// Events that were dropped because too many waited, or because nobody writes any more.
    pub overflown: u64,
    /// Events that were dropped because their object had too many.
    pub limited: u64,
    /// Events that were dropped because the API server did not take them.
    pub failed: u64,
}

impl Counts {
    pub(super) fn stats(&self) -> EventStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EventStats {
            recorded: get(&self.recorded),
            created: get(&self.created),
            patched: get(&self.patched),
            overflown: get(&self.overflown),
            limited: get(&self.limited),
            failed: get(&self.failed),
        }
    }
}

#[derive(Debug)]
pub(super) struct EventCollector(pub(super) Arc<Counts>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByVerb {
    verb: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReason {
    reason: &'static str,
}

impl Collector for EventCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let EventStats { recorded, created, patched, overflown, limited, failed } = self.0.stats();
        let counter = MetricType::Counter;
        let all = encoder.encode_descriptor("windlass_events_recorded", "Events recorded", None, counter)?;
        ConstCounter::new(recorded).encode(all)?;
        let mut writes =
            encoder.encode_descriptor("windlass_events_written", "Writes of Event objects", None, counter)?;
        for (verb, count) in [("create", created), ("patch", patched)] {
            ConstCounter::new(count).encode(writes.encode_family(&ByVerb { verb })?)?;
        }
        let mut dropped = encoder.encode_descriptor(
            "windlass_events_dropped",
            "Events that were recorded and never written",
            None,
            counter,
        )?;
        for (reason, count) in [("overflow", overflown), ("rate", limited), ("failed", failed)] {
            ConstCounter::new(count).encode(dropped.encode_family(&ByReason { reason })?)?;
        }
        Ok(())
    }
}
