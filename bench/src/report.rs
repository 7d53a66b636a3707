//! The raw data of a workload: everything that is needed to judge the run later. Pure, except for
//! [`Report::write`] and [`Report::read`].

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::stats::Summary;
use crate::subject::Subject;

/// The raw data of one workload, as measured once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) workload: String,
    pub(crate) title: String,
    pub(crate) command: String,
    pub(crate) date: String,
    /// The duration of the workload.
    pub(crate) minutes: f64,
    pub(crate) machine: Machine,
    /// The measured versions: programs, toolchains, control plane.
    pub(crate) versions: BTreeMap<String, String>,
    /// The circumstances: flags and environment.
    pub(crate) settings: BTreeMap<String, String>,
    /// Remarks that do not fit into a figure.
    pub(crate) notes: Vec<String>,
    pub(crate) runs: Vec<Run>,
}

/// One subject, once.
#[allow(clippy::struct_field_names)] // the third run of a cell is run 3
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// The group of the cell: `10000 Widgets, full`.
    pub(crate) group: String,
    pub(crate) subject: Subject,
    pub(crate) run: usize,
    pub(crate) figures: BTreeMap<String, f64>,
    /// Requests by `verb resource/subresource code`, from the audit log.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) requests: BTreeMap<String, usize>,
    /// The guards that were checked and held. A guard that does not hold is an error, and there is no report.
    pub(crate) guards: Vec<String>,
}

impl Run {
    pub(crate) fn new(group: impl Into<String>, subject: Subject, run: usize) -> Self {
        Self {
            group: group.into(),
            subject,
            run,
            figures: BTreeMap::new(),
            requests: BTreeMap::new(),
            guards: Vec::new(),
        }
    }

    pub(crate) fn figure(&mut self, key: &str, value: f64) {
        self.figures.insert(key.to_owned(), value);
    }

    /// Notes a guard that held, or fails.
    pub(crate) fn guard(&mut self, holds: bool, words: impl Into<String>) -> Result<()> {
        let words = words.into();
        anyhow::ensure!(
            holds,
            "{}, {}, run {}: it does not hold that {words}",
            self.group,
            self.subject,
            self.run
        );
        self.guards.push(words);
        Ok(())
    }
}

impl Report {
    /// The groups, in the order in which they were measured.
    pub(crate) fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !groups.contains(&&*run.group) {
                groups.push(&run.group);
            }
        }
        groups
    }

    /// The summary of a figure in a cell.
    pub(crate) fn summary(&self, group: &str, subject: Subject, figure: &str) -> Option<Summary> {
        let values: Vec<f64> = self
            .runs
            .iter()
            .filter(|run| run.group == group && run.subject == subject)
            .filter_map(|run| run.figures.get(figure).copied())
            .collect();
        Summary::of(&values)
    }

    pub(crate) fn write(&self, directory: &Path) -> Result<()> {
        std::fs::create_dir_all(directory)?;
        let path = directory.join(format!("{}.json", self.workload));
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    }

    /// The report of a workload, if there is one.
    pub(crate) fn read(directory: &Path, workload: &str) -> Result<Option<Self>> {
        let path = directory.join(format!("{workload}.json"));
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let read = serde_json::from_str(&text);
                Ok(Some(
                    read.with_context(|| format!("{} is not as this program writes it", path.display()))?,
                ))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn report() -> Report {
        let mut runs = Vec::new();
        for (subject, values) in [
            (Subject::Windlass, [1.0, 2.0, 3.0]),
            (Subject::Go, [20.0, 10.0, 30.0]),
            (Subject::GoTuned, [8.0, 9.0, 10.0]),
        ] {
            for (index, value) in values.into_iter().enumerate() {
                let mut run = Run::new("10 Widgets", subject, index + 1);
                run.figure("rss", value * 1e6);
                runs.push(run);
            }
        }
        Report {
            workload: "w0".into(),
            title: "nothing".into(),
            command: "bench w0".into(),
            date: "2026-01-01".into(),
            minutes: 1.0,
            machine: Machine::default(),
            versions: [("go".to_owned(), "1".to_owned())].into(),
            settings: BTreeMap::new(),
            notes: vec!["a note".into()],
            runs,
        }
    }

    #[test]
    fn a_cell_is_the_median_of_its_runs() {
        let report = report();
        let summary = report.summary("10 Widgets", Subject::Go, "rss").unwrap();
        assert_eq!((summary.median, summary.min, summary.max), (20e6, 10e6, 30e6));
        assert_eq!(report.summary("10 Widgets", Subject::Go, "cpu"), None);
        assert_eq!(report.groups(), ["10 Widgets"]);
    }

    #[test]
    fn a_written_report_is_read_back() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Report::read(directory.path(), "w0").unwrap(), None);
        report().write(directory.path()).unwrap();
        assert_eq!(Report::read(directory.path(), "w0").unwrap(), Some(report()));
    }

    #[test]
    fn a_guard_that_does_not_hold_is_an_error_that_says_where() {
        let mut run = Run::new("g", Subject::GoTuned, 2);
        run.guard(true, "all is well").unwrap();
        let error = run.guard(false, "nothing was lost").unwrap_err().to_string();
        assert_eq!(error, "g, go-tuned, run 2: it does not hold that nothing was lost");
        assert_eq!(run.guards, ["all is well"]);
    }
}
