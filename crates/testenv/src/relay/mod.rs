//! A relay in front of the API server that disturbs connections, byte by byte.
//!
//! The [fault proxy](crate::proxy) understands requests, and speaks HTTP/1.1 for that. Production uses
//! HTTP/2: watches, calls and Lease renewals share a few connections, and what happens to one connection
//! happens to everything on it. The relay therefore copies bytes and understands none of them. TLS passes
//! through untouched, so that client and server use the same protocol, certificates and connections as
//! without it.
//!
//! # What it promises
//!
//! - Every connection of a client has exactly one connection to the server, and is numbered from 1 in the
//!   order of arrival.
//! - A fault concerns the [connection](RelayConnection) that it is asked for, and no other.
//! - A [frozen](RelayConnection::freeze) connection stays open and delivers nothing, like one whose path was
//!   lost without a packet to say so. Nothing is lost: [thawed](RelayConnection::thaw), it delivers what was
//!   waiting, in order.
//!
//! ```no_run
//! use windlass_testenv::{TestEnv, Rules};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let env = TestEnv::shared().await?;
//! let namespace = env.namespace("frozen").await?;
//! let user = namespace.client_for("me", &Rules::everything()).await?;
//! let relay = env.relay().await?;
//! let config = user.config_through(&relay.url())?;
//! # let _ = config;
//! // … a client of this configuration opens connections …
//! relay.wait_for_connections(1).await?;
//! relay.connections()[0].freeze();
//! # Ok(())
//! # }
//! ```
//!
//! # What it does not do
//!
//! - Answer, change or count requests: see the [fault proxy](crate::proxy) and the
//!   [audit log](crate::AuditLog).
//! - Refuse to acknowledge packets: the kernel still acknowledges what a client sends on a frozen connection,
//!   until its buffers are full. Only what a client knows from bytes is tested, not the timeouts of TCP.

mod connection;
mod pump;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

pub use connection::RelayConnection;

use crate::error::Result;
use crate::eventually::eventually;
use connection::Fault;

/// The treatment of connections that clients open from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// New connections are relayed.
    #[default]
    Open,
    /// New connections are accepted and frozen, like a server behind a network that drops packets.
    Frozen,
    /// New connections are reset at once, like a server that is not there.
    Reset,
}

/// A relay in front of one server. Connections end when it is dropped.
///
/// Get one by [`TestEnv::relay`](crate::TestEnv::relay).
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

#[derive(Default)]
struct Shared {
    admission: Mutex<Admission>,
    connections: Mutex<Vec<RelayConnection>>,
}

impl Relay {
    /// Listens on a free port of 127.0.0.1, and relays every connection to `upstream`.
    pub async fn start(upstream: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let accepting = tokio::spawn(accept(listener, upstream, Arc::clone(&shared))).abort_handle();
        Ok(Self { address, shared, accepting })
    }

    /// The address that clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL that clients of an API server connect to: `https://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// All connections so far, in the order of arrival; those that have ended, too.
    pub fn connections(&self) -> Vec<RelayConnection> {
        lock(&self.shared.connections).clone()
    }

    /// The connections that are open now, in the order of arrival.
    pub fn open_connections(&self) -> Vec<RelayConnection> {
        self.connections().into_iter().filter(RelayConnection::is_open).collect()
    }

    /// Waits until clients have opened at least this number of connections, counted from the start of the
    /// relay. Cancel safe.
    pub async fn wait_for_connections(&self, count: usize) -> Result<()> {
        eventually(format!("{count} connections through the relay"), || async {
            match self.connections().len() {
                enough if enough >= count => Ok(()),
                few => Err(format!("{few} connections")),
            }
        })
        .await
    }

    /// Decides what happens to connections that clients open from now on.
    pub fn admit(&self, admission: Admission) {
        *lock(&self.shared.admission) = admission;
    }

    /// Freezes every open connection. New ones are not affected: see [`admit`](Self::admit).
    pub fn freeze_all(&self) {
        self.open_connections().iter().for_each(RelayConnection::freeze);
    }

    /// Lets every open connection go on, without a delay.
    pub fn thaw_all(&self) {
        self.open_connections().iter().for_each(RelayConnection::thaw);
    }

    /// Resets every open connection.
    pub fn reset_all(&self) {
        self.open_connections().iter().for_each(RelayConnection::reset);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // The task owns those of the connections.
        self.accepting.abort();
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Accepts until it is dropped, which ends all connections.
async fn accept(listener: TcpListener, upstream: SocketAddr, shared: Arc<Shared>) {
    let mut pumps = JoinSet::new();
    loop {
        let client = match listener.accept().await {
            Ok((client, _)) => client,
            Err(error) => {
                tracing::warn!(%error, "the relay cannot accept a connection");
                // Out of file descriptors, most likely: they do not come back by spinning.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        while pumps.try_join_next().is_some() {}
        let admission = *lock(&shared.admission);
        let fault = match admission {
            Admission::Open => Fault::None,
            Admission::Frozen => Fault::Frozen,
            Admission::Reset => Fault::Reset,
        };
        let (sender, faults) = watch::channel(fault);
        let connection = {
            let mut connections = lock(&shared.connections);
            let connection = RelayConnection::new(connections.len() + 1, sender);
            connections.push(connection.clone());
            connection
        };
        pumps.spawn(async move {
            let counters = connection.counters();
            if let Err(error) = relay(client, upstream, faults, counters).await {
                tracing::debug!(%error, connection = connection.number(), "a relayed connection ended");
            }
            connection.end();
        });
    }
}

async fn relay(
    client: TcpStream,
    upstream: SocketAddr,
    faults: watch::Receiver<Fault>,
    counters: Arc<connection::Counters>,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    if *faults.borrow() == Fault::Reset {
        return client.set_zero_linger();
    }
    let server = TcpStream::connect(upstream).await?;
    server.set_nodelay(true)?;
    pump::run(client, server, faults, &counters).await
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
