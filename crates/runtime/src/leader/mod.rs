//! Leader election: only the replica that holds the Lease reconciles.
//!
//! An [`Election`] uses one Lease (`coordination.k8s.io/v1`) and client-go's protocol: our replicas and
//! programs written with client-go can be candidates for the same Lease.
//!
//! It promises:
//! - **A leader has stopped before another may lead.** The work is dropped at the renew deadline, counted
//!   from the time at which the last successful renewal was sent; others wait for the longer lease duration
//!   from the time at which they saw it.
//! - **No clocks are compared.** A holder has expired when its record did not change in our view for the
//!   duration in the record. The times in a Lease are for people.
//! - **Every write names the resource version that it replaces**, so only one of two candidates gets a free
//!   lease.
//! - **One hung request does not lose a lease**: each has a deadline of half the renew deadline.
//! - **A clean end causes no delay.** When the work has ended, the lease is released; a standby watches it
//!   and starts at once. A standby that may not watch reads it every [retry period](Times::retry_period).
//! - **An identity is unique**, in all processes and for each campaign: no candidate mistakes another's lease
//!   for its own.
//! - **Writes are fenced.** A process that is frozen as a whole (SIGSTOP, a suspended virtual machine) runs
//!   again before its timers notice that its time is over. Writes of a [fenced](Client::fenced) client
//!   compare the lease deadline right before they are sent, by a clock that counts suspension; other I/O can
//!   pass the same check ([`Fence`]).
//!
//! It does not recall requests: one that was sent before the deadline may be executed late. Writes that must
//! not happen twice name a resource version or a uid.
//!
//! # With a manager
//!
//! ```no_run
//! use windlass_runtime::client::{Client, ClientOptions};
//! use windlass_runtime::leader::{Election, ElectionOptions};
//! use windlass_runtime::manager::Manager;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let client = Client::new(kube::Config::infer().await?, ClientOptions::default())?;
//! let election = Election::new(&client, ElectionOptions::new("shop-operator"))?;
//! let mut manager = Manager::new();
//! // For controllers: nothing is written after the lease deadline.
//! let leader_client = client.fenced(&election.fence());
//! manager.election(election)?;
//! // Controllers now run on the leader only; caches run everywhere.
//! manager.run().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Without a manager
//!
//! [`Election::lead`] runs any future while it leads, and drops it when the lease is lost.

mod campaign;
mod identity;
mod lock;
mod metrics;
#[cfg(test)]
mod model;
mod protocol;
mod record;
mod standing;
#[cfg(test)]
mod tests;
mod times;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use self::campaign::Campaign;
pub use self::campaign::LeaseLost;
pub(crate) use self::identity::hostname;
pub use self::identity::{NamespaceUnknown, pod_namespace};
use self::lock::LeaseLock;
use self::metrics::ElectionCollector;
pub use self::standing::Standing;
use self::standing::{Figures, Stand};
pub use self::times::{InvalidTimes, Times};
use crate::client::Client;
pub use crate::fence::{Fence, Fenced};
use crate::key::ObjectKey;
use crate::metrics::Metrics;
use crate::runnable::{Context, OnFailure, Runnable};
use crate::stop::Stop;

/// Options of an election.
#[derive(Clone, Debug)]
#[must_use = "pass it to Election::new"]
pub struct ElectionOptions {
    name: String,
    namespace: Option<String>,
    identity: Option<String>,
    labels: BTreeMap<String, String>,
    times: Times,
}

impl ElectionOptions {
    /// Creates options for an election on the Lease of this name. All replicas of one program use the same
    /// name, and no other program does.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            namespace: None,
            identity: None,
            labels: BTreeMap::new(),
            times: Times::default(),
        }
    }

    /// Sets the namespace of the Lease; the default is that of the Pod.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// Sets the identity prefix of this replica; the default is the host name, which is the Pod's name. The
    /// holder in the Lease is this prefix, `_`, and a random UUID.
    pub fn identity(self, identity: impl Into<String>) -> Self {
        Self { identity: Some(identity.into()), ..self }
    }

    /// Adds a label to the Lease.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Sets the lease duration and the renewal times.
    pub fn times(self, times: Times) -> Self {
        Self { times, ..self }
    }
}

