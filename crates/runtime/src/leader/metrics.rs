//! Metrics of the election, under client-go's names. Both are really exposed (controller-runtime counts slow
//! paths and never shows them).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::standing::Figures;

#[derive(Debug)]
pub(super) struct ElectionCollector {
    pub(super) name: String,
    pub(super) figures: Arc<Figures>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByName {
    name: String,
}

impl Collector for ElectionCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let labels = ByName { name: self.name.clone() };
        let mut status = encoder.encode_descriptor(
            "leader_election_master_status",
            "1 if this process leads, 0 if it stands by",
            None,
            MetricType::Gauge,
        )?;
        let leads = i64::from(self.figures.leads());
        ConstGauge::new(leads).encode(status.encode_family(&labels)?)?;
        let mut slow = encoder.encode_descriptor(
            "leader_election_slowpath",
            "Renewals that failed at the first attempt and read the Lease again",
            None,
            MetricType::Counter,
        )?;
        let count = self.figures.slow_paths.load(Ordering::Relaxed);
        ConstCounter::new(count).encode(slow.encode_family(&labels)?)
    }
}
