//! The report of a run: for each node its outcome, its duration, and the node that held it back.

use std::{fmt, iter, sync::Arc, time::Duration};

use crate::{
    Direction, Failure, GraphError, Key, Outcome, Summary,
    key::next_graph,
    schedule::Order,
    shape::{NONE, Shape},
};

/// The outcome of every node of a run, in insertion order.
///
/// It borrows nothing, so it can be kept and shown after its graph is gone. Its rows
/// and renderings are in a stable order: two runs differ only where nodes fared
/// differently.
///
/// | rendering | |
/// | --- | --- |
/// | [`text`](Report::text) | a tree for terminals and logs |
/// | [`dot`](Report::dot) | for Graphviz |
/// | [`mermaid`](Report::mermaid) | for Markdown and web pages |
/// | [`Serialize`](serde::Serialize) | for programs: `serde_json::to_string(&report)` |
///
/// All of them take time and space linear in nodes and edges.
pub struct Report<E, W = String> {
    pub(crate) order: Order,
    pub(crate) outcomes: Vec<Outcome<E, W>>,
    pub(crate) durations: Vec<Option<Duration>>,
    pub(crate) blockers: Vec<u32>,
    pub(crate) elapsed: Duration,
}

impl<E, W> Report<E, W> {
    /// A report of steps that no graph ran: of an ordered list, or of phases.
    ///
    /// Steps stand in the order given, without edges between them. `None` as a duration
    /// says that the step did not begin. Two steps of one name are an error.
    ///
    /// ```
    /// use std::time::Duration;
    /// use windlass_graph::{Outcome, Report};
    ///
    /// let report = Report::<String>::from_steps([
    ///     ("decommission", Outcome::Waiting("2 ranges left".to_owned()), Some(Duration::from_millis(4))),
    ///     ("scale down", Outcome::Skipped { because_of: "decommission".into() }, None),
    /// ])?;
    /// assert_eq!(report.summary().to_string(), "0 of 2 ready, 1 waiting, 1 skipped");
    /// # Ok::<(), windlass_graph::GraphError>(())
    /// ```
    pub fn from_steps<I, S>(steps: I) -> Result<Self, GraphError>
    where
        I: IntoIterator<Item = (S, Outcome<E, W>, Option<Duration>)>,
        S: Into<Arc<str>>,
    {
        let mut shape = Shape::new(next_graph());
        let (mut outcomes, mut durations) = (Vec::new(), Vec::new());
        for (id, outcome, duration) in steps {
            let id = id.into();
            let index = shape.vacancy(&id)?;
            shape.depend([])?;
            shape.name(id, index);
            outcomes.push(outcome);
            durations.push(duration);
        }
        let blocker = |outcome: &Outcome<E, W>| match outcome {
            // A culprit is one that was visited. Following any other, a chain might not end.
            Outcome::Skipped { because_of } => shape
                .find(because_of)
                .filter(|&found| !matches!(outcomes[found as usize], Outcome::Skipped { .. }))
                .unwrap_or(NONE),
            _ => NONE,
        };
        let blockers = outcomes.iter().map(blocker).collect();
        let elapsed = durations.iter().flatten().sum();
        let order = Order::new(Arc::new(shape), Direction::Forward);
        Ok(Report { order, outcomes, durations, blockers, elapsed })
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.outcomes.len()
    }

    /// Returns true if the graph had no nodes.
    pub fn is_empty(&self) -> bool {
        self.outcomes.is_empty()
    }

    /// Returns true if all nodes are ready, also for an empty graph.
    pub fn is_ready(&self) -> bool {
        self.outcomes.iter().all(Outcome::is_ready)
    }

    /// The number of nodes per outcome.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        self.outcomes.iter().for_each(|outcome| summary.count(outcome));
        summary
    }

    /// The direction in which the graph was run.
    pub fn direction(&self) -> Direction {
        self.order.direction
    }

    /// The time from the first poll of the run to its end; for a report of [steps](Report::from_steps), their
    /// sum.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// All nodes, in insertion order.
    pub fn nodes(&self) -> impl Iterator<Item = NodeReport<'_, E, W>> {
        self.order.shape.indices().map(|index| NodeReport { report: self, index })
    }

    /// The node of that identity.
    pub fn get(&self, id: &str) -> Option<NodeReport<'_, E, W>> {
        self.order.shape.find(id).map(|index| NodeReport { report: self, index })
    }

    /// The node of a key, if it is one of the graph that was run, and was in it by then.
    pub fn at(&self, key: Key) -> Option<NodeReport<'_, E, W>> {
        let known = key.graph == self.order.shape.graph && key.index() < self.len();
        known.then_some(NodeReport { report: self, index: key.index })
    }

    /// All failures, each with the identity of its node.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &Failure<E>)> {
        self.nodes().filter_map(|node| node.outcome().failure().map(|failure| (node.id(), failure)))
    }

    /// Takes the report apart, to own errors and reasons.
    pub fn into_outcomes(self) -> impl Iterator<Item = (Arc<str>, Outcome<E, W>)> {
        let shape = self.order.shape;
        shape.indices().zip(self.outcomes).map(move |(index, outcome)| (Arc::clone(shape.id(index)), outcome))
    }
}

impl<E: fmt::Debug, W: fmt::Debug> fmt::Debug for Report<E, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.nodes().map(|node| (node.id(), node.outcome()))).finish()
    }
}

/// One node of a [`Report`].
pub struct NodeReport<'r, E, W = String> {
    pub(crate) report: &'r Report<E, W>,
    pub(crate) index: u32,
}

impl<'r, E, W> NodeReport<'r, E, W> {
    /// The node's identity.
    pub fn id(self) -> &'r str {
        self.report.order.shape.id(self.index)
    }

    /// The outcome of the node.
    pub fn outcome(self) -> &'r Outcome<E, W> {
        &self.report.outcomes[self.index as usize]
    }

    /// The duration of the node's visit, up to the cancellation if the run was cancelled. `None` if the visit
    /// never began.
    pub fn duration(self) -> Option<Duration> {
        self.report.durations[self.index as usize]
    }

    /// The nodes that came before this one in the run, in the order declared.
    pub fn after(self) -> impl ExactSizeIterator<Item = NodeReport<'r, E, W>> {
        self.report.order.before(self.index).iter().map(move |&index| NodeReport { index, ..self })
    }

    /// The node that directly held back a skipped node.
    ///
    /// If several did, this is the one that goes back to a failure rather than to a wait,
    /// and among those the first declared.
    pub fn blocker(self) -> Option<NodeReport<'r, E, W>> {
        let index = self.report.blockers[self.index as usize];
        (index != NONE).then_some(NodeReport { index, ..self })
    }

    /// The chain of what held it back: its [blocker](NodeReport::blocker), the blocker's,
    /// and so on to the one that was visited and is not ready. Empty unless skipped.
    pub fn blockers(self) -> impl Iterator<Item = NodeReport<'r, E, W>> {
        iter::successors(self.blocker(), |node| node.blocker())
    }
}

// Not derived: that would ask the same of `E` and `W`.
impl<E, W> Clone for NodeReport<'_, E, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E, W> Copy for NodeReport<'_, E, W> {}

impl<E: fmt::Debug, W: fmt::Debug> fmt::Debug for NodeReport<'_, E, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeReport")
            .field("id", &self.id())
            .field("outcome", self.outcome())
            .field("duration", &self.duration())
            .finish_non_exhaustive()
    }
}
