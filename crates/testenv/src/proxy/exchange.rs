//! One request and its answer: what the script says, done.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _, TryFutureExt as _};
use http::header::{
    CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    USER_AGENT,
};
use http::{HeaderMap, Request, Response, StatusCode, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Collected, Empty, Full, Limited};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use serde_json::json;
use tokio::sync::oneshot;

use super::answer::Answer;
use super::control::{Gate, Verdict};
use super::fault::{Action, WatchFault};
use super::log::Delivery;
use super::request::{RequestSeen, RequestVerb};
use super::script::FaultId;
use super::shared::Shared;
use super::tunnel::{Tunnel, TunnelSlot};
use super::upstream::{RequestBody, UpstreamBody};
use super::watch::{BoxError, Pending, StreamBody};

/// The largest body that is kept in memory: only of requests that a fault holds. The API server takes 3 MiB.
const MAX_KEPT_BODY: usize = 16 << 20;

/// The body of an answer to the client.
pub(super) type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// Makes hyper close the client's connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the fault proxy hung up: {0}")]
pub(super) struct Hangup(&'static str);

/// Serves one request. Dropped midway (the client left), a held request stays held and reaches the server
/// when it is released; any other is name up, and may or may not have reached the server.
pub(super) async fn exchange(
    shared: Arc<Shared>,
    tunnel: TunnelSlot,
    mut request: Request<Incoming>,
) -> Result<Response<AnswerBody>, Hangup> {
    let mut seen = RequestSeen::parse(request.method(), request.uri(), request.headers());
    let upgrade = hyper::upgrade::on(&mut request);
    let mut request = request.map(|body| body.map_err(BoxError::from).boxed_unsync());
    if seen.verb == RequestVerb::Create && seen.name.is_none() && shared.control.names_creates() {
        let (parts, body) = request.into_parts();
        let body = whole(body).await?;
        seen.name = name_in(&body);
        request = Request::from_parts(parts, full(body));
    }
    let (record, taken) = shared.control.arrived(&seen);
    let exchange = Exchange { shared: &shared, seen, sequence: record.sequence, upgrade, tunnel };
    let result = exchange.run(taken, request).await;
    record.settle(match &result {
        Ok(response) => Delivery::Answered(response.status().as_u16()),
        Err(_) => Delivery::Closed,
    });
    result
}

struct Exchange<'a> {
    shared: &'a Arc<Shared>,
    seen: RequestSeen,
    sequence: u64,
    upgrade: OnUpgrade,
    tunnel: TunnelSlot,
}

/// The end of a hold: a verdict or a time.
enum Until {
    Verdict(Gate),
    Elapsed(Duration),
}

