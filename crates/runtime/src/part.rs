//! A part of the process: something that runs from start to stop. Public as part of [`manager`](crate::manager).

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

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How failed parts are restarted.
const RESTART: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_mins(1), jitter: 0.2 };

/// What follows when a part fails. There is no "nothing": half a process that keeps silent is worse than none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// It is started again, after a backoff; meanwhile the process says that it is not ready.
    Restart,
    /// The process stops in order.
    Stop,
    /// The process stops without any grace time: what is running must not go on (a lease was lost).
    StopAtOnce,
}

/// A part of the process, as the [manager](crate::manager::Manager) runs it.
///
/// It is a function of a [`Context`], called once per start. It calls [`Context::ready`] when those that come after
/// it may start, and returns when [`Context::stop`] is requested. To return earlier is fine for a part that has
/// nothing more to do; to return an error, or to panic, is a failure.
#[must_use = "give it to a manager"]
pub struct Part {
    pub(crate) name: String,
    pub(crate) on_failure: OnFailure,
    run: Box<dyn Fn(Context) -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part")
            .field("name", &self.name)
            .field("on_failure", &self.on_failure)
            .finish_non_exhaustive()
    }
}

/// What a running part is given.
#[derive(Clone, Debug)]
pub struct Context {
    /// When to stop.
    pub stop: Stop,
    status: Status,
}

impl Context {
    /// Says that this part is up, and what depends on it may start.
    pub fn ready(&self) {
        self.status.set(State::Up);
    }
}

/// Where a part stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Waiting,
    Starting,
    Up,
    Failed(String),
}

/// Where a part stands, for readiness and for those who wait for it.
#[derive(Clone, Debug)]
pub(crate) struct Status(watch::Sender<State>);

impl Status {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(State::Waiting))
    }

    pub(crate) fn get(&self) -> State {
        self.0.borrow().clone()
    }

    fn set(&self, state: State) {
        self.0.send_replace(state);
    }

    /// Waits until the part is up.
    pub(crate) async fn up(&self) {
        // The sender is ours, so it is there.
        let _ = self.0.subscribe().wait_for(|state| *state == State::Up).await;
    }
}

/// How a part failed.
#[derive(Debug, thiserror::Error)]
#[error("{part} failed: {error}")]
pub struct PartFailure {
    /// The part's name.
    pub part: String,
    /// Why.
    #[source]
    pub error: BoxError,
}

impl Part {
    /// A part; the process stops when it fails, unless [`on_failure`](Self::on_failure) says otherwise.
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

    /// The same part under another name, where a process has two of a sort.
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// What follows when it fails.
    pub fn on_failure(self, on_failure: OnFailure) -> Self {
        Self { on_failure, ..self }
    }

    /// Runs the part until it ends for good: by a stop, by itself, or by a failure that stops the process.
    pub(crate) async fn supervise(&self, status: Status, stop: Stop) -> Result<(), PartFailure> {
        let mut failures = 0;
        loop {
            status.set(State::Starting);
            let began = Instant::now();
            let context = Context { stop: stop.clone(), status: status.clone() };
            let caught = AssertUnwindSafe(async { (self.run)(context).await }).catch_unwind().await;
            let error = match caught {
                Ok(Ok(())) => {
                    status.set(State::Up);
                    return Ok(());
                }
                Ok(Err(error)) => error,
                Err(panic) => format!("it panicked: {}", panic_message(&*panic)).into(),
            };
            status.set(State::Failed(error.to_string()));
            if self.on_failure != OnFailure::Restart || stop.is_requested() {
                return Err(PartFailure { part: self.name.clone(), error });
            }
            failures = if began.elapsed() > RESTART.cap { 1 } else { failures + 1 };
            let delay = RESTART.delay(failures, u64::from(began.elapsed().subsec_nanos()) << 32);
            tracing::error!(part = self.name, error = %error, ?delay, "a part failed and will be started again");
            tokio::select! {
                () = stop.requested() => return Ok(()),
                () = tokio::time::sleep(delay) => {}
            }
        }
    }
}
