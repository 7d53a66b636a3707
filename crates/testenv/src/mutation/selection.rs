//! Selection of the cases to run: all, a slice, or those whose ids begin with a text.
//!
//! A slice is a hash of the case's id, so that it stays the same when other cases come and go, and `n` runs
//! with `k` from 0 to `n - 1` are the whole.

use sha2::{Digest as _, Sha256};

/// The variable that selects cases.
pub(super) const VARIABLE: &str = "WINDLASS_MUTATION";

/// The variable with the number of lanes.
const SIDE_BY_SIDE: &str = "WINDLASS_MUTATION_SIDE_BY_SIDE";

/// The number of lanes: from the environment, or else the author's setting.
pub(super) fn side_by_side(otherwise: usize) -> Result<usize, String> {
    let value = std::env::var(SIDE_BY_SIDE).ok().filter(|value| !value.is_empty());
    value.map_or(Ok(otherwise), |value| parse_lanes(&value))
}

fn parse_lanes(value: &str) -> Result<usize, String> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("{SIDE_BY_SIDE}={value:?} is not valid: use a number from 1"))
}

/// The cases to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    All,
    Slice {
        slice: u64,
        of: u64,
    },
    /// The cases whose ids begin with this text.
    Named(String),
}

impl Selection {
    /// Reads the environment; the author's selection holds where it says nothing.
    pub(super) fn from_env(otherwise: Self) -> Result<Self, String> {
        let value = std::env::var(VARIABLE).ok().filter(|value| !value.is_empty());
        value.map_or(Ok(otherwise), |value| Self::read(&value))
    }

    fn read(value: &str) -> Result<Self, String> {
        match (value, value.strip_prefix("slice:")) {
            ("all", _) => Ok(Self::All),
            (_, Some(slice)) => Self::slice(slice).ok_or_else(|| {
                format!("{VARIABLE}={value:?} is not valid: use all, slice:<k>/<n>, or the beginning of ids")
            }),
            (id, None) => Ok(Self::Named(id.to_owned())),
        }
    }

    /// Reads `<k>/<n>`. A text that is no number below n is hashed, so that a commit can stand for k.
    fn slice(text: &str) -> Option<Self> {
        let (slice, of) = text.rsplit_once('/')?;
        let of: u64 = of.parse().ok().filter(|of| *of > 0)?;
        if slice.is_empty() {
            return None;
        }
        Some(Self::numbered(slice, of))
    }

    fn numbered(slice: &str, of: u64) -> Self {
        let number = slice.parse().ok().filter(|slice| *slice < of);
        Self::Slice { slice: number.unwrap_or_else(|| hash(slice) % of), of }
    }

    /// One of `of` slices, chosen by the commit that is checked out; the first one without a repository.
    pub(super) fn by_commit(of: u64) -> Self {
        Self::numbered(commit().as_deref().unwrap_or("0"), of.max(1))
    }

    pub(super) fn includes(&self, id: &str) -> bool {
        match self {
            Self::All => true,
            Self::Slice { slice, of } => hash(id) % of == *slice,
            Self::Named(start) => id.starts_with(start.as_str()),
        }
    }
}

/// The hash of the commit that is checked out.
pub(super) fn commit() -> Option<String> {
    let output = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output().ok()?;
    let commit = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !commit.is_empty()).then_some(commit)
}

fn hash(text: &str) -> u64 {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slices_together_are_the_whole_and_share_nothing() {
        for number in 0..50 {
            let id = format!("spec.f{number}=removed");
            let slices = (0..4).filter(|slice| Selection::Slice { slice: *slice, of: 4 }.includes(&id));
            assert_eq!(slices.count(), 1, "{id}");
        }
    }

    #[test]
    fn the_variable_selects_all_a_slice_or_cases_by_name() {
        let read = Selection::read;
        assert_eq!(read("all"), Ok(Selection::All));
        assert_eq!(read("slice:3/4"), Ok(Selection::Slice { slice: 3, of: 4 }));
        assert!(matches!(read("slice:9113d23ab/4"), Ok(Selection::Slice { slice: 0..4, of: 4 })));
        let named = read("spec.a=removed").unwrap();
        assert!(named.includes("spec.a=removed") && !named.includes("spec.b=removed"));
        for nonsense in ["slice:", "slice:3", "slice:3/0", "slice:/4"] {
            assert!(read(nonsense).unwrap_err().contains("slice:<k>/<n>"), "{nonsense}");
        }
    }

    #[test]
    fn the_number_of_lanes_is_read_from_the_environment() {
        assert_eq!(parse_lanes("8"), Ok(8));
        for nonsense in ["0", "-1", "many"] {
            assert!(parse_lanes(nonsense).unwrap_err().contains(nonsense));
        }
    }

    #[test]
    fn a_commit_always_selects_the_same_slice() {
        assert_eq!(Selection::by_commit(7), Selection::by_commit(7));
        assert_eq!(Selection::by_commit(1), Selection::Slice { slice: 0, of: 1 });
    }
}
