//! Metrics of events.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) recorded: AtomicU64,
    pub(super) created: AtomicU64,
    pub(super) patched: AtomicU64,
    pub(super) overflown: AtomicU64,
    pub(super) limited: AtomicU64,
    pub(super) failed: AtomicU64,
    /// Recorded events that left the channel, or never came in.
    pub(super) taken: AtomicU64,
    /// Events that were taken and are not written yet.
    pub(super) in_ledger: AtomicU64,
}

/// Counters of recorded, written and dropped events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventStats {
    /// Events that were recorded.
    pub recorded: u64,
    /// Event objects that were created.
    pub created: u64,
    /// Updates of series counts.
    pub patched: u64,
    /// Events that were dropped because too many waited, or because the publisher has ended.
    pub overflown: u64,
    /// Events that were dropped by the rate limit of their object.
    pub limited: u64,
    /// Events that were dropped because the API server rejected them.
    pub failed: u64,
    /// Events that were recorded and are neither written nor dropped yet, repetitions included.
    pub waiting: u64,
}

impl Counts {
    pub(super) fn stats(&self) -> EventStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // Read in the order in which an event moves, so that none is missed on its way.
        let recorded = self.recorded.load(Ordering::Acquire);
        let taken = self.taken.load(Ordering::Acquire);
        let in_ledger = self.in_ledger.load(Ordering::Acquire);
        EventStats {
            recorded,
            created: get(&self.created),
            patched: get(&self.patched),
            overflown: get(&self.overflown),
            limited: get(&self.limited),
            failed: get(&self.failed),
            waiting: recorded.saturating_sub(taken) + in_ledger,
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
        let EventStats { recorded, created, patched, overflown, limited, failed, waiting } = self.0.stats();
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
        let unwritten = encoder.encode_descriptor(
            "windlass_events_waiting",
            "Events that were recorded and are neither written nor dropped yet",
            None,
            MetricType::Gauge,
        )?;
        ConstGauge::new(i64::try_from(waiting).unwrap_or(i64::MAX)).encode(unwritten)?;
        Ok(())
    }
}
