//! A metric of this operator: the number of Games by phase.

use std::collections::BTreeMap;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::gauge::ConstGauge;
use windlass_runtime::cache::{Full, Reader};

use crate::api::Game;

/// Counts the Games in the cache when `/metrics` is read.
#[derive(Clone)]
pub struct Games(pub Reader<Full<Game>>);

impl std::fmt::Debug for Games {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Games")
    }
}

impl Collector for Games {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut phases: BTreeMap<String, i64> = BTreeMap::new();
        for game in self.0.list() {
            let phase = game.status.as_ref().and_then(|status| status.phase);
            *phases.entry(phase.map_or("Init".into(), |phase| format!("{phase:?}"))).or_default() += 1;
        }
        let gauge = ConstGauge::new(0i64);
        let mut family = encoder.encode_descriptor(
            "mygame_games",
            "Number of Games, by phase",
            None,
            gauge.metric_type(),
        )?;
        for (phase, count) in phases {
            let labels = [("phase", phase)];
            ConstGauge::new(count).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
