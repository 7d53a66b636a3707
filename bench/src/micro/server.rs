//! An API server that knows nothing but Pods, in a process of its own so that its memory
//! does not count. It answers a streaming list and then keeps the watch open in silence.

use std::convert::Infallible;
use std::io::Write as _;
use std::pin::Pin;

use anyhow::Result;
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

use super::fixture;

type Body = StreamBody<Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>>>;

/// Serves until it is killed; prints its address first.
pub(crate) fn serve(objects: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let mut out = std::io::stdout();
        writeln!(out, "http://{}", listener.local_addr()?)?;
        out.flush()?;
        loop {
            let (socket, _) = listener.accept().await?;
            let service =
                service_fn(move |request| async move { Ok::<_, Infallible>(answer(&request, objects)) });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service),
            );
        }
    })
}

fn answer(request: &Request<Incoming>, objects: usize) -> Response<Body> {
    let query = request.uri().query().unwrap_or_default();
    if request.uri().path() != "/api/v1/pods" {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound"});
        let mut response = Response::new(body(futures::stream::iter([line(&status)])));
        *response.status_mut() = http::StatusCode::NOT_FOUND;
        return response;
    }
    let metadata_only = request
        .headers()
        .get(http::header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("PartialObjectMetadata"));
    let object = move |index| {
        let mut object = fixture::pod(index);
        if metadata_only && let Some(fields) = object.as_object_mut() {
            fields.retain(|name, _| name == "metadata");
            fields.insert("kind".to_owned(), "PartialObjectMetadata".into());
            fields.insert("apiVersion".to_owned(), "meta.k8s.io/v1".into());
        }
        object
    };
    if !query.contains("watch=true") {
        return json_of(list((0..objects).map(object)));
    }
    if !query.contains("sendInitialEvents=true") {
        // Nothing ever changes.
        return json_of(futures::stream::pending());
    }
    let added = (0..objects).map(move |index| line(&json!({"type": "ADDED", "object": object(index)})));
    let end = line(&json!({"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": {
        "resourceVersion": "2000000", "annotations": {"k8s.io/initial-events-end": "true"},
    }}}));
    let events =
        futures::stream::iter(added).chain(futures::stream::iter([end])).chain(futures::stream::pending());
    json_of(events)
}

/// A list of all objects, as one body.
fn list(objects: impl Iterator<Item = Value> + Send + 'static) -> impl Stream<Item = Bytes> + Send + 'static {
    let head = Bytes::from_static(
        br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"2000000"},"items":["#,
    );
    let items = objects.enumerate().map(|(index, object)| {
        let comma = if index == 0 { "" } else { "," };
        Bytes::from(format!("{comma}{object}"))
    });
    futures::stream::iter(std::iter::once(head).chain(items).chain([Bytes::from_static(b"]}")]))
}

fn json_of(lines: impl Stream<Item = Bytes> + Send + 'static) -> Response<Body> {
    let mut response = Response::new(body(lines));
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

fn line(value: &Value) -> Bytes {
    let mut text = value.to_string();
    text.push('\n');
    text.into()
}

fn body(lines: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    StreamBody::new(Box::pin(lines.map(|line| Ok(Frame::data(line)))))
}
