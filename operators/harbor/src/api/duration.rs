//! Durations in the format of Go: `90s`, `1h30m`, `1.5h`, `500ms`.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Regular expression of exactly the strings that Go's `time.ParseDuration` accepts.
const PATTERN: &str = r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";

const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Duration in the format of Go, as written by the user. The API server has checked the format;
/// [`get`](Self::get) parses it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct GoDuration(pub String);

/// Error for a string that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration; write it as 90s, 1h30m or 500ms")]
pub struct NotATime(pub String);

impl GoDuration {
    /// Parses the duration. A negative duration is an error.
    pub fn get(&self) -> Result<Duration, NotATime> {
        self.nanoseconds().ok_or_else(|| NotATime(self.0.clone()))
    }

    /// Parses the duration and returns whole seconds, the unit of most Harbor settings.
    pub fn seconds(&self) -> Result<u64, NotATime> {
        self.get().map(|time| time.as_secs())
    }

    fn nanoseconds(&self) -> Option<Duration> {
        let (negative, mut rest) = match self.0.as_bytes().first()? {
            b'-' => (true, &self.0[1..]),
            b'+' => (false, &self.0[1..]),
            _ => (false, self.0.as_str()),
        };
        if rest == "0" {
            return Some(Duration::ZERO);
        }
        if rest.is_empty() {
            return None;
        }
        let mut total: u128 = 0;
        while !rest.is_empty() {
            let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let (digits, unit) = rest.split_at(number);
            let length = unit.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(unit.len());
            let (unit, next) = unit.split_at(length);
            let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
            total = total.checked_add(scaled(digits, *size)?)?;
            rest = next;
        }
        let nanoseconds = u64::try_from(total).ok()?;
        (!negative || nanoseconds == 0).then(|| Duration::from_nanos(nanoseconds))
    }
}

/// Returns `digits`, which may have a fraction, times `size` nanoseconds.
fn scaled(digits: &str, size: u128) -> Option<u128> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // Further digits are below a nanosecond, even of hours.
    let fraction = &fraction[..fraction.len().min(16)];
    let part: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    whole.checked_mul(size)?.checked_add(part.checked_mul(size)? / scale)
}

impl From<&str> for GoDuration {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// Formats a duration like Go: `4h0m0s`, `1m30s`, `500ms`.
impl From<Duration> for GoDuration {
    fn from(time: Duration) -> Self {
        let (seconds, nanoseconds) = (time.as_secs(), time.subsec_nanos());
        let fraction = |part: u32, digits: usize| {
            let text = format!("{part:0digits$}");
            let text = text.trim_end_matches('0');
            if text.is_empty() { String::new() } else { format!(".{text}") }
        };
        Self(match (seconds, nanoseconds) {
            (0, 0) => "0s".to_owned(),
            (0, n) if n < 1_000 => format!("{n}ns"),
            (0, n) if n < 1_000_000 => format!("{}{}µs", n / 1_000, fraction(n % 1_000, 3)),
            (0, n) => format!("{}{}ms", n / 1_000_000, fraction(n % 1_000_000, 6)),
            (s, n) => {
                let (hours, minutes) = (s / 3600, s / 60 % 60);
                let seconds = format!("{}{}s", s % 60, fraction(n, 9));
                match (hours, minutes) {
                    (0, 0) => seconds,
                    (0, m) => format!("{m}m{seconds}"),
                    (h, m) => format!("{h}h{m}m{seconds}"),
                }
            }
        })
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for GoDuration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "GoDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": PATTERN})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_duration_that_go_parses_is_parsed() {
        let cases = [
            ("0", 0),
            ("+0", 0),
            ("-0s", 0),
            ("1ns", 1),
            ("500ms", 500_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("5.s", 5_000_000_000),
            ("1h30m0.25s", 5_400_250_000_000),
            ("1µs", 1_000),
            ("2μs", 2_000),
            ("3us", 3_000),
        ];
        for (text, nanoseconds) in cases {
            assert_eq!(GoDuration::from(text).get(), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_duration_is_an_error() {
        for text in ["", "-", "5", ".s", "s", "1d", "1h-5m", "-5s", "1..5s", "1 s", "99999999999999999999h"] {
            let error = GoDuration::from(text).get().unwrap_err();
            assert_eq!(error, NotATime(text.to_owned()));
        }
    }

    #[test]
    fn durations_are_formatted_as_in_go() {
        let cases = [
            (Duration::ZERO, "0s"),
            (Duration::from_hours(4), "4h0m0s"),
            (Duration::from_secs(90), "1m30s"),
            (Duration::from_millis(1500), "1.5s"),
            (Duration::from_micros(1500), "1.5ms"),
            (Duration::from_nanos(1500), "1.5µs"),
        ];
        for (time, text) in cases {
            assert_eq!(GoDuration::from(time).0, text);
        }
    }

    proptest! {
        #[test]
        fn a_formatted_duration_parses_to_the_same_value(nanoseconds in 0_u64..u64::MAX / 4) {
            let time = Duration::from_nanos(nanoseconds);
            prop_assert_eq!(GoDuration::from(time).get(), Ok(time));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = GoDuration(text).get();
        }
    }
}
