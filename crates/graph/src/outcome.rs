//! Results of a visit and outcomes of a node.
//!
//! These types know nothing of graphs: an ordered list of steps or a sequence of
//! phases ends in the same [`Outcome`]s and fills the same [`Report`](crate::Report).

use std::{error::Error, fmt, ops::AddAssign, sync::Arc, time::Duration};

/// The result of a visit that did not fail.
///
/// A visit returns `Result<Progress<W>, E>`, so `?` is how it fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress<W = String> {
    /// The node is as it should be: what comes after it may start.
    Ready,
    /// No error occurred, but the node is not ready yet, for this reason.
    Waiting(W),
}

/// The outcome of a node.
///
/// `E` is the visits' error and `W` their reason to wait. Both are kept as they were
/// given, so the one who reads the report can still match on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<E, W = String> {
    /// Visited, and as it should be.
    Ready,
    /// Visited, not there yet. Not a failure, but what comes after it has to wait too.
    Waiting(W),
    /// Visited, and the visit failed.
    Failed(Failure<E>),
    /// The node was not visited, because a node before it is not ready.
    Skipped {
        /// The node at the root of it, which was visited and is waiting or failed.
        because_of: Arc<str>,
    },
    /// The run was cancelled before the node's visit ended.
    ///
    /// The [duration](crate::NodeReport::duration) shows whether its visit was started, and so may have had
    /// effects: a visit that was not started has none.
    Cancelled,
    /// The node was not visited, because the graph was only [outlined](crate::Graph::outline): this is what a
    /// visit would do.
    Planned(W),
}

impl<E, W> Outcome<E, W> {
    /// Returns true if the node is ready.
    pub fn is_ready(&self) -> bool {
        matches!(self, Outcome::Ready)
    }

    /// The failure, if it is one.
    pub fn failure(&self) -> Option<&Failure<E>> {
        match self {
            Outcome::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// The outcome in one lower-case word, the same for ever: for metrics and JSON.
    pub fn label(&self) -> &'static str {
        match self {
            Outcome::Ready => "ready",
            Outcome::Waiting(_) => "waiting",
            Outcome::Failed(_) => "failed",
            Outcome::Skipped { .. } => "skipped",
            Outcome::Cancelled => "cancelled",
            Outcome::Planned(_) => "planned",
        }
    }
}

impl<E, W> From<Result<Progress<W>, E>> for Outcome<E, W> {
    fn from(result: Result<Progress<W>, E>) -> Self {
        match result {
            Ok(Progress::Ready) => Outcome::Ready,
            Ok(Progress::Waiting(reason)) => Outcome::Waiting(reason),
            Err(error) => Outcome::Failed(Failure::Error(error)),
        }
    }
}

impl<E: fmt::Display, W: fmt::Display> fmt::Display for Outcome<E, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())?;
        match self {
            Outcome::Ready | Outcome::Cancelled => Ok(()),
            Outcome::Waiting(reason) | Outcome::Planned(reason) => write!(f, ": {reason}"),
            Outcome::Failed(failure) => write!(f, ": {failure}"),
            Outcome::Skipped { because_of } => write!(f, " because of {because_of}"),
        }
    }
}

/// Why a visit failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure<E> {
    /// The visit returned this error.
    Error(E),
    /// The visit panicked with this message.
    Panicked(String),
    /// The visit did not end before its deadline and was dropped.
    DeadlineExceeded(Duration),
}

impl<E> Failure<E> {
    /// The error that the visit returned, if it got so far.
    pub fn error(&self) -> Option<&E> {
        match self {
            Failure::Error(error) => Some(error),
            Failure::Panicked(_) | Failure::DeadlineExceeded(_) => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Error(error) => error.fmt(f),
            Failure::Panicked(message) => write!(f, "panicked: {message}"),
            Failure::DeadlineExceeded(limit) => write!(f, "did not end within {limit:?}"),
        }
    }
}

impl<E: Error> Error for Failure<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // The message is the error's own, so its cause is the next in the chain.
        self.error().and_then(Error::source)
    }
}

/// The number of nodes per outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Nodes that are as they should be.
    pub ready: usize,
    /// Nodes that are not there yet.
    pub waiting: usize,
    /// Nodes whose visit failed.
    pub failed: usize,
    /// Nodes held back by others.
    pub skipped: usize,
    /// Nodes whose visit did not end, or did not begin, before the run was cancelled.
    pub cancelled: usize,
    /// Nodes of a graph that was not run.
    pub planned: usize,
}

impl Summary {
    /// The total number of nodes.
    pub fn total(&self) -> usize {
        self.ready + self.waiting + self.failed + self.skipped + self.cancelled + self.planned
    }

    /// Returns true if all nodes are ready, also for an empty graph.
    pub fn is_ready(&self) -> bool {
        self.ready == self.total()
    }

    /// Counts one outcome more.
    pub fn count<E, W>(&mut self, outcome: &Outcome<E, W>) {
        *match outcome {
            Outcome::Ready => &mut self.ready,
            Outcome::Waiting(_) => &mut self.waiting,
            Outcome::Failed(_) => &mut self.failed,
            Outcome::Skipped { .. } => &mut self.skipped,
            Outcome::Cancelled => &mut self.cancelled,
            Outcome::Planned(_) => &mut self.planned,
        } += 1;
    }
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.ready += other.ready;
        self.waiting += other.waiting;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.cancelled += other.cancelled;
        self.planned += other.planned;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.planned > 0 && self.planned == self.total() {
            return write!(f, "{} planned", self.planned);
        }
        write!(f, "{} of {} ready", self.ready, self.total())?;
        let others = [
            (self.waiting, "waiting"),
            (self.failed, "failed"),
            (self.skipped, "skipped"),
            (self.cancelled, "cancelled"),
            (self.planned, "planned"),
        ];
        for (number, word) in others {
            if number > 0 {
                write!(f, ", {number} {word}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Plain = Outcome<&'static str>;

    #[test]
    fn an_outcome_reads_as_a_sentence() {
        let texts = [
            Plain::Ready,
            Plain::Waiting("0 of 1 replicas".into()),
            Plain::Failed(Failure::Error("no route")),
            Plain::Failed(Failure::Panicked("oh".into())),
            Plain::Failed(Failure::DeadlineExceeded(Duration::from_secs(2))),
            Plain::Skipped { because_of: "db".into() },
            Plain::Cancelled,
        ]
        .map(|outcome| outcome.to_string());
        assert_eq!(
            texts,
            [
                "ready",
                "waiting: 0 of 1 replicas",
                "failed: no route",
                "failed: panicked: oh",
                "failed: did not end within 2s",
                "skipped because of db",
                "cancelled",
            ]
        );
    }

    #[test]
    fn a_summary_leaves_out_what_did_not_happen() {
        let mut summary = Summary::default();
        assert!(summary.is_ready(), "nothing to do is done");
        summary.count(&Plain::Ready);
        assert!(summary.is_ready());
        summary.count(&Plain::Skipped { because_of: "a".into() });
        summary += Summary { failed: 2, ..Summary::default() };
        assert_eq!(summary.to_string(), "1 of 4 ready, 2 failed, 1 skipped");
        assert!(!summary.is_ready());
    }

    #[test]
    fn a_failure_is_as_transparent_as_its_error() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] std::num::ParseIntError);
        let failure = Failure::Error(Outer("x".parse::<u8>().unwrap_err()));
        assert_eq!(failure.to_string(), "outer");
        assert_eq!(failure.source().unwrap().to_string(), "invalid digit found in string");
    }
}
