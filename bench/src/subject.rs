//! The subjects of the measurements. Pure.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// One of the programs that do the same work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Subject {
    /// The program `bench/subject` on Windlass
    Windlass,
    /// The program `bench/go` on controller-runtime with its default settings
    Go,
    /// The program `bench/go --tuned` with GOMEMLIMIT
    GoTuned,
}

impl Subject {
    pub(crate) const ALL: [Self; 3] = [Self::Windlass, Self::Go, Self::GoTuned];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Windlass => "windlass",
            Self::Go => "go",
            Self::GoTuned => "go-tuned",
        }
    }

    pub(crate) fn is_go(self) -> bool {
        self != Self::Windlass
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The subjects in the order of a run: turned round every other one, so that none always has the warm or the
/// cold place.
pub(crate) fn order(subjects: &[Subject], run: usize) -> Vec<Subject> {
    let mut order = subjects.to_vec();
    if run.is_multiple_of(2) {
        order.reverse();
    }
    order
}

/// The `GOMEMLIMIT` of the Go program: about the live heap and a quarter more, over a floor for everything
/// else. With a lower limit it would collect all the time; a higher one would change nothing. The live heap
/// of one full Widget is taken to be 4 KiB in Go, that of a stripped one or of its metadata 1 KiB: estimates
/// from the size of their JSON.
pub(crate) fn go_memory_limit(objects: usize, bytes_each: usize) -> String {
    const FLOOR: usize = 48 << 20;
    let bytes = FLOOR + objects * bytes_each * 5 / 4;
    format!("{}MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_flips_every_run() {
        let subjects = [Subject::Windlass, Subject::Go];
        assert_eq!(order(&subjects, 1), [Subject::Windlass, Subject::Go]);
        assert_eq!(order(&subjects, 2), [Subject::Go, Subject::Windlass]);
        assert_eq!(order(&subjects, 3), order(&subjects, 1));
    }

    #[test]
    fn the_memory_limit_grows_with_what_is_kept() {
        assert_eq!(go_memory_limit(0, 4096), "48MiB");
        assert_eq!(go_memory_limit(10_000, 4096), "97MiB");
    }
}
