//! Accepting clients and serving their connections.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::exchange;
use super::shared::Shared;
use super::sync::lock;
use super::tunnel::TunnelSlot;

/// Clients' connections at the same time; further ones wait to be accepted.
const MAX_CONNECTIONS: usize = 1024;

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
