//! Errors of calls: a class for programs, a message for users.

use std::fmt;
use std::time::Duration;

use kube::core::Status;

use crate::key::ObjectKey;
use crate::resource::ResourceType;

/// A failed call to the API server.
///
/// [`failure`](Self::failure) is the class, for decisions; `Display` names the operation, the object and the
/// server's message. Neither ever contains a body.
#[derive(Debug, thiserror::Error)]
#[error("cannot {}: {}{}", .0.operation, .0.failure, Said(&.0.message))]
pub struct ClientError(Box<Parts>);

/// Boxed, so that the `Result` of every call stays small.
#[derive(Debug)]
struct Parts {
    operation: Operation,
    failure: Failure,
    message: String,
}

/// The operation that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The verb: `get`, `apply`, `delete` and so on.
    pub verb: &'static str,
    /// The kind of the object.
    pub resource: ResourceType,
    /// The object; `None` for a list.
    pub key: Option<ObjectKey>,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource.kind)?;
        self.key.as_ref().map_or(Ok(()), |key| write!(f, " {key}"))
    }
}

/// The classes of failed calls.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The object (or the kind) does not exist.
    NotFound,
    /// A create found an existing object of that name.
    AlreadyExists,
    /// A precondition failed: the uid or resource version is different. Read the object again before the next
    /// decision.
    Conflict,
    /// An apply without force met fields that other managers own.
    FieldConflict(Vec<FieldConflict>),
    /// RBAC does not allow the operation.
    Forbidden,
    /// The namespace is being deleted: nothing can be created in it any more.
    Terminating,
    /// The server does not accept our credentials.
    Unauthorized,
    /// The server rejected the object as invalid; repeating the call does not help.
    Invalid(Vec<FieldCause>),
    /// The server asks to retry later. For an eviction: a disruption budget does not allow it now.
    Throttled {
        /// The delay that the server asks for, if it names one.
        retry_after: Option<Duration>,
    },
    /// There was no response within the deadline. It is not known whether a write was done.
    Timeout,
    /// A list continuation or resource version has expired.
    Gone,
    /// The server cannot be reached, or cannot answer now.
    Unavailable,
    /// The server failed with status 500. Some invalid requests are answered like this, but most would
    /// succeed later.
    Internal,
    /// The lease deadline has passed: nothing was sent. See [`Fence`](crate::leader::Fence).
    Fenced,
    /// The response is malformed.
    Garbled,
    /// Any other status code; 0 if there was no HTTP status.
    Other(u16),
}

/// A field that another manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldConflict {
    /// The path of the field, for example `.spec.replicas`.
    pub field: String,
    /// The server's message, for example `conflict with "kubectl"`.
    pub message: String,
}

/// An invalid field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldCause {
    /// The path of the field, for example `spec.replicas`.
    pub field: String,
    /// The server's reason, for example `FieldValueInvalid`.
    pub reason: String,
}

/// Displays the server's message after a dash, unless it is empty.
struct Said<'a>(&'a str);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("not found"),
            Self::AlreadyExists => f.write_str("already exists"),
            Self::Conflict => f.write_str("the object has changed meanwhile"),
            Self::FieldConflict(conflicts) => {
                let fields: Vec<&str> = conflicts.iter().map(|conflict| &*conflict.field).collect();
                write!(f, "other field managers own {}", fields.join(", "))
            }
            Self::Forbidden => f.write_str("forbidden"),
            Self::Terminating => f.write_str("the namespace is being deleted"),
            Self::Unauthorized => f.write_str("not authenticated"),
            Self::Invalid(causes) if causes.is_empty() => f.write_str("invalid"),
            Self::Invalid(causes) => {
                let fields: Vec<&str> = causes.iter().map(|cause| &*cause.field).collect();
                write!(f, "invalid {}", fields.join(", "))
            }
            Self::Throttled { retry_after: Some(wait) } => write!(f, "asked to wait {} s", wait.as_secs()),
            Self::Throttled { retry_after: None } => f.write_str("asked to wait"),
            Self::Timeout => f.write_str("no response in time"),
            Self::Gone => f.write_str("expired on the server"),
            Self::Unavailable => f.write_str("the API server is unavailable"),
            Self::Internal => f.write_str("internal error of the API server"),
            Self::Fenced => f.write_str("not the leader"),
            Self::Garbled => f.write_str("the response is malformed"),
            Self::Other(0) => f.write_str("failed"),
            Self::Other(code) => write!(f, "failed with status {code}"),
        }
    }
}

impl ClientError {
    pub(crate) fn new(operation: Operation, failure: Failure, message: impl Into<String>) -> Self {
        Self(Box::new(Parts { operation, failure, message: message.into() }))
    }

    /// The class of the failure.
    pub fn failure(&self) -> &Failure {
        &self.0.failure
    }

    /// The operation that failed.
    pub fn operation(&self) -> &Operation {
        &self.0.operation
    }

    /// The server's message; may be empty.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns true if the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.0.failure == Failure::NotFound
    }

    /// Returns true if a create found an existing object of that name.
    pub fn is_already_exists(&self) -> bool {
        self.0.failure == Failure::AlreadyExists
    }

    /// Returns true if a precondition failed, or (without force) other managers own a field.
    pub fn is_conflict(&self) -> bool {
        matches!(self.0.failure, Failure::Conflict | Failure::FieldConflict(_))
    }

    /// Returns true if RBAC does not allow the operation.
    pub fn is_forbidden(&self) -> bool {
        self.0.failure == Failure::Forbidden
    }

    /// Returns true if the same call may succeed later without any change.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.0.failure,
            Failure::Throttled { .. }
                | Failure::Timeout
                | Failure::Unavailable
                | Failure::Internal
                | Failure::Gone
                | Failure::Fenced
                | Failure::Garbled
        )
    }

    /// Returns the delay that the server asks for, if it names one.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.0.failure {
            Failure::Throttled { retry_after } => retry_after,
            _ => None,
        }
    }
}

