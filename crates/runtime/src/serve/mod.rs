//! HTTP serving: a listener, connections, and a graceful stop.
//!
//! Promises: the port is bound when a [`Listener`] is created, so that an unavailable port is a clear error
//! before anything runs; a connection that fails, hangs in its handshake or misbehaves affects only itself;
//! on a stop no new connection is accepted, requests in flight are answered, and idle connections are closed.
//!
//! Does not: route (an [`axum::Router`] does) or limit the duration of the stop (the
//! [manager](crate::manager) does).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::stop::Stop;

/// Timeout of the TLS handshake and of the request headers (HTTP/1).
const GREETING: Duration = Duration::from_secs(10);

/// The delay when the process has no file descriptor left for another connection.
const BREATHER: Duration = Duration::from_millis(100);

/// A bound port of this process. Clones are the same port; it is released when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Listener {
    socket: Arc<std::net::TcpListener>,
    address: SocketAddr,
}

/// A port that cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {}", remedy(.error, *.address))]
pub struct BindError {
    /// The requested address.
    pub address: SocketAddr,
    /// The error of the operating system.
    #[source]
    pub error: io::Error,
}

fn remedy(error: &io::Error, address: SocketAddr) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("another process has port {}; stop it or choose another port", address.port())
        }
        io::ErrorKind::PermissionDenied => {
            format!("port {} needs privileges; choose one above 1023", address.port())
        }
        io::ErrorKind::AddrNotAvailable => format!("{} is not an address of this machine", address.ip()),
        _ => error.to_string(),
    }
}

impl Listener {
    /// Binds a port; port 0 is any free one.
    pub fn bind(address: impl Into<SocketAddr>) -> Result<Self, BindError> {
        let address = address.into();
        let bind = || {
            let socket = std::net::TcpListener::bind(address)?;
            socket.set_nonblocking(true)?;
            Ok((socket.local_addr()?, socket))
        };
        let (address, socket) = bind().map_err(|error| BindError { address, error })?;
        Ok(Self { socket: Arc::new(socket), address })
    }

    /// The address, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until a stop is requested and all requests before it are answered.
    ///
    /// Cancellation: dropping the future drops every connection at once; the port stays bound.
    pub async fn serve(&self, router: Router, options: Options, stop: &Stop) -> io::Result<()> {
        let socket = tokio::net::TcpListener::from_std(self.socket.try_clone()?)?;
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.requested() => break,
                Some(_) = connections.join_next() => continue,
                accepted = socket.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let connection = connection(stream, router.clone(), options.clone(), stop.clone());
                    connections.spawn(async move {
                        if let Err(error) = connection.await {
                            // Port scans, probes and clients that do not trust the certificate: not worth
                            // more than a debug line.
                            tracing::debug!(%peer, %error, "connection failed");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, address = %self.address, "cannot accept a connection");
                    tokio::time::sleep(BREATHER).await;
                }
            }
        }
        while connections.join_next().await.is_some() {}
        Ok(())
    }
}

/// Options of serving connections.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The TLS configuration; `None` serves plain HTTP.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// The maximum age of a connection: then its client is asked to open another, and requests in flight are
    /// answered. A client that keeps one connection permanently would stay with one replica, and with its
    /// first certificate.
    pub connection_age: Option<Duration>,
}

type ConnectionError = Box<dyn std::error::Error + Send + Sync>;

async fn connection(
    stream: TcpStream,
    router: Router,
    options: Options,
    stop: Stop,
) -> Result<(), ConnectionError> {
    // Without this, the first response over HTTP/2 waits for a delayed acknowledgement: 50 ms instead of 10.
    stream.set_nodelay(true)?;
    let Options { tls, connection_age } = options;
    let Some(tls) = tls else { return exchange(stream, router, connection_age, stop).await };
    let greeting = TlsAcceptor::from(tls).accept(stream);
    let stream = tokio::select! {
        greeted = tokio::time::timeout(GREETING, greeting) => greeted??,
        // No request was received yet.
        () = stop.requested() => return Ok(()),
    };
    exchange(stream, router, connection_age, stop).await
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    age: Option<Duration>,
    stop: Stop,
) -> Result<(), ConnectionError> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(GREETING);
    server.http2().timer(TokioTimer::new()).max_concurrent_streams(250);
    let connection = server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    let aged = async {
        match age {
            Some(age) => tokio::time::sleep(age).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = stop.requested() => {}
        () = aged => {}
    }
    connection.as_mut().graceful_shutdown();
    connection.await
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::Semaphore;

    fn here() -> SocketAddr {
        ([127, 0, 0, 1], 0).into()
    }

    #[test]
    fn a_port_that_is_taken_is_a_clear_error() {
        let one = Listener::bind(here()).unwrap();
        let error = Listener::bind(one.address()).unwrap_err();
        let port = one.address().port();
        assert_eq!(
            error.to_string(),
            format!(
                "cannot listen on 127.0.0.1:{port}: another process has port {port}; stop it or choose another port"
            )
        );
        let error = Listener::bind(([192, 0, 2, 1], 0)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot listen on 192.0.2.1:0: 192.0.2.1 is not an address of this machine"
        );
    }

    #[tokio::test]
    async fn a_stop_answers_requests_in_flight_closes_idle_connections_and_accepts_no_new_ones() {
        let listener = Listener::bind(here()).unwrap();
        let (arrived, leave) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (seen, go) = (Arc::clone(&arrived), Arc::clone(&leave));
        let router = Router::new().route(
            "/slow",
            get(move || async move {
                seen.add_permits(1);
                let _ = go.acquire().await;
                "done"
            }),
        );
        let (stopper, stop) = Stop::pair();
        let serving = {
            let listener = listener.clone();
            tokio::spawn(async move { listener.serve(router, Options::default(), &stop).await })
        };
        let mut idle = TcpStream::connect(listener.address()).await.unwrap();
        idle.write_all(b"GET /nothing HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let mut first = [0; 12];
        idle.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 404");
        let mut slow = TcpStream::connect(listener.address()).await.unwrap();
        slow.write_all(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        arrived.acquire().await.unwrap().forget();
        stopper.request();
        let mut rest = Vec::new();
        idle.read_to_end(&mut rest).await.unwrap();
        leave.add_permits(1);
        let mut answer = String::new();
        slow.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"), "{answer}");
        serving.await.unwrap().unwrap();
        let address = listener.address();
        drop(listener);
        assert!(TcpStream::connect(address).await.is_err());
    }

    #[tokio::test]
    async fn a_connection_beyond_its_age_is_closed_after_its_request_is_answered() {
        let listener = Listener::bind(here()).unwrap();
        let router = Router::new().route("/", get(|| async { "done" }));
        let (_stopper, stop) = Stop::pair();
        let options = Options { connection_age: Some(Duration::from_millis(1)), ..Options::default() };
        let address = listener.address();
        let _serving = tokio::spawn(async move { listener.serve(router, options, &stop).await });
        let mut client = TcpStream::connect(address).await.unwrap();
        let mut rest = Vec::new();
        // No request was received, and no end was requested: the server closes the connection.
        client.read_to_end(&mut rest).await.unwrap();
    }
}
