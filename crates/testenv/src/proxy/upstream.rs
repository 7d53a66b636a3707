//! Connections to the API server.
//!
//! Promise: [`Upstream::send`] sends a request at most once. A connection serves one request at a time and is
//! used again only after its answer was read to the end; one that the server closed meanwhile is replaced as
//! long as nothing was written to it.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::error::ProxyError;
use super::sync::{AbortOnDrop, Tasks, lock};
use super::watch::BoxError;

/// Idle connections kept; more are closed.
const MAX_IDLE: usize = 16;

/// A request's body, streamed from the client or held before.
pub(super) type RequestBody = UnsyncBoxBody<Bytes, BoxError>;

/// The API server behind the proxy.
pub(super) struct Upstream {
    /// `host:port`, as the `Host` header and as what to connect to.
    authority: HeaderValue,
    host: String,
    port: u16,
    name: ServerName<'static>,
    tls: TlsConnector,
    idle: Mutex<Vec<Connection>>,
    tasks: Arc<Tasks>,
}

/// One connection; dropping it closes it.
struct Connection {
    sender: SendRequest<RequestBody>,
    _driver: AbortOnDrop,
}

impl Upstream {
    pub(super) fn new(url: &str, tls: TlsConnector, tasks: Arc<Tasks>) -> Result<Self, ProxyError> {
        let unusable = |reason: &str| ProxyError::Upstream { url: url.to_owned(), reason: reason.to_owned() };
        let uri: Uri = url.parse().map_err(|_| unusable("it is no URL"))?;
        if uri.scheme_str() != Some("https") {
            return Err(unusable("its scheme is not https"));
        }
        if uri.path() != "/" {
            return Err(unusable("it has a path"));
        }
        let authority = uri.authority().ok_or_else(|| unusable("it has no host"))?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let name =
            ServerName::try_from(host.clone()).map_err(|_| unusable("its host is no name or address"))?;
        let header =
            HeaderValue::from_str(authority.as_str()).map_err(|_| unusable("its host is no name"))?;
        Ok(Self {
            authority: header,
            host,
            port: authority.port_u16().unwrap_or(443),
            name,
            tls,
            idle: Mutex::default(),
            tasks,
        })
    }

    /// Sends a request and waits for the head of its answer.
    ///
    /// Dropped midway, the connection is closed: as with any client that leaves, the request may or may not
    /// have reached the server.
    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Request<RequestBody>,
    ) -> Result<Response<UpstreamBody>, BoxError> {
        request.headers_mut().insert(HOST, self.authority.clone());
        if let Some(mut connection) = self.take_idle() {
            match connection.sender.try_send_request(request).await {
                Ok(response) => return Ok(self.receive(response, connection)),
                // The request comes back untouched when the connection was closed before anything was
                // written.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(error.into_error().into()),
                },
            }
        }
        let mut connection = self.connect().await?;
        let response = connection.sender.send_request(request).await?;
        Ok(self.receive(response, connection))
    }

    fn receive(
        self: &Arc<Self>,
        response: Response<Incoming>,
        connection: Connection,
    ) -> Response<UpstreamBody> {
        response.map(|inner| UpstreamBody {
            inner,
            ended: false,
            connection: Some(connection),
            home: Arc::clone(self),
        })
    }

    async fn connect(&self) -> Result<Connection, BoxError> {
        let socket = TcpStream::connect((self.host.as_str(), self.port)).await?;
        socket.set_nodelay(true)?;
        let stream = self.tls.connect(self.name.clone(), socket).await?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        let driver = self.tasks.spawn(async move {
            if let Err(error) = driver.with_upgrades().await {
                tracing::debug!(%error, "a connection to the API server ended");
            }
        });
        let driver = driver.ok_or("the proxy is closed")?;
        Ok(Connection { sender, _driver: AbortOnDrop(driver) })
    }

    /// A connection that is open and has nothing to do.
    fn take_idle(&self) -> Option<Connection> {
        let mut idle = lock(&self.idle);
        idle.retain(|connection| !connection.sender.is_closed());
        let ready = idle.iter().rposition(|connection| connection.sender.is_ready())?;
        Some(idle.swap_remove(ready))
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = lock(&self.idle);
        if idle.len() < MAX_IDLE {
            idle.push(connection);
        }
    }
}

/// An answer's body with the connection that it comes from. Read to the end, the connection serves again;
/// dropped before, it is closed.
pub(super) struct UpstreamBody {
    inner: Incoming,
    ended: bool,
    connection: Option<Connection>,
    home: Arc<Upstream>,
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx));
        self.ended = frame.is_none();
        Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for UpstreamBody {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && (self.ended || self.inner.is_end_stream())
        {
            self.home.give_back(connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::tests::certificates::Certificates;
    use crate::proxy::tls;

    #[test]
    fn only_an_https_address_is_an_upstream() {
        let certificates = Certificates::generate();
        let connector = tls::connector(certificates.ca_pem.as_bytes()).unwrap();
        let new = |url: &str| Upstream::new(url, connector.clone(), Arc::new(Tasks::new()));
        for (url, host, port) in [
            ("https://127.0.0.1:6443", "127.0.0.1", 6443),
            ("https://[::1]:6443/", "::1", 6443),
            ("https://kubernetes.default", "kubernetes.default", 443),
        ] {
            let upstream = new(url).unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!((upstream.host.as_str(), upstream.port), (host, port), "{url}");
        }
        for url in
            ["127.0.0.1:6443", "http://127.0.0.1:6443", "https://127.0.0.1:6443/k8s", "https://", "a b"]
        {
            assert!(matches!(new(url), Err(ProxyError::Upstream { .. })), "{url}");
        }
    }
}
