//! The manager of one process: ordered start and stop, and readiness.
//!
//! It promises:
//! - **Order.** Runnables start stage by stage ([`Stage`] gives the reasons for the order), each stage when
//!   the one before it is up; they stop in reverse order.
//! - **A stop is never ignored.** A signal is obeyed at any time, also while a runnable cannot come up. Work
//!   in flight is finished within the [grace time](Manager::grace), then dropped; a second signal ends the
//!   process at once.
//! - **Failures are never hidden.** A runnable that fails is restarted and reported, or ends the process:
//!   [`OnFailure`] has no other option.
//! - **Readiness is meaningful**: all caches that controllers need have synced, all runnables run.
//! - **No leftovers.** When [`run`](Manager::run) returns or is dropped, no task of the manager is left.
//!
//! It does not serve readiness or metrics, nor elect a leader; those are runnables that are added to it.

mod readiness;
mod signals;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use self::readiness::{Checked, Health, Readiness, Report};
use self::signals::Signals;
use crate::cache::{Cache, SyncState};
use crate::controller::{Controller, Followed};
use crate::leader::Election;
use crate::metrics::Metrics;
pub use crate::runnable::{BoxError, Context, OnFailure, Runnable, RunnableFailure};
use crate::runnable::{RunState, Status};
pub use crate::stop::{Stop, Stopper};

/// The minimum time for a stage to stop when later stages have used up the grace time: a lease must be
/// released and a last scrape answered even if a reconcile hangs.
const LAST_CALL: Duration = Duration::from_secs(1);

/// The start order of a runnable. Stages start in this order and stop in reverse order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Health, readiness and metrics: first, so that everything that follows can be observed; they stop last.
    Admin,
    /// Webhooks: before the caches, because a kind with conversion cannot be listed before its webhook
    /// answers.
    Webhooks,
    /// Caches. Up means started, not synced: a kind that cannot be listed delays only the controllers that
    /// need it.
    Caches,
    /// Runnables of every replica, leader or not.
    Everywhere,
    /// The election. Up means elected; so later stages run on the leader only, and have ended before the
    /// lease is released.
    Election,
    /// Controllers, and everything else that only the leader does.
    Controllers,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Admin => "admin",
            Self::Webhooks => "webhooks",
            Self::Caches => "caches",
            Self::Everywhere => "everywhere",
            Self::Election => "election",
            Self::Controllers => "controllers",
        })
    }
}

/// Runs the runnables of a process.
#[derive(Debug)]
pub struct Manager {
    runnables: BTreeMap<Stage, Vec<(Runnable, Status)>>,
    grace: Duration,
    readiness: Readiness,
    metrics: Metrics,
    phase: Arc<Mutex<Phase>>,
}

/// The phase of the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Starting(Stage),
    Running,
    Stopping,
}

/// Two runnables have the same name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are two runnables named {0}; names must be unique in logs and metrics")]
pub struct DuplicateName(String);

/// Failures while running and while stopping.
#[derive(Debug, Default)]
pub struct ManagerError {
    /// The runnables that failed, in order of time.
    pub failures: Vec<RunnableFailure>,
    /// The runnables that did not end within the grace time and were cancelled.
    pub overdue: Vec<String>,
}

impl fmt::Display for ManagerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failures = self.failures.iter().map(ToString::to_string);
        let overdue =
            self.overdue.iter().map(|runnable| format!("{runnable} did not stop within the grace time"));
        f.write_str(&failures.chain(overdue).collect::<Vec<_>>().join("; "))
    }
}

impl std::error::Error for ManagerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.failures.first().map(|failure| failure as _)
    }
}

impl Default for Manager {
    fn default() -> Self {
        Self::new()
    }
}

impl Manager {
    /// Creates a manager without runnables, with 30 s of grace time.
    pub fn new() -> Self {
        let readiness = Readiness::default();
        let phase = Arc::new(Mutex::new(Phase::Waiting));
        let shown = Arc::clone(&phase);
        readiness.check("manager", move || match *shown.lock() {
            Phase::Waiting => Health::NotReady("not started".into()),
            // A standby is ready: all stages before the election have started.
            Phase::Running | Phase::Starting(Stage::Election | Stage::Controllers) => Health::Ready,
            Phase::Starting(stage) => Health::NotReady(format!("starting: {stage}")),
            Phase::Stopping => Health::NotReady("stopping".into()),
        });
        Self {
            runnables: BTreeMap::new(),
            grace: Duration::from_secs(30),
            readiness,
            metrics: Metrics::new(),
            phase,
        }
    }

