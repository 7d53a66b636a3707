//! Progress messages of long work.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One step of long work, to be shown to a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// A message; shown as a line.
    Line(String),
    /// The build goes on: packages compiled so far, of how many.
    Building {
        /// The number of compiled packages.
        done: u64,
        /// Packages to compile.
        total: u64,
        /// Time since the build began.
        elapsed: Duration,
    },
    /// The control plane has ended while it was in use, and why.
    Gone(String),
}

/// A destination of progress messages. Cheap to clone.
#[derive(Clone)]
pub struct Reporter(Arc<dyn Fn(Progress) + Send + Sync>);

impl std::fmt::Debug for Reporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reporter")
    }
}

impl Reporter {
    /// A reporter that calls `show` for each step.
    pub fn new(show: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self(Arc::new(show))
    }

    /// Plain lines on standard error.
    ///
    /// It writes to the stream itself, not by `eprintln!`, which the test harness
    /// captures: a first build takes minutes, and the user who waits must see why.
    pub fn stderr() -> Self {
        Self::throttled(say)
    }

    /// Plain lines, wherever `show` puts them; a running build is one every ten seconds.
    pub fn throttled(show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let last = AtomicU64::new(u64::MAX);
        Self::new(move |step| match step {
            Progress::Line(line) => show(&line),
            Progress::Gone(reason) => show(&format!("the control plane is gone: {reason}")),
            Progress::Building { done, total, elapsed } => {
                let slot = elapsed.as_secs() / 10;
                if last.swap(slot, Ordering::Relaxed) != slot {
                    let seconds = elapsed.as_secs();
                    show(&format!("building the control plane: {done} of {total} packages, {seconds} s"));
                }
            }
        })
    }

    /// Says only on standard error when the control plane is gone. That it starts,
    /// which takes seconds, is not news in a test run; that it is gone explains
    /// whatever fails next.
    pub(crate) fn only_loss() -> Self {
        let stderr = Self::stderr();
        Self::new(move |step| {
            if matches!(step, Progress::Gone(_)) {
                (stderr.0)(step);
            }
        })
    }

    pub(crate) fn line(&self, line: impl Into<String>) {
        (self.0)(Progress::Line(line.into()));
    }

    pub(crate) fn gone(&self, reason: &str) {
        (self.0)(Progress::Gone(reason.to_owned()));
    }

    pub(crate) fn building(&self, done: u64, total: u64, elapsed: Duration) {
        (self.0)(Progress::Building { done, total, elapsed });
    }
}

/// Writes a line that the test harness does not capture. Best effort: a closed
/// standard error is no reason to fail.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "windlass-testenv: {line}");
}
