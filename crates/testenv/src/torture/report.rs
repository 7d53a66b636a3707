//! The report of a torture.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::point::{Family, Point};
use super::selection::{EXTENT, POINT};

/// The report of a [`Torture`](super::Torture). Prints as a table, followed by each failure and the command
/// that repeats it.
#[derive(Clone, Debug)]
#[must_use = "a report that nobody reads finds nothing"]
pub struct Report {
    name: String,
    command: String,
    /// The problems of the undisturbed run.
    pub(super) undisturbed: Vec<String>,
    pub(super) writes: usize,
    pub(super) judged: Vec<Judged>,
    /// Points of other slices.
    pub(super) left_out: usize,
    pub(super) took: Duration,
}

/// One point and how its repetition went.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub(super) point: Point,
    pub(super) reached: bool,
    pub(super) problems: Vec<String>,
    pub(super) took: Duration,
}

/// A point where the operator failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The point; `None` is the undisturbed run.
    pub point: Option<Point>,
    /// The problems found, in words.
    pub problems: Vec<String>,
}

impl Report {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            command: command(),
            undisturbed: Vec::new(),
            writes: 0,
            judged: Vec::new(),
            left_out: 0,
            took: Duration::ZERO,
        }
    }

    /// The report of a scenario that does not work at all.
    pub(super) fn without_disturbance(self, problems: Vec<String>) -> Self {
        Self { undisturbed: problems, ..self }
    }

    /// The points where the operator failed.
    pub fn failures(&self) -> Vec<Failure> {
        let undisturbed = Failure { point: None, problems: self.undisturbed.clone() };
        let disturbed = self
            .judged
            .iter()
            .map(|judged| Failure { point: Some(judged.point.clone()), problems: judged.problems.clone() });
        std::iter::once(undisturbed).chain(disturbed).filter(|failure| !failure.problems.is_empty()).collect()
    }

    /// The points that did not occur in their repetitions, though they did in the undisturbed run: neither
    /// passed nor failed.
    pub fn not_reached(&self) -> Vec<&Point> {
        self.lost().map(|judged| &judged.point).collect()
    }

    fn lost(&self) -> impl Iterator<Item = &Judged> {
        self.judged.iter().filter(|judged| !judged.reached && judged.problems.is_empty())
    }

    /// The number of points that were run.
    pub fn points(&self) -> usize {
        self.judged.len()
    }

    /// The number of writes that the operator made in the undisturbed run.
    pub fn undisturbed_writes(&self) -> usize {
        self.writes
    }

    /// Returns true if there is no failure, and at least one point of each family was reached. In a slice,
    /// one reached point of any family is enough: a slice may have a single point of a family, and that may
    /// be a short-lived status that the next run merges with another.
    pub fn passed(&self) -> bool {
        let rows = self.rows();
        let mut reached = rows.values().map(|row| row.points > row.not_reached);
        let enough = if self.left_out > 0 {
            rows.is_empty() || reached.any(|one| one)
        } else {
            reached.all(|one| one)
        };
        self.failures().is_empty() && enough
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

    fn rows(&self) -> BTreeMap<Family, Row> {
        let mut rows: BTreeMap<Family, Row> = BTreeMap::new();
        for judged in &self.judged {
            let row = rows.entry(judged.point.family()).or_default();
            row.points += 1;
            row.failures += usize::from(!judged.problems.is_empty());
            row.not_reached += usize::from(!judged.reached && judged.problems.is_empty());
            row.took += judged.took;
        }
        rows
    }
}

#[derive(Default)]
struct Row {
    points: usize,
    failures: usize,
    not_reached: usize,
    took: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, writes, .. } = self;
        writeln!(f, "torture of {name}: {writes} writes when undisturbed")?;
        writeln!(
            f,
            "{:<12}{:>8}{:>10}{:>13}{:>10}",
            "family", "points", "failures", "not reached", "seconds"
        )?;
        let mut all = Row { took: self.took, ..Row::default() };
        let line = |f: &mut fmt::Formatter<'_>, name: &dyn fmt::Display, row: &Row| {
            let Row { points, failures, not_reached, took } = row;
            writeln!(f, "{name:<12}{points:>8}{failures:>10}{not_reached:>13}{:>10.1}", took.as_secs_f32())
        };
        for (family, row) in self.rows() {
            line(f, &family, &row)?;
            all.points += row.points;
            all.failures += row.failures;
            all.not_reached += row.not_reached;
        }
        line(f, &"all", &all)?;
        if self.left_out > 0 {
            writeln!(f, "{} points were left out; {EXTENT}=all runs them", self.left_out)?;
        }
        for failure in self.failures() {
            match &failure.point {
                Some(point) => writeln!(f, "FAILED {point}")?,
                None => writeln!(f, "FAILED without any disturbance")?,
            }
            failure.problems.iter().try_for_each(|problem| writeln!(f, "  {problem}"))?;
            if let Some(point) = &failure.point {
                writeln!(f, "  alone: {POINT}='{point}' {}", self.command)?;
            }
        }
        self.lost().try_for_each(|judged| writeln!(f, "not reached: {}", judged.point))
    }
}