    /// Sets the time for work in flight to finish when the process stops. Keep it some seconds below the
    /// Pod's `terminationGracePeriodSeconds`: each remaining stage gets at least a second.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// The readiness checks of the process, for an admin server.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// The metrics of the process, for an admin server.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Adds a runnable.
    pub fn add(&mut self, stage: Stage, runnable: Runnable) -> Result<(), DuplicateName> {
        if self.runnables.values().flatten().any(|(other, _)| other.name == runnable.name) {
            return Err(DuplicateName(runnable.name));
        }
        let status = Status::new();
        let shown = status.clone();
        // A controller is not up on a standby, which is normal: only its failures count.
        let on_leader = stage >= Stage::Election;
        self.readiness.check(runnable.name.clone(), move || match shown.get() {
            RunState::Up => Health::Ready,
            RunState::Failed(why) => Health::NotReady(format!("failed: {why}")),
            RunState::Waiting | RunState::Starting if on_leader => {
                Health::Degraded("not started here; controllers run on the leader only".into())
            }
            RunState::Waiting => Health::NotReady("not started".into()),
            RunState::Starting => Health::NotReady("starting".into()),
        });
        self.runnables.entry(stage).or_default().push((runnable, status));
        Ok(())
    }

    /// Adds a cache: its watches start before anything that reads them.
    pub fn cache(&mut self, cache: &Cache) -> Result<(), DuplicateName> {
        let shown = cache.clone();
        let cache = cache.clone();
        let runnable = Runnable::new("cache", move |context: Context| {
            let cache = cache.clone();
            async move {
                cache.start();
                context.ready();
                context.stop.requested().await;
                Ok::<_, BoxError>(())
            }
        });
        self.add(Stage::Caches, runnable)?;
        self.metrics.cache(&shown);
        Ok(())
    }

    /// Adds a controller. It is restarted if it fails; the process is ready when the kinds that it needs have
    /// synced.
    pub fn controller(&mut self, controller: Controller) -> Result<(), DuplicateName> {
        let metrics = self.metrics.clone();
        let follows: Vec<_> = controller.follows().collect();
        let name = format!("controller {}", controller.name());
        let runnable = Runnable::new(name.clone(), move |context: Context| {
            let (controller, metrics) = (controller.clone(), metrics.clone());
            async move { controller.run(&metrics, || context.ready(), context.stop.clone()).await }
        });
        self.add(Stage::Controllers, runnable.on_failure(OnFailure::Restart))?;
        self.readiness.check(format!("caches of {name}"), move || follows.iter().fold(Health::Ready, worse));
        Ok(())
    }

    /// Adds the election: controllers run while this process leads, and a lost lease stops the process at
    /// once.
    pub fn election(&mut self, election: Election) -> Result<(), DuplicateName> {
        election.show_in(&self.metrics);
        self.add(Stage::Election, election.into_runnable())
    }

    /// Runs until SIGTERM or SIGINT, or until a runnable fails permanently. A second signal ends the process
    /// at once, with exit code 1.
    ///
    /// Signals are handled from the call on, before the future is polled, so a message printed after the call
    /// is already true. Must be called within a Tokio runtime.
    ///
    /// Cancellation: dropping the future drops everything that runs.
    pub fn run(self) -> impl Future<Output = Result<(), ManagerError>> {
        let signals = Signals::listen();
        async move {
            let mut signals = signals.map_err(|error| ManagerError {
                failures: vec![RunnableFailure {
                    runnable: "listening to signals".into(),
                    error: error.into(),
                }],
                overdue: Vec::new(),
            })?;
            let (stopper, stop) = Stop::pair();
            let listen = async {
                let signal = signals.next().await;
                tracing::info!(signal, "stopping; a second signal ends the process at once");
                stopper.request();
                let signal = signals.next().await;
                tracing::error!(signal, "second signal: ending at once");
                std::process::exit(1);
            };
            tokio::select! {
                result = self.run_until(stop) => result,
                never = listen => never,
            }
        }
    }

