//! Numbers of numbers. Pure.

use serde::{Deserialize, Serialize};

/// The summary of several runs of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) runs: usize,
}

impl Summary {
    /// `None` where nothing was measured.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let sorted = sorted(values);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        Some(Self { median: percentile(&sorted, 50.0)?, min, max, runs: sorted.len() })
    }
}

/// The values in order, without NaN.
pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The percentile of values in order, between its two neighbours where it falls between them.
pub(crate) fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = percent.clamp(0.0, 100.0) / 100.0 * last as f64;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 0 and `last`
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let (low, high) = (sorted.get(below)?, sorted.get(above)?);
    Some(low + (high - low) * (place - place.floor()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_two_in_the_middle() {
        assert_eq!(
            Summary::of(&[3.0, 1.0, 2.0]).map(|s| (s.median, s.min, s.max, s.runs)),
            Some((2.0, 1.0, 3.0, 3))
        );
        assert_eq!(Summary::of(&[4.0, 1.0]).map(|s| s.median), Some(2.5));
        assert_eq!(Summary::of(&[7.0]).map(|s| (s.median, s.min, s.max)), Some((7.0, 7.0, 7.0)));
    }

    #[test]
    fn an_empty_series_has_no_median_and_nan_does_not_count() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[f64::NAN]), None);
        assert_eq!(Summary::of(&[f64::NAN, 2.0]).map(|s| s.runs), Some(1));
    }

    #[test]
    fn percentiles_go_from_the_least_to_the_greatest() {
        let values: Vec<f64> = (0..=100).map(f64::from).collect();
        for percent in [0.0, 50.0, 99.0, 99.9, 100.0] {
            assert_eq!(percentile(&values, percent), Some(percent));
        }
        assert_eq!(percentile(&[10.0, 20.0], 75.0), Some(17.5));
        assert_eq!(percentile(&[], 50.0), None);
    }
}
