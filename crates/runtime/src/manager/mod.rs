//! One process: what starts when, what stops when, and whether it is ready.
//!
//! It promises:
//! - **Order.** Parts start stage by stage ([`Stage`] says why in this order), each stage when the one before it is up; they
//!   stop the other way round.
//! - **A stop is a stop.** A signal is obeyed at any moment, also while a part cannot come up. Work in flight is finished
//!   within the [grace time](Manager::grace), then dropped; a second signal ends the process at once.
//! - **No half life.** A part that fails is restarted and reported, or ends the process: [`OnFailure`] has no third way.
//! - **Readiness means something**: all caches that controllers need have synced, all parts run.
//! - **Nothing is left.** When [`run`](Manager::run) returns or is dropped, no task of the manager is left behind.
//!
//! It does not serve readiness or metrics, nor elect a leader; those are parts that are added to it.

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
pub use crate::part::{BoxError, Context, OnFailure, Part, PartFailure};
use crate::part::{State, Status};
pub use crate::stop::{Stop, Stopper};

/// What a stage gets to stop when the stages above it have used up the grace time: a lease must be released, a last
/// scrape answered, whatever a hanging reconcile did.
const LAST_CALL: Duration = Duration::from_secs(1);

/// When a part starts. Stages start in this order and stop in the opposite one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Health, readiness and metrics: first, so that everything that follows can be observed; last to go.
    Admin,
    /// Webhooks: before the caches, because a kind that is converted cannot be listed before its webhook answers.
    Webhooks,
    /// Caches. Up means started, not synced: a kind that cannot be listed holds up only who needs it.
    Caches,
    /// What runs on every replica, leader or not.
    Everywhere,
    /// The election. Up means elected; so what comes after runs on the leader only, and has ended before the lease is
    /// released.
    Election,
    /// Controllers, and whatever else only the leader does.
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

/// Runs the parts of a process.
#[derive(Debug)]
pub struct Manager {
    parts: BTreeMap<Stage, Vec<(Part, Status)>>,
    grace: Duration,
    readiness: Readiness,
    metrics: Metrics,
    phase: Arc<Mutex<Phase>>,
}

/// Where the manager stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Starting(Stage),
    Running,
    Stopping,
}

/// Two parts have the same name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are two parts named {0}: logs and metrics could not tell them apart")]
pub struct DuplicateName(String);

/// What went wrong, while running and while stopping.
#[derive(Debug, Default)]
pub struct ManagerError {
    /// The parts that failed, in order of time.
    pub failures: Vec<PartFailure>,
    /// The parts that did not end within the grace time and were cut off.
    pub overdue: Vec<String>,
}