/// The command that runs the present test again. Best effort: cargo tells the package, the program's name the
/// target, and the thread's name the test.
pub(crate) fn command() -> String {
    let program = std::env::current_exe().ok();
    let program = program.as_ref().and_then(|path| path.file_stem()).and_then(|stem| stem.to_str());
    let package = std::env::var("CARGO_PKG_NAME").ok();
    let thread = std::thread::current();
    command_of(package.as_deref(), program, thread.name())
}

fn command_of(package: Option<&str>, program: Option<&str>, test: Option<&str>) -> String {
    let mut words = vec!["cargo test".to_owned()];
    if let Some(package) = package {
        words.push(format!("-p {package}"));
        // Cargo names test programs <target>-<hash>.
        if let Some((target, _)) = program.and_then(|program| program.rsplit_once('-')) {
            let library = package.replace('-', "_") == target;
            words.push(if library { "--lib".to_owned() } else { format!("--test {target}") });
        }
    }
    if let Some(test) = test.filter(|test| *test != "main") {
        words.push(format!("-- --exact {test} --nocapture"));
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::point::Trigger;
    use super::*;

    fn judged(family: Family, step: &str, reached: bool, problems: &[&str]) -> Judged {
        Judged {
            point: Point { family, trigger: Trigger::Step(step.to_owned(), "r".to_owned()) },
            reached,
            problems: problems.iter().map(|&problem| problem.to_owned()).collect(),
            took: Duration::from_millis(1500),
        }
    }

    fn report(judged: Vec<Judged>) -> Report {
        let command = "cargo test".to_owned();
        Report { judged, writes: 3, command, ..Report::new("toy") }
    }

    #[test]
    fn a_failure_says_how_to_run_it_alone() {
        let report = report(vec![
            judged(Family::Before, "a", true, &[]),
            judged(Family::Before, "b", true, &["it went wrong"]),
            judged(Family::Lost, "c", false, &[]),
        ]);
        assert_eq!(
            report.to_string(),
            "torture of toy: 3 writes when undisturbed
family        points  failures  not reached   seconds
before             2         1            0       3.0
lost               1         0            1       1.5
all                3         1            1       0.0
FAILED before:b:r
  it went wrong
  alone: WINDLASS_TORTURE_POINT='before:b:r' cargo test
not reached: lost:c:r
"
        );
        assert!(!report.passed());
    }

    #[test]
    fn points_that_nobody_reached_are_no_pass() {
        let unreached = || judged(Family::Lost, "c", false, &[]);
        assert!(!report(vec![unreached()]).passed());
        assert!(report(vec![unreached(), judged(Family::Lost, "d", true, &[])]).passed());
        let of_another_family = || vec![unreached(), judged(Family::Before, "d", true, &[])];
        assert!(!report(of_another_family()).passed());
        let slice = |judged| Report { left_out: 7, ..report(judged) };
        assert!(slice(of_another_family()).passed(), "a slice may have one point of a family");
        assert!(!slice(vec![unreached()]).passed());
        assert!(!slice(vec![judged(Family::Before, "d", true, &["wrong"])]).passed());
    }

    #[test]
    fn a_failure_without_any_disturbance_is_one() {
        let mut report = report(Vec::new());
        assert!(report.passed());
        report.undisturbed.push("it does not work at all".to_owned());
        assert!(!report.passed());
        assert!(report.to_string().contains("FAILED without any disturbance\n  it does not work at all\n"));
    }

    #[test]
    fn the_command_names_package_target_and_test() {
        let of = |program| command_of(Some("my-operator"), Some(program), Some("it_survives"));
        let test = "-- --exact it_survives --nocapture";
        assert_eq!(of("torture-0123abcd"), format!("cargo test -p my-operator --test torture {test}"));
        assert_eq!(of("my_operator-0123abcd"), format!("cargo test -p my-operator --lib {test}"));
        assert_eq!(command_of(None, None, Some("main")), "cargo test");
    }
}