impl Failure {
    /// Returns the class of an error response.
    ///
    /// Decides by status code and reason, never by text. `retry_after` is the value of the header.
    pub(crate) fn classify(code: u16, status: Option<&Status>, retry_after: Option<Duration>) -> Self {
        let reason = status.map_or("", |status| &*status.reason);
        let details = status.and_then(|status| status.details.as_ref());
        let causes = details.map_or(&[][..], |details| &details.causes);
        let asked = details.map_or(0, |details| details.retry_after_seconds);
        let retry_after = retry_after.or((asked > 0).then(|| Duration::from_secs(asked.into())));
        match code {
            401 => Self::Unauthorized,
            403 if causes.iter().any(|cause| cause.reason == "NamespaceTerminating") => Self::Terminating,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            409 if reason == "AlreadyExists" => Self::AlreadyExists,
            409 if causes.iter().any(|cause| cause.reason == "FieldManagerConflict") => Self::FieldConflict(
                causes
                    .iter()
                    .map(|cause| FieldConflict { field: cause.field.clone(), message: cause.message.clone() })
                    .collect(),
            ),
            409 => Self::Conflict,
            410 => Self::Gone,
            400 | 422 => Self::Invalid(
                causes
                    .iter()
                    .filter(|cause| !cause.field.is_empty())
                    .map(|cause| FieldCause { field: cause.field.clone(), reason: cause.reason.clone() })
                    .collect(),
            ),
            429 => Self::Throttled { retry_after },
            503 if retry_after.is_some() => Self::Throttled { retry_after },
            408 | 504 => Self::Timeout,
            // Another form of a server timeout: the API machinery writes 500 with this reason.
            500 if reason == "ServerTimeout" || reason == "Timeout" => Self::Timeout,
            500 => Self::Internal,
            501..=599 => Self::Unavailable,
            code => Self::Other(code),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

    fn status(text: &str) -> Status {
        serde_json::from_str(text).unwrap()
    }

    fn error(failure: Failure, message: &str) -> String {
        let operation = Operation {
            verb: "apply",
            resource: ResourceType::of::<ConfigMap>(),
            key: Some(ObjectKey::namespaced("shop", "web")),
        };
        ClientError::new(operation, failure, message).to_string()
    }

    #[test]
    fn every_status_code_has_its_class() {
        for (code, failure) in [
            (400, Failure::Invalid(vec![])),
            (401, Failure::Unauthorized),
            (403, Failure::Forbidden),
            (404, Failure::NotFound),
            (409, Failure::Conflict),
            (410, Failure::Gone),
            (418, Failure::Other(418)),
            (429, Failure::Throttled { retry_after: None }),
            (500, Failure::Internal),
            (503, Failure::Unavailable),
            (504, Failure::Timeout),
        ] {
            assert_eq!(Failure::classify(code, None, None), failure, "{code}");
        }
    }

    #[test]
    fn a_field_conflict_and_a_failed_precondition_are_distinguished_without_reading_text() {
        let fields = status(
            r#"{"code":409,"reason":"Conflict","message":"Apply failed with 1 conflict",
                "details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"kubectl\"","field":".data.k"}]}}"#,
        );
        let Failure::FieldConflict(conflicts) = Failure::classify(409, Some(&fields), None) else { panic!() };
        assert_eq!(conflicts[0].field, ".data.k");
        let uid = status(r#"{"code":409,"reason":"Conflict","message":"Precondition failed: UID"}"#);
        assert_eq!(Failure::classify(409, Some(&uid), None), Failure::Conflict);
        let exists = status(r#"{"code":409,"reason":"AlreadyExists"}"#);
        assert_eq!(Failure::classify(409, Some(&exists), None), Failure::AlreadyExists);
    }

    #[test]
    fn users_n19_a_namespace_that_is_being_deleted_is_not_a_missing_right() {
        let terminating = status(
            r#"{"code":403,"reason":"Forbidden","details":{"causes":[
                {"reason":"NamespaceTerminating","message":"namespace shop is being terminated","field":"metadata.namespace"}]}}"#,
        );
        assert_eq!(Failure::classify(403, Some(&terminating), None), Failure::Terminating);
        let right = status(r#"{"code":403,"reason":"Forbidden","message":"is being terminated"}"#);
        assert_eq!(Failure::classify(403, Some(&right), None), Failure::Forbidden);
    }

    #[test]
    fn retry_after_comes_from_the_header_or_the_status() {
        let in_body = status(r#"{"code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":3}}"#);
        let seconds = |n| Failure::Throttled { retry_after: Some(Duration::from_secs(n)) };
        assert_eq!(Failure::classify(429, Some(&in_body), None), seconds(3));
        assert_eq!(Failure::classify(429, Some(&in_body), Some(Duration::from_secs(5))), seconds(5));
        assert_eq!(Failure::classify(503, None, Some(Duration::from_secs(1))), seconds(1));
    }

    #[test]
    fn a_client_error_names_the_operation_the_object_and_the_reason() {
        assert_eq!(
            error(Failure::NotFound, "namespaces \"shop\" not found"),
            "cannot apply ConfigMap shop/web: not found: namespaces \"shop\" not found"
        );
        let causes = vec![FieldCause { field: "data.k".into(), reason: "FieldValueInvalid".into() }];
        assert_eq!(error(Failure::Invalid(causes), ""), "cannot apply ConfigMap shop/web: invalid data.k");
    }
}