/// The reason why an election cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum InvalidElection {
    /// The Lease has no name.
    #[error("an election needs the name of a Lease, the same one in all replicas")]
    NoName,
    /// The times contradict each other.
    #[error(transparent)]
    Times(#[from] InvalidTimes),
    /// No namespace is set, and the process does not run in a Pod.
    #[error(transparent)]
    Namespace(#[from] NamespaceUnknown),
}

/// An election in which this process can be a candidate.
pub struct Election {
    lock: LeaseLock,
    identity: String,
    times: Times,
    figures: Arc<Figures>,
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election")
            .field("lease", &self.lock.key)
            .field("standing", &*self.figures.standing.borrow())
            .finish_non_exhaustive()
    }
}

impl Election {
    /// Creates an election. The account of the client needs `get`, `create` and `patch` of `leases`, and
    /// should have `watch`.
    pub fn new(client: &Client, options: ElectionOptions) -> Result<Self, InvalidElection> {
        let ElectionOptions { name, namespace, identity, labels, times } = options;
        if name.is_empty() {
            return Err(InvalidElection::NoName);
        }
        times.validate()?;
        let namespace = match namespace {
            Some(namespace) => namespace,
            None => pod_namespace()?,
        };
        let key = ObjectKey::namespaced(namespace, name);
        Ok(Self {
            lock: LeaseLock { client: client.with_own_connections(), key, labels },
            identity: identity.unwrap_or_else(hostname),
            times,
            figures: Arc::new(Figures::new()),
        })
    }

    /// The standing of this process, now and in the future.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.figures.standing.subscribe()
    }

    /// The fence that is open while this process leads: until the renew deadline of the last renewal.
    pub fn fence(&self) -> Fence {
        self.figures.fence.clone()
    }

    /// Exposes this election in the metrics: `leader_election_master_status` and
    /// `leader_election_slowpath_total`, by `name`. A registry shows one election.
    pub fn show_in(&self, metrics: &Metrics) {
        let name = self.lock.key.name().to_owned();
        metrics.register(ElectionCollector { name, figures: Arc::clone(&self.figures) });
    }

    /// Waits until this process leads, then runs the work, and releases the lease when the work has ended.
    ///
    /// - `None`: a stop was requested before it led.
    /// - When the lease is lost, the work is dropped, at the latest at the renew deadline, and the error says
    ///   why. The work must not block its thread: a future can be dropped only where it awaits.
    /// - While it leads, the work must obey `stop`: the lease is kept until the work ends, however long that
    ///   takes.
    ///
    /// Cancellation: dropping the future drops the work and leaves the lease to expire.
    pub async fn lead<T, W: Future<Output = T>>(
        &self,
        stop: &Stop,
        work: impl FnOnce() -> W,
    ) -> Result<Option<T>, LeaseLost> {
        let me = identity::unique(&self.identity);
        let lease = self.lock.key.to_string();
        let stand = Stand::begin(&self.figures);
        Campaign::new(&self.lock, lease, me, self.times, stand).run(stop, work).await
    }

    /// Returns a runnable for the [`Election`](crate::manager::Stage::Election) stage of a manager: later
    /// stages run while this process leads, and have ended before the lease is released. A lost lease stops
    /// the process at once.
    pub fn into_runnable(self) -> Runnable {
        let election = Arc::new(self);
        let runnable = Runnable::new("leader election", move |context: Context| {
            let election = Arc::clone(&election);
            async move {
                let work = || async {
                    context.ready();
                    context.stop.requested().await;
                };
                election.lead(&context.stop, work).await.map(drop)
            }
        });
        runnable.on_failure(OnFailure::StopAtOnce)
    }
}
