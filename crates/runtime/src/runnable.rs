//! Runnables: tasks that run from the start to the stop of a process. Public as part of
//! [`manager`](crate::manager).

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::panics::panic_message;
use crate::queue::Backoff;
use crate::stop::Stop;

/// An error of any type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The backoff of failed runnables.
const RESTART: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_mins(1), jitter: 0.2 };

/// The consequence of a failed runnable. It cannot be ignored: a process that silently works in part is worse
/// than none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// The runnable is started again after a backoff; meanwhile the process is not ready.
    Restart,
    /// The process stops in order.
    Stop,
    /// The process stops without grace time: running work must not continue (the lease was lost).
    StopAtOnce,
}

/// A task that the [manager](crate::manager::Manager) runs from start to stop.
///
/// It is a function of a [`Context`], called once per start. It calls [`Context::ready`] when later stages
/// may start, and returns when [`Context::stop`] is requested. A runnable that has nothing more to do may
/// return earlier; an error or a panic is a failure.
#[must_use = "add it to a manager"]
pub struct Runnable {
    pub(crate) name: String,
    pub(crate) on_failure: OnFailure,
    run: Box<dyn Fn(Context) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>,
}

impl fmt::Debug for Runnable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runnable")
            .field("name", &self.name)
            .field("on_failure", &self.on_failure)
            .finish_non_exhaustive()
    }
}

/// The context of a runnable.
#[derive(Clone, Debug)]
pub struct Context {
    /// The stop request.
    pub stop: Stop,
    status: Status,
}

impl Context {
    /// Reports that this runnable is up, so that later stages may start.
    pub fn ready(&self) {
        self.status.set(RunState::Up);
    }
}

/// The state of a runnable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RunState {
    Waiting,
    Starting,
    Up,
    Failed(String),
}

/// The state of a runnable, for readiness and for later stages.
#[derive(Clone, Debug)]
pub(crate) struct Status(watch::Sender<RunState>);

impl Status {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(RunState::Waiting))
    }

    pub(crate) fn get(&self) -> RunState {
        self.0.borrow().clone()
    }

    fn set(&self, state: RunState) {
        self.0.send_replace(state);
    }

    /// Waits until the runnable is up.
    pub(crate) async fn up(&self) {
        // Cannot fail: the sender is this struct.
        let _ = self.0.subscribe().wait_for(|state| *state == RunState::Up).await;
    }
}

/// The failure of a runnable.
#[derive(Debug, thiserror::Error)]
#[error("{runnable} failed: {error}")]
pub struct RunnableFailure {
    /// The name of the runnable.
    pub runnable: String,
    /// The error or the message of the panic.
    #[source]
    pub error: BoxError,
}

impl Runnable {
    /// Creates a runnable; the process stops when it fails, unless [`on_failure`](Self::on_failure) is set.
    pub fn new<R, E>(name: impl Into<String>, run: impl Fn(Context) -> R + Send + Sync + 'static) -> Self
    where
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self {
            name: name.into(),
            on_failure: OnFailure::Stop,
            run: Box::new(move |context| {
                let running = run(context);
                Box::pin(async move { running.await.map_err(Into::into) })
            }),
        }
    }

    /// Renames the runnable, for a process with two of the same name.
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Sets the consequence of a failure.
    pub fn on_failure(self, on_failure: OnFailure) -> Self {
        Self { on_failure, ..self }
    }

    /// Runs the runnable until it ends permanently: by a stop, by itself, or by a failure that stops the
    /// process.
    pub(crate) async fn supervise(&self, status: Status, stop: Stop) -> Result<(), RunnableFailure> {
        let mut failures = 0;
        loop {
            status.set(RunState::Starting);
            let began = Instant::now();
            let context = Context { stop: stop.clone(), status: status.clone() };
            let caught = AssertUnwindSafe(async { (self.run)(context).await }).catch_unwind().await;
            let error = match caught {
                Ok(Ok(())) => {
                    status.set(RunState::Up);
                    return Ok(());
                }
                Ok(Err(error)) => error,
                Err(panic) => format!("it panicked: {}", panic_message(&*panic)).into(),
            };
            status.set(RunState::Failed(error.to_string()));
            if self.on_failure != OnFailure::Restart || stop.is_requested() {
                return Err(RunnableFailure { runnable: self.name.clone(), error });
            }
            failures = if began.elapsed() > RESTART.cap { 1 } else { failures + 1 };
            let delay = RESTART.delay(failures, u64::from(began.elapsed().subsec_nanos()) << 32);
            tracing::error!(runnable = self.name, error = %error, ?delay, "runnable failed, restarting it after a delay");
            tokio::select! {
                () = stop.requested() => return Ok(()),
                () = tokio::time::sleep(delay) => {}
            }
        }
    }
}
