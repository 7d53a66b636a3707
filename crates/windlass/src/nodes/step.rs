//! Steps: actions on the outside world, ordered among the resources of a plan.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use windlass_graph::Progress;
use windlass_runtime::controller::Error;

use crate::error::{NodeError, Reason};
use crate::plan::node::{Node, Place, Visit, Visited, Wait};
use crate::plan::{Plan, Planned};

impl Plan {
    /// Adds an action on the outside world, with its own check.
    pub fn step(&mut self, name: impl Into<String>, step: impl Step) -> Planned {
        self.node(name.into(), StepNode(step))
    }
}

/// The state of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepState {
    /// The step is done.
    Done,
    /// The step has to be done.
    NotDone,
    /// The step was started, or cannot start yet, for this reason.
    Waiting(String),
}

/// An action on the outside world (an API call, a database user) with its own check.
///
/// A step is checked at every reconcile of its owner, so the check must be cheap; `act` runs only if the
/// check returns [`NotDone`](StepState::NotDone). The process may be killed at any moment: `act` may run
/// again after it succeeded, and must then do no harm.
///
/// ```
/// use windlass::{Step, StepState};
/// use windlass_runtime::controller::Error;
///
/// struct CreateProject { name: String }
/// # impl CreateProject {
/// #   async fn exists(&self) -> Result<bool, std::io::Error> { Ok(true) }
/// #   async fn create(&self) -> Result<(), std::io::Error> { Ok(()) }
/// # }
///
/// impl Step for CreateProject {
///     async fn check(&self) -> Result<StepState, Error> {
///         Ok(if self.exists().await? { StepState::Done } else { StepState::NotDone })
///     }
///
///     async fn act(&self) -> Result<(), Error> {
///         Ok(self.create().await?)
///     }
/// }
/// ```
pub trait Step: Send + Sync + 'static {
    /// True if [`undo`](Self::undo) does something. Then [`Controls::DELETION`](crate::Controls::DELETION)
    /// must be ordered: without its finalizer `undo` would not be called.
    const UNDOES: bool = false;

    /// Returns the state of the step.
    fn check(&self) -> impl Future<Output = Result<StepState, Error>> + Send;

    /// Performs the step. It must be short: start a long operation here, and wait for it in
    /// [`check`](Self::check).
    fn act(&self) -> impl Future<Output = Result<(), Error>> + Send;

    /// Undoes the step when the owner is deleted, and returns whether it is undone.
    fn undo(&self) -> impl Future<Output = Result<StepState, Error>> + Send {
        async { Ok(StepState::Done) }
    }

    /// Returns the interval of checks while the step waits, since no watch reports its end. Default: 10 s.
    fn poll(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// Returns the time that the step may wait before it counts as failed. It is still checked afterwards,
    /// but less often. Default: 10 minutes.
    fn patience(&self) -> Duration {
        Duration::from_mins(10)
    }
}

struct StepNode<S>(S);

impl<S: Step> Node for StepNode<S> {
    fn describe(&self) -> String {
        if S::UNDOES { "step, undone on deletion" } else { "step" }.to_owned()
    }

    fn kind(&self) -> &'static str {
        "step"
    }

    fn undoes(&self) -> bool {
        S::UNDOES
    }

    fn visit<'a>(&'a self, place: &'a Place, run: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        async move {
            let step = &self.0;
            let mut state = step.check().await?;
            if state == StepState::NotDone && run.is_observing() {
                return Err(NodeError::transient(Reason::Paused, "it is not run while the owner is paused"));
            }
            if state == StepState::NotDone {
                step.act().await?;
                state = step.check().await?;
            }
            let why = match state {
                StepState::Done => {
                    run.finished(place);
                    return Ok(Progress::Ready);
                }
                StepState::NotDone => "it was begun and is not done yet".to_owned(),
                StepState::Waiting(why) => why,
            };
            if run.unfinished_for(place) > step.patience() {
                let message = format!("{why} (for more than {} s)", step.patience().as_secs());
                return Err(NodeError::transient(Reason::Failed, message));
            }
            Ok(Wait::new(why).poll(step.poll()).into())
        }
        .boxed()
    }

    fn remove<'a>(&'a self, _: &'a Place, _: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        async move {
            if !S::UNDOES {
                return Ok(Progress::Ready);
            }
            let why = match self.0.undo().await? {
                StepState::Done => return Ok(Progress::Ready),
                StepState::NotDone => "it is not undone yet".to_owned(),
                StepState::Waiting(why) => why,
            };
            Ok(Wait::because(Reason::Deleting, why).poll(self.0.poll()).into())
        }
        .boxed()
    }
}
