//! Versions of Harbor: `2.15.2`, `2.16.0-rc1`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// Longest accepted version, in characters. An image tag has at most 128.
const LONGEST: usize = 64;

/// A full version of Harbor, as in `spec.version`.
///
/// ```
/// use harbor_operator::catalogue::Version;
///
/// let candidate: Version = "2.15.0-rc2".parse()?;
/// assert!(candidate < Version::new(2, 15, 0));
/// assert_eq!(candidate.tag(), "v2.15.0-rc2");
/// # Ok::<(), harbor_operator::catalogue::InvalidVersion>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    major: u32,
    minor: u32,
    patch: u32,
    candidate: Option<String>,
}

/// Error: the text is not a version of Harbor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a version of Harbor; write all three numbers, as in 2.15.2 or 2.15.0-rc1")]
pub struct InvalidVersion(String);

impl Version {
    /// Returns a final release.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch, candidate: None }
    }

    /// Returns the major version, the first number.
    pub(crate) const fn major(&self) -> u32 {
        self.major
    }

    /// Returns the minor version, the second number, which determines the features.
    pub(crate) const fn minor(&self) -> u32 {
        self.minor
    }

    /// Returns the patch version, the third number.
    pub(crate) const fn patch(&self) -> u32 {
        self.patch
    }

    /// Returns the suffix of a release candidate: `rc1`.
    pub(crate) fn candidate(&self) -> Option<&str> {
        self.candidate.as_deref()
    }

    /// Returns the line of the version: `2.15`.
    pub(crate) fn line(&self) -> String {
        format!("{}.{}", self.major, self.minor)
    }

    /// Returns the image tag of this version.
    pub fn tag(&self) -> String {
        format!("v{self}")
    }

    fn numbers(&self) -> (u32, u32, u32) {
        (self.major, self.minor, self.patch)
    }
}

impl FromStr for Version {
    type Err = InvalidVersion;

    /// Parses `2.15.2` and `2.15.0-rc1`. A leading `v`, as in image tags, is dropped.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidVersion(text.chars().take(LONGEST).collect());
        if text.len() > LONGEST {
            return Err(invalid());
        }
        let bare = text.strip_prefix('v').unwrap_or(text);
        let (numbers, candidate) = match bare.split_once('-') {
            Some((numbers, candidate)) => (numbers, Some(candidate)),
            None => (bare, None),
        };
        if candidate.is_some_and(|candidate| !is_candidate(candidate)) {
            return Err(invalid());
        }
        let mut parts = numbers.split('.').map(number);
        match (parts.next().flatten(), parts.next().flatten(), parts.next().flatten(), parts.next()) {
            (Some(major), Some(minor), Some(patch), None) => {
                Ok(Self { major, minor, patch, candidate: candidate.map(str::to_owned) })
            }
            _ => Err(invalid()),
        }
    }
}

fn number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

/// Returns true for dot-separated words of characters that an image tag may contain.
fn is_candidate(text: &str) -> bool {
    text.split('.')
        .all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        match &self.candidate {
            Some(candidate) => write!(f, "-{candidate}"),
            None => Ok(()),
        }
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers().cmp(&other.numbers()).then_with(|| match (&self.candidate, &other.candidate) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(ours), Some(theirs)) => by_number(ours, theirs),
        })
    }
}

/// Compares `rc2` and `rc10` numerically: runs of digits compare by their value. Different texts never
/// compare as equal.
fn by_number(ours: &str, theirs: &str) -> Ordering {
    let (left, right) = (runs(ours), runs(theirs));
    for (left, right) in left.iter().zip(&right) {
        let order = match (left.parse::<u64>(), right.parse::<u64>()) {
            (Ok(left), Ok(right)) => left.cmp(&right),
            _ => left.cmp(right),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    left.len().cmp(&right.len()).then_with(|| ours.cmp(theirs))
}

/// Splits the text where digits begin and end.
fn runs(text: &str) -> Vec<&str> {
    let mut runs = Vec::new();
    let mut start = 0;
    let bytes = text.as_bytes();
    for at in 1..bytes.len() {
        if bytes[at].is_ascii_digit() != bytes[at - 1].is_ascii_digit() {
            runs.push(&text[start..at]);
            start = at;
        }
    }
    runs.push(&text[start..]);
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn a_version_reads_back_as_it_was_written() {
        for text in ["2.2.0", "2.15.2", "2.16.0-rc1", "2.8.6-build.4711", "10.0.0-a-b"] {
            assert_eq!(version(text).to_string(), text);
        }
        assert_eq!(version("v2.6.2").to_string(), "2.6.2");
    }

    #[test]
    fn an_invalid_version_is_refused_with_an_example() {
        for text in [
            "",
            "2",
            "2.6",
            "2.6.2.1",
            "2.6.x",
            "02.6.2",
            "2.6.-1",
            "2.6.2-",
            "2.6.2-rc 1",
            "2.6.2+build",
            "2.6.99999999999",
            " 2.6.2",
            "2.6.2\n",
            "latest",
            "-",
            "v",
            "vv2.6.2",
        ] {
            let error = text.parse::<Version>().unwrap_err().to_string();
            assert!(error.contains("2.15.2"), "{error}");
        }
    }

    #[test]
    fn a_candidate_is_older_than_its_release_and_candidates_count_by_number() {
        let sorted = [
            "2.14.4",
            "2.15.0-beta1",
            "2.15.0-rc1",
            "2.15.0-rc2",
            "2.15.0-rc10",
            "2.15.0",
            "2.15.1-rc1",
            "2.15.1",
        ];
        let mut versions: Vec<Version> = sorted.iter().rev().map(|text| version(text)).collect();
        versions.sort();
        assert_eq!(versions.iter().map(ToString::to_string).collect::<Vec<_>>(), sorted);
    }

    proptest! {
        #[test]
        fn parsing_a_version_never_panics_and_round_trips(text in "\\PC{0,80}") {
            if let Ok(read) = text.parse::<Version>() {
                prop_assert_eq!(read.to_string().parse::<Version>().unwrap(), read);
            }
        }

        #[test]
        fn order_agrees_with_equality(a in "2\\.1[0-9]\\.0(-rc0?[0-9]{1,2})?", b in "2\\.1[0-9]\\.0(-rc0?[0-9]{1,2})?") {
            let (a, b) = (version(&a), version(&b));
            prop_assert_eq!(a == b, a.cmp(&b) == Ordering::Equal);
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        }
    }
}
