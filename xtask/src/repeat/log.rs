//! The log of runs: one line each, of fields that are separated by tabs.

use std::fmt;
use std::str::FromStr;

/// The result of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunResult {
    /// Every test passed.
    Passed,
    /// A test failed, or the binary ended before its tests did.
    Failed,
    /// The run took longer than allowed and was ended.
    Hung,
}

impl RunResult {
    const ALL: [(Self, &str); 3] = [(Self::Passed, "passed"), (Self::Failed, "FAILED"), (Self::Hung, "HUNG")];
}

/// One run of one binary.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// Package and target, as in `windlass-runtime/cache_live`.
    pub(super) binary: String,
    /// The text that the names of the tests had to contain; empty for all tests.
    pub(super) filter: String,
    /// The number of the run, from 1.
    pub(super) run: u32,
    pub(super) outcome: RunResult,
    pub(super) seconds: f64,
    /// Names of the tests that failed, or had not ended when the run was.
    pub(super) failed: Vec<String>,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome =
            RunResult::ALL.iter().find(|(outcome, _)| *outcome == self.outcome).map_or("", |(_, word)| word);
        let filter = if self.filter.is_empty() { "*" } else { &self.filter };
        let failed = if self.failed.is_empty() { "-".to_owned() } else { self.failed.join(",") };
        write!(f, "{}\t{filter}\t{}\t{outcome}\t{:.1}\t{failed}", self.binary, self.run, self.seconds)
    }
}

impl FromStr for Entry {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let wrong = || format!("not a line of this log: {line:?}");
        let fields: Vec<&str> = line.split('\t').collect();
        let [binary, filter, run, outcome, seconds, failed] = fields[..] else { return Err(wrong()) };
        let outcome = RunResult::ALL.iter().find(|(_, word)| *word == outcome).ok_or_else(wrong)?.0;
        Ok(Self {
            binary: binary.to_owned(),
            filter: if filter == "*" { String::new() } else { filter.to_owned() },
            run: run.parse().map_err(|_| wrong())?,
            outcome,
            seconds: seconds.parse().map_err(|_| wrong())?,
            failed: if failed == "-" { Vec::new() } else { failed.split(',').map(str::to_owned).collect() },
        })
    }
}

/// Reads a log. Its last line may be cut off: that run counts as not done.
pub(super) fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(str::parse).collect()
}

/// The runs that the log lacks, the first run of every binary before the second of any.
pub(super) fn left_to_do(log: &[Entry], binaries: &[String], filter: &str, times: u32) -> Vec<(String, u32)> {
    let done = |binary: &str, run: u32| {
        log.iter().any(|entry| entry.binary == binary && entry.filter == filter && entry.run == run)
    };
    (1..=times)
        .flat_map(|run| binaries.iter().map(move |binary| (binary, run)))
        .filter(|(binary, run)| !done(binary, *run))
        .map(|(binary, run)| (binary.clone(), run))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(binary: &str, filter: &str, run: u32) -> Entry {
        Entry {
            binary: binary.to_owned(),
            filter: filter.to_owned(),
            run,
            outcome: RunResult::Passed,
            seconds: 2.5,
            failed: Vec::new(),
        }
    }

    #[test]
    fn a_line_reads_back_as_the_run_that_wrote_it() {
        let failed = Entry {
            outcome: RunResult::Failed,
            failed: vec!["queue::is_fair".to_owned(), "two".to_owned()],
            ..entry("windlass-runtime/lib", "queue", 3)
        };
        assert_eq!(failed.to_string(), "windlass-runtime/lib\tqueue\t3\tFAILED\t2.5\tqueue::is_fair,two");
        for run in [failed, entry("a/b", "", 1), Entry { outcome: RunResult::Hung, ..entry("a/b", "", 2) }] {
            assert_eq!(run.to_string().parse::<Entry>().unwrap(), run);
        }
    }

    #[test]
    fn a_line_that_was_cut_off_is_a_run_that_is_not_done() {
        let text = format!("{}\n{}", entry("a/lib", "", 1), entry("a/lib", "", 2));
        assert_eq!(parse(&text).unwrap(), [entry("a/lib", "", 1)]);
        assert!(parse("").unwrap().is_empty());
        assert!(parse("something else\n").unwrap_err().contains("something else"));
    }

    #[test]
    fn runs_that_the_log_has_are_not_repeated() {
        let log = [entry("a/lib", "", 1), entry("b/lib", "", 1), entry("a/lib", "one", 2)];
        let (a, b) = ("a/lib".to_owned(), "b/lib".to_owned());
        let left = left_to_do(&log, &[a.clone(), b], "", 2);
        assert_eq!(left, [("a/lib".to_owned(), 2), ("b/lib".to_owned(), 2)]);
        assert_eq!(left_to_do(&log, std::slice::from_ref(&a), "one", 2), [("a/lib".to_owned(), 1)]);
        assert!(left_to_do(&log, &[a], "", 1).is_empty());
    }

    #[test]
    fn every_binary_has_its_turn_before_any_has_its_second() {
        let left = left_to_do(&[], &["a/lib".to_owned(), "b/lib".to_owned()], "", 2);
        let order: Vec<_> = left.iter().map(|(binary, run)| (&**binary, *run)).collect();
        assert_eq!(order, [("a/lib", 1), ("b/lib", 1), ("a/lib", 2), ("b/lib", 2)]);
    }
}
