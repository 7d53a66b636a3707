//! An imitation of an API server: answers reads, counts writes, streams lines to watches on demand.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::StreamExt;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderValue, UPGRADE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::certificates::Certificates;
use super::in_time;
use crate::proxy::tls;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Stops when it is dropped.
pub(super) struct ApiServer {
    port: u16,
    state: Arc<ServerState>,
    tasks: JoinSet<()>,
}

#[derive(Default)]
struct ServerState {
    /// The writes, as `PATCH /path`.
    writes: watch::Sender<Vec<String>>,
    /// The watches by path.
    watches: Mutex<Vec<(String, mpsc::UnboundedSender<Bytes>)>>,
    last_headers: Mutex<HeaderMap>,
    connections: Mutex<usize>,
}

impl ApiServer {
    pub(super) async fn start(certificates: &Certificates, port: u16) -> Self {
        let acceptor =
            tls::acceptor(certificates.certificate_pem.as_bytes(), certificates.key_pem.as_bytes()).unwrap();
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(ServerState::default());
        let mut tasks = JoinSet::new();
        tasks.spawn({
            let state = Arc::clone(&state);
            async move {
                let mut connections = JoinSet::new();
                loop {
                    let (socket, _) = listener.accept().await.unwrap();
                    let (acceptor, state) = (acceptor.clone(), Arc::clone(&state));
                    connections.spawn(async move {
                        let Ok(stream) = acceptor.accept(socket).await else {
                            return;
                        };
                        *state.connections.lock().unwrap() += 1;
                        let service = service_fn(|request| serve(Arc::clone(&state), request));
                        let connection = http1::Builder::new()
                            .header_read_timeout(None)
                            .serve_connection(TokioIo::new(stream), service);
                        // It ends as the proxy ends it, which is no failure of the test.
                        let _ = connection.with_upgrades().await;
                    });
                }
            }
        });
        Self { port, state, tasks }
    }

    /// Closes its port and all connections.
    pub(super) fn stop(&mut self) {
        self.tasks.abort_all();
    }

    pub(super) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn writes(&self) -> Vec<String> {
        self.state.writes.borrow().clone()
    }

    pub(super) async fn wait_for_writes(&self, count: usize) {
        let mut writes = self.state.writes.subscribe();
        let enough = writes.wait_for(|writes| writes.len() >= count);
        in_time("writes", enough).await.unwrap();
    }

    pub(super) fn last_headers(&self) -> HeaderMap {
        self.state.last_headers.lock().unwrap().clone()
    }

    /// Connections that were ever made.
    pub(super) fn connections(&self) -> usize {
        *self.state.connections.lock().unwrap()
    }

    /// Sends text to every open watch of a resource.
    pub(super) fn emit(&self, resource: &str, text: &str) {
        for (_, sender) in self.watches(resource) {
            // A closed watch gets nothing.
            let _ = sender.send(Bytes::from(text.to_owned()));
        }
    }

    /// Returns when all watches of a resource that ever came are closed, seen from here.
    pub(super) async fn watches_closed(&self, resource: &str) {
        let watches = self.watches(resource);
        assert!(!watches.is_empty(), "nobody watches {resource}");
        for (_, sender) in watches {
            in_time("a watch to close", sender.closed()).await;
        }
    }

    fn watches(&self, resource: &str) -> Vec<(String, mpsc::UnboundedSender<Bytes>)> {
        let watches = self.state.watches.lock().unwrap();
        watches.iter().filter(|(path, _)| path.ends_with(resource)).cloned().collect()
    }
}

async fn serve(
    state: Arc<ServerState>,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    *state.last_headers.lock().unwrap() = request.headers().clone();
    assert!(request.headers().contains_key(HOST));
    let path = request.uri().path().to_owned();
    if request.headers().contains_key(UPGRADE) {
        return Ok(echo(&mut request));
    }
    if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
        let (sender, receiver) = mpsc::unbounded_channel();
        state.watches.lock().unwrap().push((path, sender));
        return Ok(Response::new(lines(receiver)));
    }
    let method = request.method().clone();
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes);
    // A body that breaks off is no write.
    let Ok(body) = body else {
        return Ok(Response::new(text(Bytes::new())));
    };
    if method != Method::GET {
        state.writes.send_modify(|writes| writes.push(format!("{method} {path}")));
    }
    let answer = if method == Method::POST {
        body
    } else {
        let name = path.rsplit('/').next().unwrap_or_default();
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "x"}});
        Bytes::from(object.to_string())
    };
    let mut response = Response::new(text(answer));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

fn text(bytes: Bytes) -> Body {
    Full::new(bytes).boxed_unsync()
}

fn lines(receiver: mpsc::UnboundedReceiver<Bytes>) -> Body {
    let stream = futures::stream::unfold(receiver, async |mut receiver| {
        let bytes = receiver.recv().await?;
        Some((bytes, receiver))
    });
    StreamBody::new(stream.map(|bytes| Ok(Frame::data(bytes)))).boxed_unsync()
}

/// Switches protocols and sends everything back.
fn echo(request: &mut Request<Incoming>) -> Response<Body> {
    let upgrade = hyper::upgrade::on(request);
    tokio::spawn(async move {
        let upgraded = upgrade.await.unwrap();
        let (mut reader, mut writer) = tokio::io::split(TokioIo::new(upgraded));
        tokio::io::copy(&mut reader, &mut writer).await.unwrap();
        writer.shutdown().await.unwrap();
    });
    let mut response = Response::new(text(Bytes::new()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static("echo"));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    response
}
