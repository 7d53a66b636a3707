//! Selection of the points to run (all, a slice, or one) and of the number that run at a time.
//!
//! A slice is a hash of the point's name, so that it stays the same when other points come and go, and `n`
//! runs with `k` from 0 to `n - 1` are the whole.

use sha2::{Digest as _, Sha256};

use super::point::Point;

/// The variable that picks one point.
pub(super) const POINT: &str = "WINDLASS_TORTURE_POINT";
/// The environment variable that selects the points to run.
pub(super) const EXTENT: &str = "WINDLASS_TORTURE";
/// The environment variable with the number of points that run at a time.
const SIDE_BY_SIDE: &str = "WINDLASS_TORTURE_SIDE_BY_SIDE";

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The number of repetitions that run at a time: from the environment, or else the author's setting.
pub(super) fn side_by_side(otherwise: usize) -> Result<usize, String> {
    parse_side_by_side(set(SIDE_BY_SIDE).as_deref(), otherwise)
}

fn parse_side_by_side(value: Option<&str>, otherwise: usize) -> Result<usize, String> {
    let Some(value) = value else { return Ok(otherwise) };
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("{SIDE_BY_SIDE}={value:?} is not valid: use a number from 1"))
}

/// The points to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    All,
    Slice { slice: u64, of: u64 },
    One(String),
}

impl Selection {
    /// Reads the environment; what the author chose holds where it says nothing.
    pub(super) fn from_env(otherwise: Self) -> Result<Self, String> {
        Self::read(set(POINT), set(EXTENT).as_deref(), otherwise)
    }

    fn read(point: Option<String>, extent: Option<&str>, otherwise: Self) -> Result<Self, String> {
        match (point, extent) {
            (Some(point), _) => Ok(Self::One(point)),
            (None, Some("all")) => Ok(Self::All),
            (None, Some(extent)) => extent.strip_prefix("slice:").and_then(Self::slice).ok_or_else(|| {
                format!("{EXTENT}={extent:?} is not valid: use all, or slice:<k>/<n> with a number or a commit as k")
            }),
            (None, None) => Ok(otherwise),
        }
    }

    /// Reads `<k>/<n>`. What is no number below n is hashed, so that a commit can stand for k.
    pub(super) fn slice(text: &str) -> Option<Self> {
        let (slice, of) = text.rsplit_once('/')?;
        let of: u64 = of.parse().ok().filter(|of| *of > 0)?;
        if slice.is_empty() {
            return None;
        }
        let number = slice.parse().ok().filter(|slice| *slice < of);
        Some(Self::Slice { slice: number.unwrap_or_else(|| hash(slice) % of), of })
    }

    /// The slice of the present commit; the first one where there is none.
    pub(super) fn by_commit(of: u64) -> Self {
        let head = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output();
        let commit = head.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        let of = of.max(1);
        Self::slice(&format!("{}/{of}", commit.unwrap_or_default())).unwrap_or(Self::Slice { slice: 0, of })
    }

    pub(super) fn includes(&self, point: &Point) -> bool {
        match self {
            Self::All => true,
            Self::Slice { slice, of } => hash(&point.to_string()) % of == *slice,
            Self::One(name) => point.to_string() == *name,
        }
    }
}

fn hash(text: &str) -> u64 {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::super::point::{Family, Trigger};
    use super::*;

    fn points() -> Vec<Point> {
        let step = |number: u32| Trigger::Step(number.to_string(), "r".to_owned());
        (0..50).map(|number| Point { family: Family::Unobserved, trigger: step(number) }).collect()
    }

    #[test]
    fn the_slices_together_are_the_whole_and_share_nothing() {
        for point in points() {
            let slices = (0..4).filter(|slice| Selection::Slice { slice: *slice, of: 4 }.includes(&point));
            assert_eq!(slices.count(), 1, "{point}");
        }
    }

    #[test]
    fn a_commit_stands_for_a_slice() {
        let of = |text| Selection::slice(text);
        assert_eq!(of("3/4"), Some(Selection::Slice { slice: 3, of: 4 }));
        let Some(Selection::Slice { slice, of: 4 }) = of("9113d23ab/4") else { panic!() };
        assert!(slice < 4);
        for nonsense in ["", "3", "3/0", "/4", "3/x"] {
            assert_eq!(of(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn the_environment_overrides_the_author() {
        let slice = Selection::Slice { slice: 0, of: 2 };
        let read =
            |point: Option<&str>, extent| Selection::read(point.map(str::to_owned), extent, slice.clone());
        assert_eq!(read(None, None), Ok(slice.clone()));
        assert_eq!(read(None, Some("all")), Ok(Selection::All));
        assert_eq!(read(Some("before:x"), Some("all")), Ok(Selection::One("before:x".to_owned())));
        assert!(read(None, Some("some")).unwrap_err().contains("slice:<k>/<n>"));
    }

    #[test]
    fn the_number_of_repetitions_at_a_time_is_read_from_the_environment() {
        assert_eq!(parse_side_by_side(None, 2), Ok(2));
        assert_eq!(parse_side_by_side(Some("8"), 2), Ok(8));
        for nonsense in ["0", "-1", "many"] {
            assert!(parse_side_by_side(Some(nonsense), 2).unwrap_err().contains(nonsense));
        }
    }

    #[test]
    fn one_point_is_picked_by_its_name() {
        let one = Selection::One("unobserved:7:r".to_owned());
        assert_eq!(points().iter().filter(|point| one.includes(point)).count(), 1);
    }
}
