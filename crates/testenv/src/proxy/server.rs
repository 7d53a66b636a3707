//! Accepting clients and serving their connections.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::control::Control;
use super::exchange;
use super::sync::{Tasks, lock};
use super::upstream::{Upstream, UpstreamBody};

/// Clients' connections at the same time; further ones wait to be accepted.
const MAX_CONNECTIONS: usize = 1024;
/// Requests held at the same time.
const MAX_HELD: usize = 256;

/// What every connection needs.
pub(super) struct Shared {
    pub(super) control: Arc<Control>,
    pub(super) upstream: Arc<Upstream>,
    pub(super) tasks: Arc<Tasks>,
    /// A permit for every request that is held.
    pub(super) held: Arc<Semaphore>,
}

impl Shared {
    pub(super) fn new(control: Arc<Control>, upstream: Arc<Upstream>, tasks: Arc<Tasks>) -> Self {
        Self { control, upstream, tasks, held: Arc::new(Semaphore::new(MAX_HELD)) }
    }
}

/// Accepts until it is dropped.
pub(super) async fn accept(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((socket, _)) => {
                let (acceptor, tasks, shared) =
                    (acceptor.clone(), Arc::clone(&shared.tasks), Arc::clone(&shared));
                tasks.spawn(async move {
                    serve(socket, acceptor, shared).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the fault proxy cannot accept a connection");
                // Out of file descriptors, most likely: they do not come back by spinning.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Serves one connection to its end.
async fn serve(socket: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    // Without it small frames of a watch would wait for acknowledgements.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "the client is gone");
        return;
    }
    let stream = match acceptor.accept(socket).await {
        Ok(stream) => stream,
        Err(error) => {
            tracing::debug!(%error, "TLS with a client failed");
            return;
        }
    };
    let tunnel = TunnelSlot::default();
    let service = service_fn(|request| exchange::exchange(Arc::clone(&shared), Arc::clone(&tunnel), request));
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a client's connection ended");
    }
    let tunnel = lock(&tunnel).take();
    if let Some(tunnel) = tunnel {
        tunnel.run().await;
    }
}

/// Where a request that becomes a tunnel leaves it for its connection.
pub(super) type TunnelSlot = Arc<Mutex<Option<Tunnel>>>;

/// Both ends of an upgraded connection.
pub(super) struct Tunnel {
    pub(super) client: OnUpgrade,
    pub(super) server: OnUpgrade,
    /// Keeps the server's connection alive until it is handed over.
    pub(super) carrier: UpstreamBody,
}

impl Tunnel {
    /// Copies both ways until both sides are done or one fails.
    async fn run(self) {
        let (client, server) = match futures::try_join!(self.client, self.server) {
            Ok(ends) => ends,
            Err(error) => {
                tracing::debug!(%error, "an upgrade failed");
                return;
            }
        };
        let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
        if let Err(error) = tokio::io::copy_bidirectional(&mut client, &mut server).await {
            tracing::debug!(%error, "a tunnel ended");
        }
        drop(self.carrier);
    }
}