    /// Like [`run`](Self::run), but stops on request.
    pub async fn run_until(self, stop: Stop) -> Result<(), ManagerError> {
        let Self { runnables, grace, phase, .. } = self;
        let (report, mut failures) = mpsc::unbounded_channel();
        let mut ended = async || {
            tokio::select! {
                biased;
                () = stop.requested() => None,
                failed = failures.recv() => failed,
            }
        };
        let mut running: Vec<Running> = Vec::new();
        let mut ending = None;
        for (stage, runnables) in runnables {
            *phase.lock() = Phase::Starting(stage);
            let started = Running::start(stage, runnables, &report);
            ending = tokio::select! {
                biased;
                ending = ended() => Some(ending),
                () = started.up() => None,
            };
            running.push(started);
            if ending.is_some() {
                break;
            }
        }
        let ending = if let Some(ending) = ending {
            ending
        } else {
            *phase.lock() = Phase::Running;
            ended().await
        };

        *phase.lock() = Phase::Stopping;
        let at_once = ending.as_ref().is_some_and(|failed| failed.on_failure == OnFailure::StopAtOnce);
        let mut error = ManagerError::default();
        if let Some(Failed { failure, .. }) = ending {
            tracing::error!(%failure, "runnable failed, stopping the process");
            error.failures.push(failure);
        }
        let deadline = Instant::now() + if at_once { Duration::ZERO } else { grace };
        for started in running.into_iter().rev() {
            let led = started.stage > Stage::Election;
            let last_call = if at_once && led { Duration::ZERO } else { LAST_CALL };
            error.overdue.extend(started.stop(deadline.max(Instant::now() + last_call)).await);
        }
        drop(report);
        while let Ok(Failed { failure, .. }) = failures.try_recv() {
            tracing::error!(%failure, "runnable failed while the process was stopping");
            error.failures.push(failure);
        }
        if error.failures.is_empty() && error.overdue.is_empty() { Ok(()) } else { Err(error) }
    }
}

/// Combines the readiness of a controller so far with the state of one more kind that it watches.
fn worse(so_far: Health, followed: &Followed) -> Health {
    let kind = followed.resource.group_resource();
    let why = match &*followed.state.borrow() {
        SyncState::Synced => return so_far,
        SyncState::Starting => format!("{kind}: not synced yet"),
        SyncState::Blocked(problem) => format!("{kind}: {problem}"),
    };
    match so_far {
        Health::Degraded(other) if followed.optional => Health::Degraded(format!("{other}; {why}")),
        Health::Degraded(other) | Health::NotReady(other) => Health::NotReady(format!("{other}; {why}")),
        Health::Ready if followed.optional => Health::Degraded(why),
        Health::Ready => Health::NotReady(why),
    }
}

struct Failed {
    failure: RunnableFailure,
    on_failure: OnFailure,
}

/// A stage that was started.
struct Running {
    stage: Stage,
    stopper: Stopper,
    statuses: Vec<Status>,
    names: Arc<Mutex<Vec<String>>>,
    tasks: JoinSet<()>,
}

impl Running {
    fn start(
        stage: Stage,
        runnables: Vec<(Runnable, Status)>,
        report: &mpsc::UnboundedSender<Failed>,
    ) -> Self {
        let (stopper, stop) = Stop::pair();
        let names = Arc::new(Mutex::new(
            runnables.iter().map(|(runnable, _)| runnable.name.clone()).collect::<Vec<_>>(),
        ));
        let statuses = runnables.iter().map(|(_, status)| status.clone()).collect();
        let mut tasks = JoinSet::new();
        for (runnable, status) in runnables {
            let (stop, report, names) = (stop.clone(), report.clone(), Arc::clone(&names));
            tasks.spawn(async move {
                let result = runnable.supervise(status, stop).await;
                names.lock().retain(|name| *name != runnable.name);
                if let Err(failure) = result {
                    // The receiver is gone only after everything has ended.
                    let _ = report.send(Failed { failure, on_failure: runnable.on_failure });
                }
            });
        }
        Self { stage, stopper, statuses, names, tasks }
    }

    async fn up(&self) {
        for status in &self.statuses {
            status.up().await;
        }
    }

    /// Stops the stage, and returns the runnables that were cancelled at the deadline.
    async fn stop(mut self, deadline: Instant) -> Vec<String> {
        self.stopper.request();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout_at(deadline, ended).await.is_ok() {
            return Vec::new();
        }
        let overdue = self.names.lock().clone();
        self.tasks.abort_all();
        while self.tasks.join_next().await.is_some() {}
        overdue
    }
}
