//! A run: visits in flight, within limits, until nothing is left to start.
//!
//! All of it lives in one future in the caller's task. It decides nothing itself:
//! [`Schedule`] says what may start, [`Visit`] how a visit ended.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::Instant;

use crate::{
    Direction, Graph, Outcome, Progress, Report,
    schedule::{NodeState, Order, Schedule},
    visit::{Ended, Visit},
};

/// The number of visits that a run starts or ends before it yields to other tasks.
///
/// Visits that never wait would otherwise keep the thread for as long as there are
/// nodes; with 128, as in tokio's own budget, the yielding costs next to nothing.
const BUDGET: u32 = 128;

impl<N> Graph<N> {
    /// Visits every node once all it comes after is ready.
    ///
    /// Nodes that may start do so at once, in insertion order, with at most
    /// `concurrency` visits at a time (zero counts as one, [`usize::MAX`] is no limit).
    /// With a concurrency of one, a graph built by [`add_after`](Graph::add_after) is
    /// visited exactly in insertion order.
    ///
    /// A visit that waits or fails holds back what comes after its node, and nothing
    /// else. The run ends when every node has its [`Outcome`]; that of an empty graph
    /// at once.
    ///
    /// `visit` may borrow from the caller: nothing is spawned. It is called at the
    /// start of each visit, in the caller's task, and its futures are polled there.
    /// See [`Run`] for deadlines and cancellation.
    pub fn run<'g, V, F, E, W>(&'g self, concurrency: usize, visit: V) -> Run<'g, N, V, F, E, W>
    where
        V: FnMut(&'g N) -> F,
        F: Future<Output = Result<Progress<W>, E>>,
    {
        Run::new(self, Direction::Forward, concurrency, visit)
    }

    /// [Runs](Graph::run) the graph backwards: a node is visited once all that comes
    /// after it is ready, and the latest added go first. For deletion.
    pub fn run_reverse<'g, V, F, E, W>(&'g self, concurrency: usize, visit: V) -> Run<'g, N, V, F, E, W>
    where
        V: FnMut(&'g N) -> F,
        F: Future<Output = Result<Progress<W>, E>>,
    {
        Run::new(self, Direction::Reverse, concurrency, visit)
    }
}

type Limit<'g, N> = Box<dyn FnMut(&N) -> Option<Duration> + Send + 'g>;
type Signal<'g> = Pin<Box<dyn Future<Output = ()> + Send + 'g>>;

/// A run of a [`Graph`], which goes on while it is polled: `.await` gives its [`Report`].
///
/// # Cancel safety
///
/// Dropping it drops the visits in flight and starts no more, and the report is lost:
/// what the visits did before stays done. To stop early and still learn what was done,
/// use [`until`](Run::until).
#[must_use = "a run does nothing until it is awaited"]
pub struct Run<'g, N, V, F, E, W> {
    graph: &'g Graph<N>,
    concurrency: usize,
    visit: V,
    limit: Option<Limit<'g, N>>,
    until: Option<Signal<'g>>,
    /// The time of the first poll.
    started: Option<Instant>,
    in_flight: FuturesUnordered<Visit<F>>,
    /// Gone once the report was given.
    state: Option<RunState<E, W>>,
}

struct RunState<E, W> {
    schedule: Schedule,
    /// `Cancelled` until there is another, which is then true of whatever never ended.
    outcomes: Vec<Outcome<E, W>>,
    durations: Vec<Option<Duration>>,
}

// Only the visits must not move, and they are pinned where `in_flight` allocates them.
impl<N, V, F, E, W> Unpin for Run<'_, N, V, F, E, W> {}

