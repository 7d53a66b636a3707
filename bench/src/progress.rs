//! Progress: the present workload, how far it is, and the estimated rest.

use std::io::Write as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Counts cells, on standard error.
pub(crate) struct Progress {
    began: Instant,
    state: Mutex<ProgressState>,
}

struct ProgressState {
    workload: String,
    began: Instant,
    done: usize,
    total: usize,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let began = Instant::now();
        let state = ProgressState { workload: String::new(), began, done: 0, total: 0 };
        Self { began, state: Mutex::new(state) }
    }

    /// A workload of so many cells begins.
    pub(crate) fn begin(&self, workload: &str, total: usize) {
        if let Ok(mut state) = self.state.lock() {
            *state = ProgressState { workload: workload.to_owned(), began: Instant::now(), done: 0, total };
        }
    }

    /// The next cell begins.
    pub(crate) fn cell(&self, what: &str) {
        let Ok(mut state) = self.state.lock() else { return };
        let left = remaining(state.began.elapsed(), state.done, state.total);
        state.done += 1;
        let line =
            format!("{} cell {} of {}: {what}{}", state.workload, state.done, state.total, in_words(left));
        drop(state);
        self.say(&line);
    }

    /// Prints a message beside the progress.
    pub(crate) fn say(&self, line: &str) {
        let seconds = self.began.elapsed().as_secs();
        let _ = writeln!(std::io::stderr(), "[{:3}:{:02}] {line}", seconds / 60, seconds % 60);
    }
}

/// The estimated remaining time, at the pace so far.
fn remaining(elapsed: Duration, done: usize, total: usize) -> Option<Duration> {
    let each = elapsed.checked_div(u32::try_from(done).ok()?)?;
    Some(each * u32::try_from(total.saturating_sub(done)).ok()?)
}

fn in_words(left: Option<Duration>) -> String {
    match left.map(|left| left.as_secs()) {
        None => String::new(),
        Some(seconds) if seconds < 90 => format!(" (about {seconds} s left)"),
        Some(seconds) => format!(" (about {} min left)", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_is_estimated_from_the_work_done() {
        let minute = Duration::from_mins(1);
        assert_eq!(remaining(minute, 0, 4), None);
        assert_eq!(remaining(minute, 1, 4), Some(minute * 3));
        assert_eq!(remaining(minute, 4, 4), Some(Duration::ZERO));
        assert_eq!(in_words(Some(minute * 3)), " (about 3 min left)");
        assert_eq!(in_words(Some(minute)), " (about 60 s left)");
    }
}