impl fmt::Display for ManagerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failures = self.failures.iter().map(ToString::to_string);
        let overdue = self.overdue.iter().map(|part| format!("{part} did not stop within the grace time"));
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
    /// A manager of nothing yet, with 30 s of grace time.
    pub fn new() -> Self {
        let readiness = Readiness::default();
        let phase = Arc::new(Mutex::new(Phase::Waiting));
        let shown = Arc::clone(&phase);
        readiness.check("manager", move || match *shown.lock() {
            Phase::Waiting => Health::NotReady("not started".into()),
            // Standbys are ready: all that they do before an election has started.
            Phase::Running | Phase::Starting(Stage::Election | Stage::Controllers) => Health::Ready,
            Phase::Starting(stage) => Health::NotReady(format!("starting: {stage}")),
            Phase::Stopping => Health::NotReady("stopping".into()),
        });
        Self {
            parts: BTreeMap::new(),
            grace: Duration::from_secs(30),
            readiness,
            metrics: Metrics::new(),
            phase,
        }
    }

    /// How long work in flight may take to finish when the process stops. Keep it some seconds below the Pod's
    /// `terminationGracePeriodSeconds`: a stage whose turn comes late still gets one.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Whether the process is ready; for an admin server to serve.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// The metrics of the process; for an admin server to serve.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Adds a part.
    pub fn add(&mut self, stage: Stage, part: Part) -> Result<(), DuplicateName> {
        if self.parts.values().flatten().any(|(other, _)| other.name == part.name) {
            return Err(DuplicateName(part.name));
        }
        let status = Status::new();
        let shown = status.clone();
        // A controller is not up on a standby, and that is as it should be: only its failures count.
        let on_leader = stage >= Stage::Election;
        self.readiness.check(part.name.clone(), move || match shown.get() {
            State::Up => Health::Ready,
            State::Failed(why) => Health::NotReady(format!("failed: {why}")),
            State::Waiting | State::Starting if on_leader => Health::Degraded("does not run here yet".into()),
            State::Waiting => Health::NotReady("not started".into()),
            State::Starting => Health::NotReady("starting".into()),
        });
        self.parts.entry(stage).or_default().push((part, status));
        Ok(())
    }

    /// Adds a cache: its watches start before anything that reads them.
    pub fn cache(&mut self, cache: &Cache) -> Result<(), DuplicateName> {
        let shown = cache.clone();
        let cache = cache.clone();
        let part = Part::new("cache", move |context: Context| {
            let cache = cache.clone();
            async move {
                cache.start();
                context.ready();
                context.stop.requested().await;
                Ok::<_, BoxError>(())
            }
        });
        self.add(Stage::Caches, part)?;
        self.metrics.cache(&shown);
        Ok(())
    }

    /// Adds a controller. Should it fail, it is restarted; the process is ready when the kinds that it needs have synced.
    pub fn controller(&mut self, controller: Controller) -> Result<(), DuplicateName> {
        let metrics = self.metrics.clone();
        let follows: Vec<_> = controller.follows().collect();
        let name = format!("controller {}", controller.name());
        let part = Part::new(name.clone(), move |context: Context| {
            let (controller, metrics) = (controller.clone(), metrics.clone());
            async move { controller.run(&metrics, || context.ready(), context.stop.clone()).await }
        });
        self.add(Stage::Controllers, part.on_failure(OnFailure::Restart))?;
        self.readiness.check(format!("caches of {name}"), move || follows.iter().fold(Health::Ready, worse));
        Ok(())
    }

    /// Adds the election: controllers run while this process leads, and a lost lease stops the process at once.
    pub fn election(&mut self, election: Election) -> Result<(), DuplicateName> {
        election.show_in(&self.metrics);
        self.add(Stage::Election, election.into_part())
    }

    /// Runs until SIGTERM or SIGINT, or until a part fails for good. A second signal ends the process at once, with
    /// exit code 1.
    ///
    /// Signals are heard from the call on, before anything is awaited: what is said to the user in between holds. Must be called
    /// within a Tokio runtime.
    ///
    /// Cancellation: dropped, it drops everything that runs.
    pub fn run(self) -> impl Future<Output = Result<(), ManagerError>> {
        let signals = Signals::listen();
        async move {
            let mut signals = signals.map_err(|error| ManagerError {
                failures: vec![PartFailure { part: "listening to signals".into(), error: error.into() }],
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

    /// Like [`run`](Self::run), but stops when it is told to.
    pub async fn run_until(self, stop: Stop) -> Result<(), ManagerError> {
        let Self { parts, grace, phase, .. } = self;
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
        for (stage, parts) in parts {
            *phase.lock() = Phase::Starting(stage);
            let started = Running::start(stage, parts, &report);
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
            tracing::error!(%failure, "a part failed, the process stops");
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
            tracing::error!(%failure, "a part failed while the process stopped");
            error.failures.push(failure);
        }
        if error.failures.is_empty() && error.overdue.is_empty() { Ok(()) } else { Err(error) }
    }
}

/// What a controller's readiness becomes, given what it was found to be so far and one more kind that it follows.
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
    failure: PartFailure,
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
    fn start(stage: Stage, parts: Vec<(Part, Status)>, report: &mpsc::UnboundedSender<Failed>) -> Self {
        let (stopper, stop) = Stop::pair();
        let names = Arc::new(Mutex::new(parts.iter().map(|(part, _)| part.name.clone()).collect::<Vec<_>>()));
        let statuses = parts.iter().map(|(_, status)| status.clone()).collect();
        let mut tasks = JoinSet::new();
        for (part, status) in parts {
            let (stop, report, names) = (stop.clone(), report.clone(), Arc::clone(&names));
            tasks.spawn(async move {
                let result = part.supervise(status, stop).await;
                names.lock().retain(|name| *name != part.name);
                if let Err(failure) = result {
                    // Nobody listens any more only after everything has ended.
                    let _ = report.send(Failed { failure, on_failure: part.on_failure });
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

    /// Stops the stage, and returns who had to be cut off at the deadline.
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
