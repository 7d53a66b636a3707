//! A scripted API server in process: no socket, so a paused clock works.
// Shared by several test files, each of which uses some of it; a test fails by panicking.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::unused_self)]

use std::pin::Pin;

use bytes::Bytes;
use futures::StreamExt;
use futures::channel::{mpsc, oneshot};
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;
use windlass_runtime::cache::WatchTiming;
use windlass_runtime::client::{Client, ClientOptions};

type Chunk = Result<Frame<Bytes>, std::io::Error>;
type Chunks = Pin<Box<dyn futures::Stream<Item = Chunk> + Send>>;
type Reply = Result<Response<StreamBody<Chunks>>, std::io::Error>;

/// The server side: requests in the order of their arrival.
pub struct FakeApi {
    requests: mpsc::UnboundedReceiver<Asked>,
}

/// One request, waiting for its response.
pub struct Asked {
    pub method: Method,
    pub target: String,
    pub accept: String,
    pub user_agent: String,
    pub content_type: String,
    pub body: Bytes,
    reply: oneshot::Sender<Reply>,
}

/// An open watch stream.
pub struct Stream {
    chunks: tokio::sync::mpsc::Sender<Chunk>,
}

/// Returns a body and the sender of its chunks.
fn body() -> (tokio::sync::mpsc::Sender<Chunk>, StreamBody<Chunks>) {
    let (chunks, mut receiver) = tokio::sync::mpsc::channel(64);
    (chunks, StreamBody::new(Box::pin(futures::stream::poll_fn(move |cx| receiver.poll_recv(cx)))))
}

/// Returns a client and its server.
pub fn fake_api() -> (Client, FakeApi) {
    let (sender, requests) = mpsc::unbounded();
    let service = service_fn(move |request: Request<Body>| {
        let sender = sender.clone();
        async move {
            let (reply, answer) = oneshot::channel();
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
            let header = |name: http::HeaderName| {
                parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
            };
            let asked = Asked {
                accept: header(http::header::ACCEPT),
                user_agent: header(http::header::USER_AGENT),
                content_type: header(http::header::CONTENT_TYPE),
                method: parts.method,
                target: parts.uri.to_string(),
                body,
                reply,
            };
            sender.unbounded_send(asked).map_err(std::io::Error::other)?;
            answer.await.map_err(std::io::Error::other)?
        }
    });
    let kube = kube::Client::new(service, "default");
    (Client::from_kube(kube, ClientOptions::default()).unwrap(), FakeApi { requests })
}

/// Returns timing with which every kind is streamed: list and watch are one request.
pub fn streaming() -> WatchTiming {
    WatchTiming { stream_all: true, ..WatchTiming::default() }
}

impl FakeApi {
    /// Waits for the next request.
    pub async fn next(&mut self) -> Asked {
        self.requests.next().await.expect("a request")
    }

    /// Returns true if no request is waiting.
    pub fn is_quiet(&mut self) -> bool {
        self.requests.try_recv().is_err()
    }

    /// Answers a streaming list with these objects at this version, and leaves the watch open.
    pub async fn stream_list(&mut self, version: u64, objects: &[Value]) -> Stream {
        let asked = self.next().await;
        assert!(asked.target.contains("sendInitialEvents=true"), "{}", asked.target);
        assert!(asked.target.contains("resourceVersionMatch=NotOlderThan"), "{}", asked.target);
        let mut stream = asked.stream();
        for object in objects {
            stream.event("ADDED", object).await;
        }
        stream.end_of_list(version).await;
        stream
    }

    /// Answers a watch from this version.
    pub async fn watch_from(&mut self, version: u64) -> Stream {
        let asked = self.next().await;
        assert!(asked.target.contains(&format!("resourceVersion={version}")), "{}", asked.target);
        assert!(asked.target.contains("watch=true"), "{}", asked.target);
        asked.stream()
    }
}

impl Asked {
    /// Answers with a body.
    pub fn answer(self, status: u16, body: &Value) {
        self.answer_with(status, &[], body);
    }

    /// Answers with headers and a body.
    pub fn answer_with(self, status: u16, headers: &[(&str, &str)], body: &Value) {
        let (chunks, whole) = self::body();
        chunks.try_send(Ok(Frame::data(Bytes::from(body.to_string())))).unwrap();
        let mut answer = Response::builder().status(StatusCode::from_u16(status).unwrap());
        for (name, value) in headers {
            answer = answer.header(*name, *value);
        }
        let _ = self.reply.send(Ok(answer.body(whole).unwrap()));
    }

    /// Answers with an error status.
    pub fn refuse(self, status: u16, reason: &str, message: &str) {
        let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status,
            "reason": reason, "message": message});
        self.answer(status, &body);
    }

    /// Breaks the connection without a response.
    pub fn cut(self) {
        self.fail(std::io::ErrorKind::ConnectionReset);
    }

    /// Fails the connection with this error.
    pub fn fail(self, kind: std::io::ErrorKind) {
        let _ = self.reply.send(Err(std::io::Error::from(kind)));
    }

    /// Answers 200 and leaves the stream open.
    pub fn stream(self) -> Stream {
        let (chunks, body) = body();
        let _ = self.reply.send(Ok(Response::new(body)));
        Stream { chunks }
    }
}

impl Stream {
    pub async fn event(&mut self, kind: &str, object: &Value) {
        self.line(&format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")).await;
    }

    pub async fn bookmark(&mut self, version: u64) {
        self.event("BOOKMARK", &json!({"metadata": {"resourceVersion": version.to_string()}})).await;
    }

    pub async fn end_of_list(&mut self, version: u64) {
        let annotations = json!({"k8s.io/initial-events-end": "true"});
        let metadata = json!({"resourceVersion": version.to_string(), "annotations": annotations});
        self.event("BOOKMARK", &json!({"metadata": metadata})).await;
    }

    pub async fn line(&mut self, line: &str) {
        self.chunks.send(Ok(Frame::data(Bytes::from(line.to_owned())))).await.expect("a reader");
    }

    /// Breaks the connection.
    pub async fn cut(self) {
        let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        self.chunks.send(Err(reset)).await.expect("a reader");
    }

    /// Ends the stream.
    pub fn close(self) {}

    /// Waits until the client has closed the stream.
    pub async fn closed(&self) {
        self.chunks.closed().await;
    }
}

/// Returns a ConfigMap with this name, uid and version.
pub fn config_map(name: &str, uid: u8, version: u64) -> Value {
    let uid = uid_text(uid);
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "n", "name": name, "uid": uid, "resourceVersion": version.to_string(),
            "labels": {"app": "web"}},
        "data": {"version": version.to_string()}})
}

pub fn uid_text(uid: u8) -> String {
    format!("{uid:02x}{uid:02x}{uid:02x}{uid:02x}-0000-0000-0000-000000000000")
}