impl Exchange<'_> {
    async fn run(
        self,
        taken: Option<(FaultId, Action)>,
        request: Request<RequestBody>,
    ) -> Result<Response<AnswerBody>, Hangup> {
        let Some((fault, action)) = taken else {
            return self.pass(request, None).await;
        };
        match action {
            Action::Hold | Action::Delay(_) => self.hold(fault, &action, request).await,
            Action::DropBefore => {
                if self.hit(fault).is_none() {
                    return self.pass(request, None).await;
                }
                drain(request.into_body()).await;
                Err(Hangup("before the request was forwarded"))
            }
            Action::Answer(answer) => {
                if self.hit(fault).is_none() {
                    return self.pass(request, None).await;
                }
                drain(request.into_body()).await;
                Ok(answer_with(&answer, &self.seen))
            }
            Action::DropAfter => {
                let response = self.forward(streamed(request)).await?;
                match self.hit(fault) {
                    Some(_) => Err(Hangup("after the server answered")),
                    None => Ok(self.deliver(response, None)),
                }
            }
            Action::HoldAnswer => {
                let response = self.forward(streamed(request)).await?;
                let verdict = match self.hit(fault) {
                    Some(gate) => gate.verdict().await,
                    None => Verdict::Release,
                };
                match verdict {
                    Verdict::Release => Ok(self.deliver(response, None)),
                    Verdict::Discard => Err(Hangup("the held answer was discarded")),
                }
            }
            Action::Watch { after_events, then } => {
                let last_words = last_words(&then, &self.seen);
                self.pass(request, Some(Pending { after_events, fault, then, last_words })).await
            }
        }
    }

    fn hit(&self, fault: FaultId) -> Option<Gate> {
        self.shared.control.hit(fault, self.sequence)
    }

    async fn pass(
        self,
        request: Request<RequestBody>,
        pending: Option<Pending>,
    ) -> Result<Response<AnswerBody>, Hangup> {
        let response = self.forward(streamed(request)).await?;
        Ok(self.deliver(response, pending))
    }

    async fn forward(&self, request: Request<RequestBody>) -> Result<Response<UpstreamBody>, Hangup> {
        forward(self.shared, self.sequence, request).await
    }

    /// Takes the request off the wire and lets it go later, in a task of its own: a client that leaves does
    /// not call back what it has sent.
    async fn hold(
        self,
        fault: FaultId,
        action: &Action,
        request: Request<RequestBody>,
    ) -> Result<Response<AnswerBody>, Hangup> {
        let Ok(place) = Arc::clone(&self.shared.held).try_acquire_owned() else {
            return Ok(answer_with(
                &Answer::new(503, "ServiceUnavailable", "the fault proxy holds too many requests already"),
                &self.seen,
            ));
        };
        let request = kept(request).await?;
        let until = match (self.hit(fault), action) {
            (Some(_), Action::Delay(delay)) => Until::Elapsed(*delay),
            (Some(gate), _) => Until::Verdict(gate),
            (None, _) => Until::Elapsed(Duration::ZERO),
        };
        let (sender, receiver) = oneshot::channel();
        let (shared, sequence) = (Arc::clone(self.shared), self.sequence);
        self.shared.tasks.spawn(async move {
            let verdict = match until {
                Until::Verdict(gate) => gate.verdict().await,
                Until::Elapsed(delay) => {
                    tokio::time::sleep(delay).await;
                    Verdict::Release
                }
            };
            drop(place);
            if verdict == Verdict::Release {
                // Nobody may be there to receive it.
                let _ = sender.send(forward(&shared, sequence, request).await);
            }
        });
        let response = receiver.await.map_err(|_| Hangup("the held request was discarded"))??;
        Ok(self.deliver(response, None))
    }

    /// Turns the server's answer into the client's.
    fn deliver(self, response: Response<UpstreamBody>, pending: Option<Pending>) -> Response<AnswerBody> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return self.open_tunnel(response);
        }
        let (mut parts, body) = response.into_parts();
        remove_hop_by_hop(&mut parts.headers);
        let control = &self.shared.control;
        let valve = control.stream_opened(self.sequence, &self.seen);
        let body = StreamBody::new(body, pending, valve, Arc::clone(control), self.sequence);
        Response::from_parts(with_version(parts), body.boxed_unsync())
    }

    /// After a 101 the connection is the two parties' own.
    fn open_tunnel(self, mut response: Response<UpstreamBody>) -> Response<AnswerBody> {
        let server = hyper::upgrade::on(&mut response);
        let (parts, carrier) = response.into_parts();
        *super::sync::lock(&self.tunnel) = Some(Tunnel { client: self.upgrade, server, carrier });
        Response::from_parts(with_version(parts), empty())
    }
}

fn with_version(mut parts: http::response::Parts) -> http::response::Parts {
    parts.version = Version::HTTP_11;
    parts
}

async fn forward(
    shared: &Shared,
    sequence: u64,
    mut request: Request<RequestBody>,
) -> Result<Response<UpstreamBody>, Hangup> {
    if let Some(replica) = shared.control.replica() {
        name_replica(request.headers_mut(), replica);
    }
    match shared.upstream.send(request).await {
        Ok(response) => {
            shared.control.server_answered(sequence, response.status().as_u16());
            Ok(response)
        }
        Err(error) => {
            tracing::debug!(%error, sequence, "the API server gave no answer");
            Err(Hangup("the server gave no answer"))
        }
    }
}

/// Appends the name of a replica to the user agent.
fn name_replica(headers: &mut HeaderMap, replica: &str) {
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    if let Ok(named) = HeaderValue::from_str(format!("{agent} {replica}").trim()) {
        headers.insert(USER_AGENT, named);
    }
}