impl<'g, N, V, F, E, W> Run<'g, N, V, F, E, W>
where
    V: FnMut(&'g N) -> F,
    F: Future<Output = Result<Progress<W>, E>>,
{
    fn new(graph: &'g Graph<N>, direction: Direction, concurrency: usize, visit: V) -> Self {
        let nodes = graph.len();
        let order = Order::new(Arc::clone(&graph.shape), direction);
        let mut outcomes = Vec::new();
        outcomes.resize_with(nodes, || Outcome::Cancelled);
        Run {
            graph,
            concurrency: concurrency.max(1),
            visit,
            limit: None,
            until: None,
            started: None,
            in_flight: FuturesUnordered::new(),
            state: Some(RunState { schedule: Schedule::new(order), outcomes, durations: vec![None; nodes] }),
        }
    }

    /// Gives nodes a deadline, counted from the start of their visit; `None` is none.
    ///
    /// A visit that has not ended by then is dropped, and its node has failed with
    /// [`Failure::DeadlineExceeded`](crate::Failure::DeadlineExceeded). Needs a Tokio
    /// runtime with its timer enabled; without one, the node's failure says so.
    pub fn deadline(mut self, limit: impl FnMut(&N) -> Option<Duration> + Send + 'g) -> Self {
        self.limit = Some(Box::new(limit));
        self
    }

    /// Cancels the run when `signal` completes.
    ///
    /// Visits in flight are dropped, no more are started, and the report comes at once:
    /// nodes without an outcome so far are [`Outcome::Cancelled`].
    pub fn until(mut self, signal: impl Future<Output = ()> + Send + 'g) -> Self {
        self.until = Some(Box::pin(signal));
        self
    }

    fn start(&mut self, index: u32) {
        let node = &self.graph.nodes[index as usize];
        let (visit, limit) = (&mut self.visit, &mut self.limit);
        self.in_flight.push(Visit::start(index, || {
            let limit = limit.as_mut().and_then(|limit| limit(node));
            (visit(node), limit)
        }));
    }

    /// Drops what is in flight, and says how long it had been.
    fn interrupt(&mut self, durations: &mut [Option<Duration>]) {
        for visit in Pin::new(&mut self.in_flight).iter_pin_mut() {
            durations[visit.index() as usize] = Some(visit.elapsed());
        }
        self.in_flight = FuturesUnordered::new();
    }

    fn finish(&mut self, mut state: RunState<E, W>) -> Report<E, W> {
        self.interrupt(&mut state.durations);
        let elapsed = self.started.map(|started| started.elapsed()).unwrap_or_default();
        let RunState { schedule, mut outcomes, durations } = state;
        for (index, culprit) in schedule.held() {
            let because_of = Arc::clone(schedule.order.shape.id(culprit));
            outcomes[index as usize] = Outcome::Skipped { because_of };
        }
        Report { order: schedule.order, outcomes, durations, blockers: schedule.blockers, elapsed }
    }

    /// Goes on as far as possible. True when there is nothing left to wait for.
    fn advance(&mut self, state: &mut RunState<E, W>, cx: &mut Context<'_>) -> bool {
        if let Some(until) = &mut self.until
            && until.as_mut().poll(cx).is_ready()
        {
            return true;
        }
        let mut budget = BUDGET;
        loop {
            // All that has ended is settled before anything starts, so that the order of
            // starts does not depend on the order in which visits of one moment ended.
            while let Poll::Ready(Some(ended)) = self.in_flight.poll_next_unpin(cx) {
                state.settle(ended);
                budget -= 1;
                if budget == 0 {
                    cx.waker().wake_by_ref();
                    return false;
                }
            }
            if !state.schedule.has_next() || self.in_flight.len() >= self.concurrency {
                return self.in_flight.is_empty();
            }
            while self.in_flight.len() < self.concurrency
                && let Some(index) = state.schedule.next()
            {
                self.start(index);
                budget -= 1;
                if budget == 0 {
                    cx.waker().wake_by_ref();
                    return false;
                }
            }
        }
    }
}

impl<E, W> RunState<E, W> {
    fn settle(&mut self, ended: Ended<E, W>) {
        let Ended { index, duration, outcome } = ended;
        let standing = match outcome {
            Outcome::Ready => NodeState::Ready,
            Outcome::Waiting(_) => NodeState::Waiting,
            Outcome::Failed(_) | Outcome::Skipped { .. } | Outcome::Cancelled | Outcome::Planned(_) => {
                NodeState::Failed
            }
        };
        self.outcomes[index as usize] = outcome;
        self.durations[index as usize] = Some(duration);
        self.schedule.settle(index, standing);
    }
}

impl<'g, N, V, F, E, W> Future for Run<'g, N, V, F, E, W>
where
    V: FnMut(&'g N) -> F,
    F: Future<Output = Result<Progress<W>, E>>,
{
    type Output = Report<E, W>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let run = self.get_mut();
        // Polled again after its end, which nobody should do: there is no more to come.
        let Some(mut state) = run.state.take() else { return Poll::Pending };
        run.started.get_or_insert_with(Instant::now);
        if run.advance(&mut state, cx) {
            run.until = None;
            Poll::Ready(run.finish(state))
        } else {
            run.state = Some(state);
            Poll::Pending
        }
    }
}

impl<N, V, F, E, W> fmt::Debug for Run<'_, N, V, F, E, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("nodes", &self.graph.len())
            .field("concurrency", &self.concurrency)
            .field("in_flight", &self.in_flight.len())
            .finish_non_exhaustive()
    }
}
