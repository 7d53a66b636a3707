//! The report of a mutation.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::judge::Finding;
use super::results::Judged;
use super::selection::VARIABLE;
use crate::torture::command;

/// The number of characters of a message that a report shows.
const SHOWN: usize = 600;

/// The report of a [`Mutation`](super::Mutation). Prints the numbers of cases by finding, and each failure
/// with the command that repeats it.
#[derive(Clone, Debug)]
#[must_use = "a report that nobody reads finds nothing"]
pub struct MutationReport {
    pub(super) name: String,
    pub(super) command: String,
    /// Mistakes in the files, and a base that does not become ready.
    pub(super) mistakes: Vec<String>,
    pub(super) judged: Vec<Judged>,
    /// The number of all cases, also of those in other slices.
    pub(super) total: usize,
    /// The file with the table.
    pub(super) table: Option<PathBuf>,
    pub(super) took: Duration,
}

impl MutationReport {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            command: command(),
            mistakes: Vec::new(),
            judged: Vec::new(),
            total: 0,
            table: None,
            took: Duration::ZERO,
        }
    }

    /// The ids of the cases that failed, each with the word for its finding and the message.
    pub fn failures(&self) -> Vec<(&str, &str, &str)> {
        let failed = self.judged.iter().filter(|judged| judged.finding.is_failure());
        failed.map(|judged| (judged.id.as_str(), judged.finding.word(), judged.message.as_str())).collect()
    }

    /// The finding of a case, as it stands in the table; `None` if it was not run.
    pub fn finding(&self, id: &str) -> Option<&str> {
        self.judged.iter().find(|judged| judged.id == id).map(|judged| judged.finding.word())
    }

    /// The mistakes in what was declared, by which nothing or not everything was run.
    pub fn mistakes(&self) -> &[String] {
        &self.mistakes
    }

    /// The number of cases that were run.
    pub fn cases(&self) -> usize {
        self.judged.len()
    }

    /// The number of cases that there are.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Returns true if there are neither mistakes nor failures.
    pub fn passed(&self) -> bool {
        self.mistakes.is_empty() && self.failures().is_empty()
    }

    /// Fails the test with the report unless it [`passed`](Self::passed).
    ///
    /// # Panics
    ///
    /// If it did not pass: that is what fails the test.
    #[track_caller]
    pub fn assert_passed(&self) {
        assert!(self.passed(), "{self}");
    }
}

impl fmt::Display for MutationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, total, .. } = self;
        let seconds = self.took.as_secs_f32();
        writeln!(f, "mutation of {name}: {} of {total} cases in {seconds:.1} s", self.judged.len())?;
        for finding in Finding::ALL {
            let count = self.judged.iter().filter(|judged| judged.finding == finding).count();
            if count > 0 {
                writeln!(f, "{:<10}{count:>6}", finding.word())?;
            }
        }
        if let Some(table) = &self.table {
            writeln!(f, "table: {}", table.display())?;
        }
        self.mistakes.iter().try_for_each(|mistake| writeln!(f, "MISTAKE {mistake}"))?;
        for (id, word, message) in self.failures() {
            let message: String = message.chars().take(SHOWN).collect();
            writeln!(f, "FAILED {id}\n  {word}: {message}\n  alone: {VARIABLE}='{id}' {}", self.command)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_how_to_run_it_alone() {
        let judged = |id: &str, finding, message: &str| Judged {
            id: id.to_owned(),
            finding,
            message: message.to_owned(),
        };
        let mut report = MutationReport::new("toy");
        report.command = "cargo test".to_owned();
        report.total = 3;
        report.judged = vec![judged("spec.a=change", Finding::Effect, "x")];
        assert!(report.passed());
        report.judged.push(judged("spec.b=change", Finding::Ignored, "ready, and no object changed"));
        assert_eq!(
            report.to_string(),
            "mutation of toy: 2 of 3 cases in 0.0 s
effect         1
IGNORED        1
FAILED spec.b=change
  IGNORED: ready, and no object changed
  alone: WINDLASS_MUTATION='spec.b=change' cargo test
"
        );
        assert!(!report.passed());
        assert_eq!(report.finding("spec.a=change"), Some("effect"));
        report.judged.clear();
        report.mistakes.push("a mistake".to_owned());
        assert!(!report.passed());
    }
}
