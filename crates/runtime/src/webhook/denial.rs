//! Denials of admission requests, for users and for programs.

use kube::Resource;
use serde_json::{Value, json};

use crate::client::{ClientError, Failure};

/// An invalid field and the reason.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cause {
    pub(super) reason: &'static str,
    pub(super) field: String,
    pub(super) message: String,
}

/// The reason why a request is denied: an API status. Users see its message, programs its code and reason.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Denial {
    code: u16,
    reason: &'static str,
    message: String,
    details: Option<Value>,
}

impl Denial {
    /// Denies with 403 Forbidden. Name the rule and a remedy.
    pub fn new(message: impl Into<String>) -> Self {
        Self { code: 403, reason: "Forbidden", message: message.into(), details: None }
    }

    /// Denies with 400 Bad Request: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self { code: 400, reason: "BadRequest", message: message.into(), details: None }
    }

    /// Denies with 409 Conflict: another object is in the way.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self { code: 409, reason: "Conflict", message: message.into(), details: None }
    }

    /// Denies with 500 Internal Server Error: the webhook itself cannot answer.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { code: 500, reason: "InternalError", message: message.into(), details: None }
    }

    pub(super) fn too_large(message: impl Into<String>) -> Self {
        Self { code: 413, reason: "RequestEntityTooLarge", message: message.into(), details: None }
    }

    pub(super) fn timeout(message: impl Into<String>) -> Self {
        Self { code: 408, reason: "Timeout", message: message.into(), details: None }
    }

    pub(super) fn content_type(message: impl Into<String>) -> Self {
        Self { code: 415, reason: "UnsupportedMediaType", message: message.into(), details: None }
    }

    pub(super) fn invalid<K: Resource<DynamicType = ()>>(name: &str, causes: &[Cause]) -> Self {
        let list: Vec<String> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let list = if let [one] = &list[..] { one.clone() } else { format!("[{}]", list.join(", ")) };
        let (group, kind) = (K::group(&()), K::kind(&()));
        let what = if group.is_empty() { kind.to_string() } else { format!("{kind}.{group}") };
        let causes: Vec<Value> = causes
            .iter()
            .map(|Cause { reason, field, message }| json!({"reason": reason, "field": field, "message": message}))
            .collect();
        Self {
            code: 422,
            reason: "Invalid",
            message: format!("{what} {name:?} is invalid: {list}"),
            details: Some(json!({"name": name, "group": group, "kind": kind, "causes": causes})),
        }
    }

    /// The HTTP status code for the user's client.
    pub fn code(&self) -> u16 {
        self.code
    }

    pub(super) fn status(&self) -> Value {
        let mut status =
            json!({"status": "Failure", "message": self.message, "reason": self.reason, "code": self.code});
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}

/// Denies with the code of a failed call to the API server.
impl From<ClientError> for Denial {
    fn from(error: ClientError) -> Self {
        let message = error.to_string();
        match error.failure() {
            Failure::Conflict | Failure::AlreadyExists | Failure::FieldConflict(_) => Self::conflict(message),
            Failure::Forbidden | Failure::Terminating | Failure::Invalid(_) => Self::new(message),
            _ => Self::internal(message),
        }
    }
}