/// The request for the server, its body streamed.
fn streamed(request: Request<RequestBody>) -> Request<RequestBody> {
    let (parts, body) = request.into_parts();
    outgoing(parts, body)
}

/// The request for the server, its body in memory.
async fn kept(request: Request<RequestBody>) -> Result<Request<RequestBody>, Hangup> {
    let (parts, body) = request.into_parts();
    Ok(outgoing(parts, full(whole(body).await?)))
}

async fn whole(body: RequestBody) -> Result<Bytes, Hangup> {
    collect(body).await.map_err(|error| {
        tracing::warn!(%error, "the fault proxy cannot hold a request: its body did not come or is too large");
        Hangup("the body of a request to hold did not come or is too large")
    })
}

/// Reads a body to its end. Boxed, since the compiler cannot see that the future of a limited boxed body is
/// `Send`.
fn collect(body: RequestBody) -> BoxFuture<'static, Result<Bytes, BoxError>> {
    Limited::new(body, MAX_KEPT_BODY).collect().map_ok(Collected::to_bytes).boxed()
}

/// The name of an object that is about to be created; of one that the server shall name, the beginning and a
/// `*`.
fn name_in(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        metadata: Metadata,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        name: Option<String>,
        generate_name: Option<String>,
    }
    let Named { metadata } = serde_json::from_slice(body).ok()?;
    let name = metadata.name.filter(|name| !name.is_empty());
    name.or_else(|| metadata.generate_name.map(|prefix| format!("{prefix}*")))
}

fn outgoing(parts: http::request::Parts, body: RequestBody) -> Request<RequestBody> {
    let mut request = Request::new(body);
    *request.method_mut() = parts.method;
    *request.uri_mut() = parts.uri;
    *request.headers_mut() = parts.headers;
    let upgrade = request.headers().get(UPGRADE).cloned();
    remove_hop_by_hop(request.headers_mut());
    if let Some(protocol) = upgrade {
        request.headers_mut().insert(UPGRADE, protocol);
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    }
    request
}

/// Reads a body away, so that closing the connection does not turn into a reset while the client still
/// writes.
async fn drain(body: RequestBody) {
    if let Err(error) = collect(body).await {
        tracing::debug!(%error, "the body of a request did not come or is too large");
    }
}

/// Removes what is about one connection and not about the message.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let listed: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let always = [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, HeaderName::from_static("keep-alive")];
    for name in listed.into_iter().chain(always) {
        headers.remove(name);
    }
}

fn answer_with(answer: &Answer, request: &RequestSeen) -> Response<AnswerBody> {
    let mut response = Response::new(full(Bytes::from(answer.status_object(request).to_string())));
    *response.status_mut() = StatusCode::from_u16(answer.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = answer.retry_after_seconds() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Returns the event that reports an error to a watch; empty for other faults.
fn last_words(fault: &WatchFault, request: &RequestSeen) -> Bytes {
    match fault {
        WatchFault::Error(answer) => {
            let event = json!({"type": "ERROR", "object": answer.status_object(request)});
            Bytes::from(format!("{event}\n"))
        }
        _ => Bytes::new(),
    }
}

fn full(bytes: Bytes) -> UnsyncBoxBody<Bytes, BoxError> {
    Full::new(bytes).map_err(|never: Infallible| match never {}).boxed_unsync()
}

fn empty() -> AnswerBody {
    Empty::new().map_err(|never: Infallible| match never {}).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_new_object_is_read_from_its_body() {
        for (body, expected) in [
            (r#"{"metadata":{"name":"a","generateName":"b-"}}"#, Some("a")),
            (r#"{"metadata":{"generateName":"b-"}}"#, Some("b-*")),
            (r#"{"metadata":{}}"#, None),
            ("k8s\0 protobuf", None),
        ] {
            assert_eq!(name_in(body.as_bytes()).as_deref(), expected, "{body}");
        }
    }

    #[test]
    fn headers_about_one_connection_do_not_cross_the_proxy() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "keep-alive, X-Own"),
            ("x-own", "1"),
            ("transfer-encoding", "chunked"),
            ("authorization", "Bearer t"),
            ("content-length", "3"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        remove_hop_by_hop(&mut headers);
        let mut kept: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        kept.sort_unstable();
        assert_eq!(kept, ["authorization", "content-length"]);
    }
}
