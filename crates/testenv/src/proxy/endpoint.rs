//! The proxy itself: started, asked, dropped.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use super::control::Control;
use super::error::{ProxyError, WaitError};
use super::fault::Fault;
use super::handles::{FaultHandle, FreezeGuard};
use super::log::LoggedRequest;
use super::matching::Match;
use super::script::Script;
use super::server;
use super::shared::Shared;
use super::sync::Tasks;
use super::tls;
use super::upstream::Upstream;
use super::valve::Valve;

/// Options for starting a proxy.
///
/// ```
/// use windlass_testenv::proxy::ProxyOptions;
///
/// let options = ProxyOptions { upstream: "https://127.0.0.1:6443".to_owned(), ..ProxyOptions::default() };
/// ```
#[derive(Clone)]
pub struct ProxyOptions {
    /// The API server, as `https://host:port`.
    pub upstream: String,
    /// The authority that signed the API server's certificate.
    pub upstream_ca_pem: String,
    /// The proxy's own certificate, with its chain. It must be valid for 127.0.0.1.
    pub certificate_pem: String,
    /// The key of that certificate.
    pub key_pem: String,
    /// The number of recent requests that [`FaultProxy::seen`] remembers. Default: 10,000.
    pub remember: usize,
    /// The timeout of the `wait_for_…` functions. Default: 30 s.
    pub patience: Duration,
}

/// The address and the certificates are empty and must be given.
impl Default for ProxyOptions {
    fn default() -> Self {
        Self {
            upstream: String::new(),
            upstream_ca_pem: String::new(),
            certificate_pem: String::new(),
            key_pem: String::new(),
            remember: 10_000,
            patience: Duration::from_secs(30),
        }
    }
}

/// Shows no key.
impl fmt::Debug for ProxyOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyOptions")
            .field("upstream", &self.upstream)
            .field("remember", &self.remember)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// A running proxy. Dropping it closes its port and every connection, and ends its tasks; what is held then
/// never reaches the server.
#[must_use = "the proxy ends when it is dropped"]
pub struct FaultProxy {
    address: SocketAddr,
    control: Arc<Control>,
    tasks: Arc<Tasks>,
}

impl FaultProxy {
    /// Starts a proxy on a free port of 127.0.0.1. The API server need not be there yet.
    pub async fn start(options: ProxyOptions) -> Result<Self, ProxyError> {
        let acceptor = tls::acceptor(options.certificate_pem.as_bytes(), options.key_pem.as_bytes())?;
        let connector = tls::connector(options.upstream_ca_pem.as_bytes())?;
        let tasks = Arc::new(Tasks::new());
        let upstream = Arc::new(Upstream::new(&options.upstream, connector, Arc::clone(&tasks))?);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(ProxyError::Listen)?;
        let address = listener.local_addr().map_err(ProxyError::Listen)?;
        let control = Arc::new(Control::new(options.remember, options.patience));
        let shared = Shared::new(Arc::clone(&control), upstream, Arc::clone(&tasks));
        tasks.spawn(server::accept(listener, acceptor, Arc::new(shared)));
        Ok(Self { address, control, tasks })
    }

    /// The URL that clients connect to: `https://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The address that clients connect to.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Replaces all faults by those of a script, and returns their handles in its order. Requests that the
    /// old faults held are released; counting begins again.
    pub fn set(&self, script: impl Into<Script>) -> Vec<FaultHandle> {
        let handle = |(id, tally, fault)| FaultHandle::new(Arc::clone(&self.control), id, tally, fault);
        self.control.set(script.into()).into_iter().map(handle).collect()
    }

    /// Adds a fault after the others.
    pub fn add(&self, fault: Fault) -> FaultHandle {
        let (id, tally) = self.control.add(fault.clone());
        FaultHandle::new(Arc::clone(&self.control), id, tally, fault)
    }

    /// Removes all faults and releases what they hold.
    pub fn clear(&self) {
        self.control.clear();
    }

    /// Cuts the connections of the open watches that match, and returns their number.
    pub fn cut_watches(&self, wanted: &Match) -> usize {
        self.control.break_watches(wanted, Valve::cut)
    }

    /// Leaves the clients of the open watches that match on dead connections, and returns their number.
    pub fn half_open(&self, wanted: &Match) -> usize {
        self.control.break_watches(wanted, Valve::half_open)
    }

    /// Freezes the watches that match: those that are open, and those that are opened while the guard lives
    /// (their clients get the head of the answer and no event).
    pub fn freeze_watches(&self, wanted: &Match) -> FreezeGuard {
        FreezeGuard::new(Arc::clone(&self.control), self.control.freeze(wanted.clone()))
    }

    /// The number of open watches that match. A watch on a dead connection counts as long as its client keeps
    /// it.
    pub fn open_watches(&self, wanted: &Match) -> usize {
        self.control.open_watches(wanted)
    }

    /// Waits until exactly so many watches are open and match. Cancel safe.
    pub async fn wait_for_open_watches(&self, wanted: &Match, count: usize) -> Result<(), WaitError> {
        self.control.wait_for_open_watches(wanted, count).await
    }

    /// The last requests with what became of them so far, in the order in which they arrived.
    pub fn seen(&self) -> Vec<LoggedRequest> {
        self.control.seen()
    }

    /// The number of remembered requests for which `counts` returns true.
    pub fn count(&self, counts: impl Fn(&LoggedRequest) -> bool) -> usize {
        self.control.count(counts)
    }

    /// The number of the last of the remembered requests for which `holds` holds.
    pub fn last_where(&self, holds: impl Fn(&LoggedRequest) -> bool) -> Option<u64> {
        self.control.last_where(holds)
    }

    /// Reads the names of new objects from the bodies of their creates from now on, so that a create can be
    /// told from another one and matched by name. One with a `generateName` is called by that and a `*`. Such
    /// requests are taken off the wire as a whole before they are written down; bodies that are no JSON stay
    /// nameless.
    pub fn name_creates(&self) {
        self.control.name_creates();
    }

    /// Appends a name to the user agent of every request from now on, so that the audit log tells replicas of
    /// one user apart. Only the first name counts, and only characters that a header may have.
    pub fn name_replica(&self, name: impl Into<String>) {
        self.control.name_replica(name.into());
    }

    /// The number of the last request; 0 before the first. A mark for [`FaultProxy::wait_for_request_after`].
    pub fn last_sequence(&self) -> u64 {
        self.control.last()
    }

    /// Waits for a request that matches; one that was seen already counts, too. Cancel safe.
    pub async fn wait_for_request(&self, wanted: &Match) -> Result<LoggedRequest, WaitError> {
        self.wait_for_request_after(0, wanted).await
    }

    /// Waits for a request that matches and arrived after the one of this number. Cancel safe.
    pub async fn wait_for_request_after(
        &self,
        sequence: u64,
        wanted: &Match,
    ) -> Result<LoggedRequest, WaitError> {
        self.control.wait_for_request(sequence, wanted).await
    }

    /// Waits until something holds of a request that was seen, say that its client has left; gives the first
    /// one. `what` is said when the wait is in vain. Cancel safe.
    pub async fn wait_for_seen(
        &self,
        what: &str,
        holds: impl Fn(&LoggedRequest) -> bool,
    ) -> Result<LoggedRequest, WaitError> {
        self.control.wait_for_seen(what, holds).await
    }
}

#[cfg(test)]
impl FaultProxy {
    pub(super) fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.tasks.close();
    }
}

impl fmt::Debug for FaultProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultProxy").field("address", &self.address).finish_non_exhaustive()
    }
}
