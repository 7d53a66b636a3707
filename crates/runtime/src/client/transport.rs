//! The HTTP transport: many requests share a connection.
//!
//! kube's own stack uses HTTP/1.1, where every watch and every call in flight has a connection of its own.
//! An operator that watches a thousand Secrets by name then has a thousand TLS sessions, each with a
//! handshake and buffers, and opens more with every burst of writes. Here requests share connections by
//! HTTP/2, as in Go's clients.
//!
//! - A connection carries at most [`STREAMS`] requests, fewer than servers allow; then another is opened.
//!   (The pool below would queue them on the one connection that it knows: a write would wait for a watch to
//!   end.)
//! - HTTP/1.1 is used if the server or a proxy does not support HTTP/2, and always for upgrades (exec), which
//!   HTTP/2 does not have.
//! - A connection that receives nothing for [`PING`] sends a ping. It is **suspect** if a request got no
//!   response headers for a second and nothing else arrived either: new requests use another connection
//!   until something arrives. If the ping is not answered, requests that wait for headers fail after 3.5
//!   seconds, to be retried on another connection, and all others when the connection is closed after
//!   [`PONG`]. A slow server that answers pings loses no request, and one that does not is given
//!   [more time](silence) with every connection that fails.
//!
//! Does not: know what it carries. Authentication is added by kube's layers above it.

mod body;
mod pulse;
mod silence;
#[cfg(test)]
mod tests;
mod trust;

use std::io;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::UPGRADE;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tower::{BoxError, Layer as _, Service};

use self::body::RequestBody;
use self::pulse::{Connector, Pulse};
use self::silence::{Liveness, Patience, STEP, Silence};
use self::trust::{Protocols, Trusting};

/// Requests per connection. Servers and proxies allow 100 or more.
const STREAMS: usize = 64;
/// A connection with open requests that receives nothing for this long sends a ping.
const PING: Duration = Duration::from_secs(2);
/// A connection whose ping is not answered for this long is closed, with all its watches. Longer than a busy
/// server, or a process without a processor, needs to answer or to read: other requests do not wait for it.
const PONG: Duration = Duration::from_secs(15);
/// A request waits this long for another one to open the connection for both, before it opens one itself. A
/// busy machine needs seconds for a TLS handshake, and a hundred of them make it busier.
const OPENING: Duration = Duration::from_secs(4);

/// Creates a kube client for this configuration. Must be called within a Tokio runtime.
///
/// If a proxy or a credential plugin is configured, it uses kube's own stack. `ca_file` is read again for
/// each connection.
pub(super) fn client(config: kube::Config, ca_file: Option<PathBuf>) -> Result<kube::Client, kube::Error> {
    if config.proxy_url.is_some() || config.auth_info.exec.is_some() {
        return kube::Client::try_from(config);
    }
    let namespace = config.default_namespace.clone();
    // In kube's own order.
    let base = config.base_uri_layer();
    let stack = config.extra_headers_layer()?.layer(Transport::new(&config, ca_file)?);
    Ok(match config.auth_layer()? {
        Some(auth) => ClientBuilder::new(base.layer(auth.layer(stack)), namespace).build(),
        None => ClientBuilder::new(base.layer(stack), namespace).build(),
    })
}

/// All connections to one server.
#[derive(Clone)]
struct Transport {
    /// Opens further connections.
    connector: Trusting,
    upgrades: Pool<Trusting, RequestBody>,
    connections: Arc<Mutex<Vec<Arc<Connection>>>>,
    patience: Arc<Patience>,
}

/// A connection, opened by its first request, and its capacity for further requests.
struct Connection {
    pool: Pool<Connector, RequestBody>,
    capacity: Arc<Semaphore>,
    pulse: Arc<Pulse>,
    patience: Arc<Patience>,
    /// A hint that requests will find an open connection: without it, all requests of a start would open one
    /// each.
    open: AtomicBool,
    opening: tokio::sync::Mutex<()>,
}

