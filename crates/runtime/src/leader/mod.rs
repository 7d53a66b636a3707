//! Leader election: of many replicas, one works.
//!
//! An [`Election`] is about one Lease (`coordination.k8s.io/v1`), by client-go's protocol: replicas of ours and programs
//! written with client-go can be candidates for the same one.
//!
//! It promises:
//! - **Who leads has stopped before another may lead.** The work is dropped at the renew deadline, counted from when the last
//!   renewal that worked was sent; others wait for the longer lease duration from when they saw it.
//! - **No clocks are compared.** A holder is gone when its record did not change before our eyes for as long as the record
//!   says. The times in a Lease are for people.
//! - **Every write names the version that it replaces**, so of two who take a free lease one gets it.
//! - **One hung request does not lose a lease**: each has a deadline of half the renew deadline.
//! - **A clean end costs nobody time.** When the work has ended, the lease is released; a standby watches it and starts at
//!   once. A standby that may not watch looks every [retry period](Times::retry_period).
//! - **An identity is unique**, in all processes and for each campaign: nobody takes another's lease for its own.
//!
//! It does not fence: a process that is frozen as a whole (a paused virtual machine) does not notice that its time is
//! over before it runs again, and a request that it sent before may arrive late. Writes that must not happen twice name a
//! resource version or a uid.
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
//! manager.election(election)?;
//! // Controllers now run on the leader only; caches run everywhere.
//! manager.run().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Without
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
use crate::key::ObjectKey;
use crate::metrics::Metrics;
use crate::part::{Context, OnFailure, Part};
use crate::stop::Stop;

/// What an election is about.
#[derive(Clone, Debug)]
#[must_use = "give it to Election::new"]
pub struct ElectionOptions {
    name: String,
    namespace: Option<String>,
    identity: Option<String>,
    labels: BTreeMap<String, String>,
    times: Times,
}

impl ElectionOptions {
    /// An election on the Lease of this name. All replicas of one program name the same, and no other program does.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            namespace: None,
            identity: None,
            labels: BTreeMap::new(),
            times: Times::default(),
        }
    }

    /// The namespace of the Lease; otherwise that of the Pod that we run in.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// How this replica is called; otherwise by its host name, which is the Pod's name. The holder that the Lease names is
    /// this, `_`, and a random UUID.
    pub fn identity(self, identity: impl Into<String>) -> Self {
        Self { identity: Some(identity.into()), ..self }
    }

    /// A label of the Lease.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// How long a lease lasts, and when it is renewed.
    pub fn times(self, times: Times) -> Self {
        Self { times, ..self }
    }
}

/// Why there can be no such election.
#[derive(Debug, thiserror::Error)]
pub enum InvalidElection {
    /// It has no name.
    #[error("an election needs the name of a Lease, the same one in all replicas")]
    NoName,
    /// The times contradict each other.
    #[error(transparent)]
    Times(#[from] InvalidTimes),
    /// No namespace was given, and this is no Pod.
    #[error(transparent)]
    Namespace(#[from] NamespaceUnknown),
}

/// An election, in which this process can be a candidate.
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
    /// An election. The account of the client needs `get`, `create` and `patch` of `leases`, and should have `watch`.
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
            lock: LeaseLock { client: client.clone(), key, labels },
            identity: identity.unwrap_or_else(hostname),
            times,
            figures: Arc::new(Figures::new()),
        })
    }

    /// Where this process stands, now and later.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.figures.standing.subscribe()
    }

    /// Shows this election in the metrics: `leader_election_master_status` and `leader_election_slowpath_total`, by `name`.
    /// A registry shows one election.
    pub fn show_in(&self, metrics: &Metrics) {
        let name = self.lock.key.name().to_owned();
        metrics.register(ElectionCollector { name, figures: Arc::clone(&self.figures) });
    }

    /// Waits until this process leads, then does the work, and releases the lease when it has ended.
    ///
    /// - `None`: a stop was requested before it led.
    /// - When the lease is lost, the work is dropped, at the latest at the renew deadline, and that is the error. The work must
    ///   not block its thread: what does not await cannot be dropped.
    /// - After it leads, `stop` is the work's to obey: the lease is kept until the work ends, however long that takes.
    ///
    /// Cancellation: dropped, it drops the work and leaves the lease to expire.
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

    /// As a part for the [`Election`](crate::manager::Stage::Election) stage of a manager: what comes after it runs while this
    /// process leads, and has ended before the lease is released. A lost lease stops the process at once.
    pub fn into_part(self) -> Part {
        let election = Arc::new(self);
        let part = Part::new("leader election", move |context: Context| {
            let election = Arc::clone(&election);
            async move {
                let work = || async {
                    context.ready();
                    context.stop.requested().await;
                };
                election.lead(&context.stop, work).await.map(drop)
            }
        });
        part.on_failure(OnFailure::StopAtOnce)
    }
}
