//! CPU per decoded event.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use serde::de::DeserializeOwned;
use windlass_runtime::cache::{Full, MetadataOnly};

use super::Row;
use super::fixture::{self, PodShape};

const EVENTS: usize = 2_000;
const ROUNDS: usize = 11;

pub(crate) fn measure() -> Result<Vec<Row>> {
    let events: Vec<Vec<u8>> =
        (0..EVENTS).map(|index| fixture::pod(index).to_string().into_bytes()).collect();
    let size = events[7].len();
    Ok(vec![
        Row::new(format!("decode a Pod of {size} B into a shape"), figure::<PodShape>(&events)?),
        Row::new(
            format!("decode a Pod of {size} B into metadata only"),
            figure::<MetadataOnly<Pod>>(&events)?,
        ),
        Row::new(
            format!("decode a Pod of {size} B into the whole object without managedFields"),
            figure::<Full<Pod>>(&events)?,
        ),
        Row::new(
            format!("decode a Pod of {size} B with k8s-openapi's own type, for comparison"),
            figure::<Pod>(&events)?,
        ),
    ])
}

/// The median round, with the fastest and the slowest. One thread that only computes: its
/// time on the clock is its CPU time on an idle machine.
fn figure<T: DeserializeOwned>(events: &[Vec<u8>]) -> Result<String> {
    let mut rounds = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for event in events {
            black_box(serde_json::from_slice::<T>(event)?);
        }
        rounds.push(began.elapsed().as_secs_f64() * 1e6 / events.len() as f64);
    }
    rounds.sort_by(f64::total_cmp);
    Ok(format!("{:.1} µs ({:.1}–{:.1})", rounds[ROUNDS / 2], rounds[0], rounds[ROUNDS - 1]))
}
