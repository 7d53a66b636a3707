//! Figures: name, unit and target. Pure.

use serde::{Deserialize, Serialize};

use crate::subject::Subject;

/// The unit of a figure, which decides how it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Seconds,
    Count,
    PerSecond,
    Percent,
    /// A plain number with a fraction.
    Number,
}

impl Unit {
    /// A value as people read it.
    pub(crate) fn write(self, value: f64) -> String {
        match self {
            Self::Bytes if value.abs() >= 1e6 => format!("{:.1} MB", value / 1e6),
            Self::Bytes if value.abs() >= 1e4 => format!("{:.1} kB", value / 1e3),
            Self::Bytes => format!("{value:.0} B"),
            Self::Seconds if value.abs() >= 10.0 => format!("{value:.1} s"),
            Self::Seconds if value.abs() >= 1.0 => format!("{value:.2} s"),
            Self::Seconds if value.abs() >= 1e-3 => format!("{:.1} ms", value * 1e3),
            Self::Seconds if value.abs() >= 1e-6 => format!("{:.1} µs", value * 1e6),
            Self::Seconds => format!("{:.0} ns", value * 1e9),
            Self::Count => grouped(value),
            Self::PerSecond => format!("{}/s", grouped(value)),
            Self::Percent => format!("{value:.2} %"),
            Self::Number => format!("{value:.2}"),
        }
    }
}

/// A whole number with its thousands apart.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 && digits != "0" { format!("-{text}") } else { text }
}

/// The target of one of our figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    /// At most this ratio of another subject's figure.
    OfAtMost(Subject, f64),
    /// At most this value.
    AtMost(f64),
}

/// The verdict on a target, and its words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Judged {
    pub(crate) words: String,
    /// `None`: there is nothing to compare with.
    pub(crate) met: Option<bool>,
}

impl Target {
    /// Judges the medians: that of Windlass, and `other` of the subject that it is compared with.
    pub(crate) fn judge(
        self,
        unit: Unit,
        ours: Option<f64>,
        other: impl Fn(Subject) -> Option<f64>,
    ) -> Judged {
        let words = match self {
            Self::OfAtMost(subject, part) => format!("≤ {} of {subject}", ratio(part)),
            Self::AtMost(most) => format!("≤ {}", unit.write(most)),
        };
        let met = ours.and_then(|ours| match self {
            Self::OfAtMost(subject, part) => other(subject).map(|other| ours <= other * part),
            Self::AtMost(most) => Some(ours <= most),
        });
        Judged { words, met }
    }
}

/// One part in so many, where that is how people say it.
fn ratio(part: f64) -> String {
    let inverse = 1.0 / part;
    if part < 1.0 && (inverse - inverse.round()).abs() < 1e-9 {
        format!("1/{inverse:.0}")
    } else {
        format!("{part:.2}")
    }
}

/// One figure of a workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    /// The name of the figure in the raw data.
    pub(crate) key: &'static str,
    /// The name of the figure in the table.
    pub(crate) label: &'static str,
    pub(crate) unit: Unit,
    pub(crate) targets: &'static [Target],
    /// Targets are about groups whose name begins so.
    pub(crate) where_: &'static str,
}

impl Figure {
    pub(crate) const fn new(key: &'static str, label: &'static str, unit: Unit) -> Self {
        Self { key, label, unit, targets: &[], where_: "" }
    }

    pub(crate) const fn aim(self, targets: &'static [Target]) -> Self {
        Self { targets, ..self }
    }

    /// Targets are about groups only whose name begins so.
    pub(crate) const fn only(self, where_: &'static str) -> Self {
        Self { where_, ..self }
    }

    /// The target of the figure in a group.
    pub(crate) fn targets_in(&self, group: &str) -> &'static [Target] {
        if group.starts_with(self.where_) { self.targets } else { &[] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_in_the_unit_that_fits_them() {
        assert_eq!(Unit::Bytes.write(944.0), "944 B");
        assert_eq!(Unit::Bytes.write(44_900.0), "44.9 kB");
        assert_eq!(Unit::Bytes.write(8_600_000.0), "8.6 MB");
        assert_eq!(Unit::Seconds.write(0.000_001_5), "1.5 µs");
        assert_eq!(Unit::Seconds.write(0.25), "250.0 ms");
        assert_eq!(Unit::Seconds.write(12.34), "12.3 s");
        assert_eq!(Unit::Count.write(1_234_567.0), "1,234,567");
        assert_eq!(Unit::PerSecond.write(999.0), "999/s");
        assert_eq!(Unit::Count.write(-1500.0), "-1,500");
    }

    #[test]
    fn a_target_is_met_missed_or_not_to_be_judged() {
        let third = Target::OfAtMost(Subject::GoTuned, 1.0 / 3.0);
        let judged = third.judge(Unit::Bytes, Some(10.0), |_| Some(31.0));
        assert_eq!(judged, Judged { words: "≤ 1/3 of go-tuned".into(), met: Some(true) });
        assert_eq!(third.judge(Unit::Bytes, Some(11.0), |_| Some(31.0)).met, Some(false));
        assert_eq!(third.judge(Unit::Bytes, Some(11.0), |_| None).met, None);
        let none = Target::AtMost(0.0).judge(Unit::Count, Some(0.0), |_| None);
        assert_eq!(none, Judged { words: "≤ 0".into(), met: Some(true) });
    }
}
