//! How requests travel: many on one connection.
//!
//! kube's own stack speaks HTTP/1.1, where every watch and every call under way has a connection to itself. An operator that
//! follows a thousand Secrets by name then has a thousand TLS sessions, each with a handshake and buffers, and opens more with every
//! burst of writes. Here they share connections by HTTP/2, as Go's clients do.
//!
//! - A connection carries at most [`STREAMS`] requests, fewer than servers allow; then another is opened. (The pool below would
//!   queue them on the one connection that it knows: a write would wait for a watch to end.)
//! - A server or a proxy that speaks HTTP/1.1 only is spoken to in that. Upgrades (exec) always are: they have none in HTTP/2.
//! - A connection that died without a word is noticed by pings, which are no requests.
//!
//! Does not: know what it carries. Who is asking, and as whom, is said by kube's layers above it.

use std::pin::Pin;
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
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client as Pool};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{BoxError, Layer as _, Service};

/// How many requests share a connection. Servers and proxies allow 100 or more.
const STREAMS: usize = 64;
/// How often a silent connection is asked whether it lives, and how long it may take to say so.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(15);
/// How long a request waits for another to open the connection for both, before it opens one itself.
const OPENING: Duration = Duration::from_secs(1);

/// A client for this configuration. Must be called within a Tokio runtime.
///
/// Where a proxy or a program that gives out credentials is configured, it is kube's own stack.
pub(super) fn client(config: kube::Config) -> Result<kube::Client, kube::Error> {
    if config.proxy_url.is_some() || config.auth_info.exec.is_some() {
        return kube::Client::try_from(config);
    }
    let namespace = config.default_namespace.clone();
    // In kube's own order.
    let base = config.base_uri_layer();
    let stack = config.extra_headers_layer()?.layer(Transport::new(&config)?);
    Ok(match config.auth_layer()? {
        Some(auth) => ClientBuilder::new(base.layer(auth.layer(stack)), namespace).build(),
        None => ClientBuilder::new(base.layer(stack), namespace).build(),
    })
}

type Connections = Pool<HttpsConnector<HttpConnector>, Body>;

/// All connections to one server.
#[derive(Clone)]
struct Transport {
    /// Makes further lanes.
    connector: HttpsConnector<HttpConnector>,
    upgrades: Connections,
    lanes: Arc<Mutex<Vec<Arc<Lane>>>>,
}

/// A connection, once it is open, and what it has room for.
struct Lane {
    connections: Connections,
    room: Arc<Semaphore>,
    /// Whether requests will find a connection. A hint: without it, all requests of a start would open one each.
    open: AtomicBool,
    opening: tokio::sync::Mutex<()>,
}

impl Transport {
    fn new(config: &kube::Config) -> Result<Self, kube::Error> {
        let shared = || -> Result<_, kube::Error> {
            let builder = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?);
            let builder = builder.https_or_http();
            let Some(name) = &config.tls_server_name else { return Ok(builder) };
            let name = name.clone().try_into().map_err(kube::client::RustlsTlsError::InvalidServerName);
            let name = name.map_err(kube::Error::RustlsTls)?;
            Ok(builder.with_server_name_resolver(FixedServerNameResolver::new(name)))
        };
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(config.connect_timeout);
        let upgrades = pool(shared()?.enable_http1().wrap_connector(tcp.clone()));
        let connector = shared()?.enable_all_versions().wrap_connector(tcp);
        Ok(Self { connector, upgrades, lanes: Arc::default() })
    }

    /// A lane with room for one more, and that room.
    fn lane(&self) -> (Arc<Lane>, Option<OwnedSemaphorePermit>) {
        let room = |lane: &Arc<Lane>| Arc::clone(&lane.room).try_acquire_owned().ok();
        let mut lanes = self.lanes.lock();
        let free = lanes.iter().find_map(|lane| Some((Arc::clone(lane), Some(room(lane)?))));
        free.unwrap_or_else(|| {
            let lane = Arc::new(Lane {
                connections: pool(self.connector.clone()),
                room: Arc::new(Semaphore::new(STREAMS)),
                open: AtomicBool::new(false),
                opening: tokio::sync::Mutex::default(),
            });
            lanes.push(Arc::clone(&lane));
            let room = room(&lane);
            (lane, room)
        })
    }
}

fn pool(connector: HttpsConnector<HttpConnector>) -> Connections {
    Pool::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING)
        .http2_keep_alive_timeout(PONG)
        .build(connector)
}

impl Lane {
    /// Sends a request. The first one opens the connection, and those that come meanwhile wait for it.
    async fn request(&self, request: Request<Body>) -> Result<Response<Incoming>, legacy::Error> {
        let is_open = || self.open.load(Ordering::Relaxed);
        let first =
            if is_open() { None } else { tokio::time::timeout(OPENING, self.opening.lock()).await.ok() };
        // Who waited finds it open, and keeps nobody waiting.
        let first = first.filter(|_| !is_open());
        let answer = self.connections.request(request).await;
        self.open.store(answer.is_ok(), Ordering::Relaxed);
        drop(first);
        answer
    }
}

impl Service<Request<Body>> for Transport {
    type Response = Response<Carried>;
    /// Boxed, as kube's layer for refreshed tokens wants it.
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if request.headers().contains_key(UPGRADE) {
            let answer = self.upgrades.request(request);
            return Box::pin(async move { Ok(answer.await?.map(|body| Carried { body, lane: None })) });
        }
        let (lane, room) = self.lane();
        Box::pin(async move {
            let answer = lane.request(request).await?;
            Ok(answer.map(|body| Carried { body, lane: Some((lane, room)) }))
        })
    }
}

/// The body of an answer. It has its room on the connection until it is dropped.
struct Carried {
    body: Incoming,
    lane: Option<(Arc<Lane>, Option<OwnedSemaphorePermit>)>,
}

impl http_body::Body for Carried {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let (Poll::Ready(Some(Err(_))), Some((lane, _))) = (&frame, &self.lane) {
            // All that it carried will ask again, at once.
            lane.open.store(false, Ordering::Relaxed);
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
