//! The one place where requests are sent and responses are received.
//!
//! Promises: every call ends by its deadline; it is repeated only as [`RetryPolicy`](super::RetryPolicy)
//! allows, and is counted; a failure has its class; a body is never logged, not even a malformed one.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::core::Status;
use tokio::time::Instant;

use super::retry::{Attempt, Repeat};
use super::{Client, ClientError, Failure, Operation};
use crate::fence::{Fenced, SendCheck};
use crate::jitter;

/// A request that can be sent more than once.
pub(crate) struct Call {
    pub(crate) operation: Operation,
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) content_type: Option<&'static str>,
    pub(crate) body: Bytes,
    pub(crate) repeat: Repeat,
}

/// A failed attempt, before the retry decision.
struct Missed {
    failure: Failure,
    message: String,
    unsent: bool,
}

impl Client {
    /// Sends a request, waits, repeats it where that is safe, and returns the body of a successful response.
    ///
    /// Cancel safe for reads. A write that is cancelled may or may not have been done.
    pub(crate) async fn call(&self, call: &Call) -> Result<Bytes, ClientError> {
        let deadline = Instant::now() + self.options().deadline;
        let mut number = 0;
        loop {
            number += 1;
            let attempt = tokio::time::timeout_at(deadline, self.attempt(call)).await;
            let missed = match attempt {
                Ok(Ok(body)) => return Ok(body),
                Ok(Err(missed)) => missed,
                Err(_) => {
                    self.stats().timed_out();
                    let within = format!("within {} s", self.options().deadline.as_secs_f32());
                    return Err(ClientError::new(call.operation.clone(), Failure::Timeout, within));
                }
            };
            let left = deadline.saturating_duration_since(Instant::now());
            let attempt = Attempt { failure: &missed.failure, unsent: missed.unsent, number, left };
            match self.options().retry.pause(call.repeat, attempt, jitter::chance()) {
                Some(pause) => {
                    self.stats().retried();
                    tracing::debug!(call = %call.operation, failure = %missed.failure, ?pause, "request failed, retrying");
                    tokio::time::sleep(pause).await;
                }
                None => {
                    return Err(ClientError::new(call.operation.clone(), missed.failure, missed.message));
                }
            }
        }
    }

    async fn attempt(&self, call: &Call) -> Result<Bytes, Missed> {
        let mut request = Request::new(Body::from(call.body.clone()));
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = call.target.parse().map_err(|_| Missed {
            failure: Failure::Invalid(Vec::new()),
            message: "the object name is not valid in a path".to_owned(),
            unsent: true,
        })?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, self.user_agent().clone());
        if let Some(content_type) = call.content_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        let fenced = self.fence().filter(|_| !call.method.is_safe()).map(SendCheck::new);
        if let Some(check) = &fenced {
            check.check().map_err(Missed::fenced)?;
            request.extensions_mut().insert(check.clone());
        }
        let sent = Instant::now();
        let sending = self.kube().send(request).await;
        self.stats().observe(&call.method, sent.elapsed());
        let answer = match sending {
            Ok(answer) => answer,
            Err(_) if fenced.is_some_and(|check| check.withheld()) => return Err(Missed::fenced(Fenced)),
            Err(error) => {
                self.stats().answered(&call.method, 0);
                return Err(Missed::unreachable(&error));
            }
        };
        let code = answer.status();
        self.stats().answered(&call.method, code.as_u16());
        let retry_after = retry_after(answer.headers());
        // A body that breaks off was sent by a server that had executed the request, so it is not `unsent`.
        let body = answer.into_body().collect().await.map_err(|error| Missed {
            failure: Failure::Unavailable,
            message: format!("the response ended early: {}", root_cause(&error)),
            unsent: false,
        })?;
        let body = body.to_bytes();
        if code.is_success() {
            return Ok(body);
        }
        let status: Option<Status> = serde_json::from_slice(&body).ok();
        let failure = Failure::classify(code.as_u16(), status.as_ref(), retry_after);
        Err(Missed {
            failure,
            message: status.map(|status| status.message).unwrap_or_default(),
            unsent: false,
        })
    }
}

impl Missed {
    fn fenced(error: Fenced) -> Self {
        Self { failure: Failure::Fenced, message: error.to_string(), unsent: true }
    }

    fn unreachable(error: &kube::Error) -> Self {
        Self { failure: Failure::Unavailable, message: root_cause(error), unsent: was_refused(error) }
    }
}

/// Returns the innermost error, which has the cause; the layers around it only add context.
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

/// Returns true if the connection was never established: then nothing was sent.
fn was_refused(error: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};

    causes(error)
        .filter_map(|error| error.downcast_ref::<std::io::Error>())
        .any(|error| matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable))
}

fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

/// Returns the seconds of the header; no API server uses its other form, a date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn only_a_connection_that_was_never_established_counts_as_unsent() {
        let refused = kube::Error::Service(Box::new(io::Error::from(io::ErrorKind::ConnectionRefused)));
        assert!(Missed::unreachable(&refused).unsent);
        let reset = kube::Error::Service(Box::new(io::Error::from(io::ErrorKind::ConnectionReset)));
        assert!(!Missed::unreachable(&reset).unsent);
    }

    #[test]
    fn retry_after_is_read_in_seconds() {
        let mut headers = HeaderMap::new();
        assert_eq!(retry_after(&headers), None);
        headers.insert(RETRY_AFTER, HeaderValue::from_static("7"));
        assert_eq!(retry_after(&headers), Some(Duration::from_secs(7)));
        headers.insert(RETRY_AFTER, HeaderValue::from_static("Wed, 21 Oct 2026 07:28:00 GMT"));
        assert_eq!(retry_after(&headers), None);
    }
}
