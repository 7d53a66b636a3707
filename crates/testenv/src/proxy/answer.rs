//! Answers that the proxy gives in the API server's place.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::request::RequestSeen;

/// A failure as the API server words it: an HTTP status and a `Status` object.
///
/// Only the code, the reason and the delay are the test's to choose; the object's details (name, group,
/// resource) come from the request that is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[must_use]
pub struct Answer {
    /// The HTTP status code, also in the body. Not checked here; a code that HTTP does not know becomes 500.
    pub code: u16,
    /// The machine-readable reason, such as `Conflict`.
    pub reason: String,
    /// The human-readable message.
    pub message: String,
    /// Sent as `Retry-After` and as `details.retryAfterSeconds`, in whole seconds, rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
}

impl Answer {
    /// A failure with any code, reason and message.
    pub fn new(code: u16, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message: message.into(), retry_after: None }
    }

    /// 403: not allowed.
    pub fn forbidden() -> Self {
        Self::new(403, "Forbidden", "not allowed, says the fault proxy")
    }

    /// 404: no such object or kind.
    pub fn not_found() -> Self {
        Self::new(404, "NotFound", "not found, says the fault proxy")
    }

    /// 409: the object was changed by someone else.
    pub fn conflict() -> Self {
        Self::new(409, "Conflict", "the object was modified, says the fault proxy; read it again and retry")
    }

    /// 409: an object of that name exists.
    pub fn already_exists() -> Self {
        Self::new(409, "AlreadyExists", "an object of that name exists, says the fault proxy")
    }

    /// 410: the resource version or continue token is too old. A list gets this response; a watch gets
    /// [`WatchFault::Error`](super::WatchFault::Error).
    pub fn expired() -> Self {
        Self::new(410, "Expired", "the resource version is too old, says the fault proxy")
    }

    /// 429: the server asks for patience.
    pub fn too_many_requests(retry_after: Duration) -> Self {
        let answer = Self::new(429, "TooManyRequests", "too many requests, says the fault proxy");
        Self { retry_after: Some(retry_after), ..answer }
    }

    /// 500: the server failed.
    pub fn internal_error() -> Self {
        Self::new(500, "InternalError", "an internal error occurred, says the fault proxy")
    }

    /// 503: the server, or what it depends on, is not there.
    pub fn unavailable() -> Self {
        Self::new(503, "ServiceUnavailable", "the server is unavailable, says the fault proxy")
    }

    /// 504: the server gave up waiting.
    pub fn timeout() -> Self {
        Self::new(504, "Timeout", "the request timed out, says the fault proxy")
    }

    /// The same answer with a delay that the client should keep.
    pub fn retry_after(self, delay: Duration) -> Self {
        Self { retry_after: Some(delay), ..self }
    }

    /// The delay in the unit of HTTP and of the `Status` object.
    pub(super) fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after.map(|delay| delay.as_secs() + u64::from(delay.subsec_nanos() > 0))
    }

    /// The `Status` object that answers a request.
    pub(super) fn status_object(&self, request: &RequestSeen) -> Value {
        let mut details = serde_json::Map::new();
        let mut detail = |key: &str, value: Option<&String>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                details.insert(key.to_owned(), json!(value));
            }
        };
        detail("name", request.name.as_ref());
        detail("group", Some(&request.group));
        // The server, too, writes the resource's plural name here.
        detail("kind", request.resource.as_ref());
        if let Some(seconds) = self.retry_after_seconds() {
            details.insert("retryAfterSeconds".to_owned(), json!(seconds));
        }
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": details,
            "code": self.code,
        })
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.reason)?;
        match self.retry_after_seconds() {
            Some(seconds) => write!(f, ", retry after {seconds} s"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};

    use super::*;

    #[test]
    fn the_status_object_names_what_was_asked_for() {
        let path = "/apis/apps/v1/namespaces/x/deployments/d".parse().unwrap();
        let request = RequestSeen::parse(&Method::PUT, &path, &HeaderMap::new());
        let answer = Answer::conflict().retry_after(Duration::from_millis(1500));
        assert_eq!(
            answer.status_object(&request),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": answer.message, "reason": "Conflict", "code": 409,
                "details": {"name": "d", "group": "apps", "kind": "deployments", "retryAfterSeconds": 2},
            })
        );
    }
}
