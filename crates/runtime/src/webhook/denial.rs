//! Denials: how a webhook says no, to users and to programs.

use kube::Resource;
use serde_json::{Value, json};

use crate::client::{ClientError, Failure};

/// One field of an invalid object, and what is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cause {
    pub(super) reason: &'static str,
    pub(super) field: String,
    pub(super) message: String,
}

/// Why a request is denied: an API status. The user sees its message, programs its code and reason.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Denial {
    code: u16,
    reason: &'static str,
    message: String,
    details: Option<Value>,
}

impl Denial {
    /// Forbidden (403): a rule says no. Say which, and what to do.
    pub fn new(message: impl Into<String>) -> Self {
        Self { code: 403, reason: "Forbidden", message: message.into(), details: None }
    }

    /// The question makes no sense (400).
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self { code: 400, reason: "BadRequest", message: message.into(), details: None }
    }

    /// It clashes with something else that exists (409).
    pub fn conflict(message: impl Into<String>) -> Self {
        Self { code: 409, reason: "Conflict", message: message.into(), details: None }
    }

    /// The webhook itself cannot answer (500): something that it needs is broken.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { code: 500, reason: "InternalError", message: message.into(), details: None }
    }

    pub(super) fn too_large(message: impl Into<String>) -> Self {
        Self { code: 413, reason: "RequestEntityTooLarge", message: message.into(), details: None }
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

    /// The HTTP status code that the user's client gets.
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

/// A failed call to the API server, passed on with the code that it had.
impl From<ClientError> for Denial {
    fn from(error: ClientError) -> Self {
        let message = error.to_string();
        match error.failure() {
            Failure::Conflict | Failure::AlreadyExists | Failure::FieldConflict(_) => Self::conflict(message),
            Failure::Forbidden | Failure::Invalid(_) => Self::new(message),
            _ => Self::internal(message),
        }
    }
}