impl Transport {
    fn new(config: &kube::Config, ca_file: Option<PathBuf>) -> Result<Self, kube::Error> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(config.connect_timeout);
        let upgrades = Trusting::new(config, Protocols::Http1, &tcp, ca_file.clone())?;
        let upgrades = Pool::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(upgrades);
        let connector = Trusting::new(config, Protocols::All, &tcp, ca_file)?;
        Ok(Self { connector, upgrades, connections: Arc::default(), patience: Arc::default() })
    }

    /// Returns a connection that is not suspect and has capacity, with a permit for one request.
    fn connection(&self) -> (Arc<Connection>, Option<OwnedSemaphorePermit>) {
        let permit = |connection: &Arc<Connection>| Arc::clone(&connection.capacity).try_acquire_owned().ok();
        let mut connections = self.connections.lock();
        let usable = connections.iter().filter(|connection| !connection.pulse.is_suspect());
        let free = usable
            .into_iter()
            .find_map(|connection| Some((Arc::clone(connection), Some(permit(connection)?))));
        free.unwrap_or_else(|| {
            let connection = Arc::new(Connection::new(self.connector.clone(), Arc::clone(&self.patience)));
            connections.push(Arc::clone(&connection));
            let permit = permit(&connection);
            (connection, permit)
        })
    }
}

impl Connection {
    fn new(connector: Trusting, patience: Arc<Patience>) -> Self {
        let pulse = Arc::new(Pulse::new());
        let pool = Pool::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http2_keep_alive_interval(PING)
            .http2_keep_alive_timeout(PONG)
            .build(Connector::new(connector, Arc::clone(&pulse)));
        Self {
            pool,
            capacity: Arc::new(Semaphore::new(STREAMS)),
            pulse,
            patience,
            open: AtomicBool::new(false),
            opening: tokio::sync::Mutex::default(),
        }
    }

    /// Sends a request and waits for the response headers. The first request opens the connection, and later
    /// ones wait for it.
    async fn request(&self, request: Request<RequestBody>) -> Result<Response<Incoming>, BoxError> {
        let is_open = || self.open.load(Ordering::Relaxed);
        let first =
            if is_open() { None } else { tokio::time::timeout(OPENING, self.opening.lock()).await.ok() };
        // A request that waited finds the connection open, and must not keep others waiting.
        let first = first.filter(|_| !is_open());
        let response = self.supervised(self.pool.request(request)).await;
        self.open.store(response.is_ok(), Ordering::Relaxed);
        drop(first);
        response
    }

    /// Waits for response headers while the connection gives signs of life.
    async fn supervised<T, E: Into<BoxError>>(
        &self,
        response: impl Future<Output = Result<T, E>>,
    ) -> Result<T, BoxError> {
        let (sent, level) = (Instant::now(), self.patience.level());
        let mut response = pin!(response);
        let mut silence = Silence::since(self.pulse.last_sign(sent));
        loop {
            if let Ok(response) = timeout(STEP, &mut response).await {
                if response.is_ok() {
                    self.patience.answered();
                }
                return response.map_err(Into::into);
            }
            match silence.step(self.pulse.last_sign(sent), level) {
                Liveness::Alive => {}
                Liveness::Suspect => self.pulse.suspect(),
                Liveness::Silent => {
                    self.patience.found_silent(level);
                    let silent = "the connection is silent: no response, and no answer to a ping";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, silent).into());
                }
            }
        }
    }
}

impl Service<Request<Body>> for Transport {
    type Response = Response<ResponseBody>;
    /// Boxed, as kube's layer for refreshed tokens requires it.
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let request = RequestBody::wrap(request);
        if request.headers().contains_key(UPGRADE) {
            let response = self.upgrades.request(request);
            return Box::pin(async move {
                Ok(response.await?.map(|body| ResponseBody { body, connection: None }))
            });
        }
        let (connection, permit) = self.connection();
        Box::pin(async move {
            let response = connection.request(request).await?;
            Ok(response.map(|body| ResponseBody { body, connection: Some((connection, permit)) }))
        })
    }
}

/// The body of a response. It occupies capacity of the connection until it is dropped.
struct ResponseBody {
    body: Incoming,
    connection: Option<(Arc<Connection>, Option<OwnedSemaphorePermit>)>,
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let (Poll::Ready(Some(Err(_))), Some((connection, _))) = (&frame, &self.connection) {
            // All requests of the connection will be repeated at once.
            connection.open.store(false, Ordering::Relaxed);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
