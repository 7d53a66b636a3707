//! Steps: actions on the outside world, in their place among the resources.

use std::time::Duration;

use futures::future::BoxFuture;
use windlass_runtime::controller::Error;

/// Where a step stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepState {
    /// It is done.
    Done,
    /// It has to be done.
    NotDone,
    /// It was begun, or cannot begin yet: why.
    Waiting(String),
}

/// An action on the outside world (an API call, a database user) with its own check.
///
/// It is checked at every reconcile of its owner, so the check must be cheap, and act only if it says [`NotDone`](StepState::NotDone).
/// The process may be killed at any moment: `act` may run again though it was done, and must then do no harm.
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
    /// Whether [`undo`](Self::undo) does something. Then the blueprint must say
    /// [`ordered_deletion`](crate::Blueprint::ordered_deletion): without its finalizer nobody would call it.
    const UNDOES: bool = false;

    /// Where it stands.
    fn check(&self) -> impl Future<Output = Result<StepState, Error>> + Send;

    /// Does it. Short: what takes long is begun here and waited for by [`check`](Self::check).
    fn act(&self) -> impl Future<Output = Result<(), Error>> + Send;

    /// Undoes it when the owner is deleted, and says whether it is undone.
    fn undo(&self) -> impl Future<Output = Result<StepState, Error>> + Send {
        async { Ok(StepState::Done) }
    }

    /// How often to look while it waits: nobody tells us when it is done. Default: every 10 s.
    fn poll(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// How long it may wait before that is called a failure. It is looked at ever after, but less often. Default: 10 minutes.
    fn patience(&self) -> Duration {
        Duration::from_mins(10)
    }
}

/// A step of whatever type.
pub(crate) trait AnyStep: Send + Sync {
    fn check(&self) -> BoxFuture<'_, Result<StepState, Error>>;
    fn act(&self) -> BoxFuture<'_, Result<(), Error>>;
    fn undo(&self) -> BoxFuture<'_, Result<StepState, Error>>;
    fn undoes(&self) -> bool;
    fn poll(&self) -> Duration;
    fn patience(&self) -> Duration;
}

impl<S: Step> AnyStep for S {
    fn check(&self) -> BoxFuture<'_, Result<StepState, Error>> {
        Box::pin(Step::check(self))
    }

    fn act(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(Step::act(self))
    }

    fn undo(&self) -> BoxFuture<'_, Result<StepState, Error>> {
        Box::pin(Step::undo(self))
    }

    fn undoes(&self) -> bool {
        S::UNDOES
    }

    fn poll(&self) -> Duration {
        Step::poll(self)
    }

    fn patience(&self) -> Duration {
        Step::patience(self)
    }
}
