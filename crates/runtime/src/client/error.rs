//! Why a call failed: a class for the program, a sentence for the user.

use std::fmt;
use std::time::Duration;

use kube::core::Status;

use crate::key::ObjectKey;
use crate::resource::ResourceType;

/// A call to the API server that failed.
///
/// [`failure`](Self::failure) is the class, for deciding; `Display` says what was tried on which object, and what
/// the server said about it. Neither ever holds a body.
#[derive(Debug, thiserror::Error)]
#[error("cannot {}: {}{}", .0.operation, .0.failure, Said(&.0.message))]
pub struct ClientError(Box<Parts>);

/// Boxed: every call's result has room for it.
#[derive(Debug)]
struct Parts {
    operation: Operation,
    failure: Failure,
    message: String,
}

/// What was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// `get`, `apply`, `delete` and so on.
    pub verb: &'static str,
    /// On which kind.
    pub resource: ResourceType,
    /// On which object; `None` for a list.
    pub key: Option<ObjectKey>,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource.kind)?;
        self.key.as_ref().map_or(Ok(()), |key| write!(f, " {key}"))
    }
}

/// The classes of failure.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// There is no such object (or no such kind).
    NotFound,
    /// A create met an object of that name.
    AlreadyExists,
    /// A precondition did not hold: the uid or resource version is another. Read again, then decide again.
    Conflict,
    /// An apply without force met fields that others manage.
    FieldConflict(Vec<FieldConflict>),
    /// Our account may not do this.
    Forbidden,
    /// The server does not know who we are.
    Unauthorized,
    /// The server found the object wrong; trying again does not help.
    Invalid(Vec<FieldCause>),
    /// The server asks to come later. For an eviction: a disruption budget holds it back.
    Throttled {
        /// How much later, where it said so.
        retry_after: Option<Duration>,
    },
    /// No answer within the deadline. Whether a write was done is not known.
    Timeout,
    /// What was asked for existed once, and is no longer kept: a list's continuation, a version.
    Gone,
    /// The server cannot be reached, or cannot answer now.
    Unavailable,
    /// The server failed at it: status 500. Some requests that are wrong are answered so, but most would work later.
    Internal,
    /// The answer is not what it should be.
    Garbled,
    /// Anything else; 0 where there was no HTTP status.
    Other(u16),
}

/// A field that another manager holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldConflict {
    /// Where, `.spec.replicas` say.
    pub field: String,
    /// Who, as the server says it: `conflict with "kubectl"` say.
    pub message: String,
}

/// A field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldCause {
    /// Where, `spec.replicas` say.
    pub field: String,
    /// The server's code for what is wrong, `FieldValueInvalid` say.
    pub reason: String,
}

/// The server's words, after a dash, if there are any.
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
            Self::Conflict => f.write_str("it has changed meanwhile"),
            Self::FieldConflict(conflicts) => {
                let fields: Vec<&str> = conflicts.iter().map(|conflict| &*conflict.field).collect();
                write!(f, "others manage {}", fields.join(", "))
            }
            Self::Forbidden => f.write_str("forbidden"),
            Self::Unauthorized => f.write_str("not authenticated"),
            Self::Invalid(causes) if causes.is_empty() => f.write_str("invalid"),
            Self::Invalid(causes) => {
                let fields: Vec<&str> = causes.iter().map(|cause| &*cause.field).collect();
                write!(f, "invalid {}", fields.join(", "))
            }
            Self::Throttled { retry_after: Some(wait) } => write!(f, "asked to wait {} s", wait.as_secs()),
            Self::Throttled { retry_after: None } => f.write_str("asked to wait"),
            Self::Timeout => f.write_str("no answer in time"),
            Self::Gone => f.write_str("no longer kept"),
            Self::Unavailable => f.write_str("the API server cannot answer"),
            Self::Internal => f.write_str("the API server failed at it"),
            Self::Garbled => f.write_str("the answer makes no sense"),
            Self::Other(0) => f.write_str("failed"),
            Self::Other(code) => write!(f, "failed with status {code}"),
        }
    }
}

impl ClientError {
    pub(crate) fn new(operation: Operation, failure: Failure, message: impl Into<String>) -> Self {
        Self(Box::new(Parts { operation, failure, message: message.into() }))
    }

    /// The class.
    pub fn failure(&self) -> &Failure {
        &self.0.failure
    }

    /// What was tried.
    pub fn operation(&self) -> &Operation {
        &self.0.operation
    }

    /// What the server said; may be empty.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// There is no such object.
    pub fn is_not_found(&self) -> bool {
        self.0.failure == Failure::NotFound
    }

    /// A create met an object of that name.
    pub fn is_already_exists(&self) -> bool {
        self.0.failure == Failure::AlreadyExists
    }

    /// A precondition did not hold, or (without force) others manage a field.
    pub fn is_conflict(&self) -> bool {
        matches!(self.0.failure, Failure::Conflict | Failure::FieldConflict(_))
    }

    /// Our account may not do this.
    pub fn is_forbidden(&self) -> bool {
        self.0.failure == Failure::Forbidden
    }

    /// Trying the same again later may work, without anyone changing anything.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.0.failure,
            Failure::Throttled { .. }
                | Failure::Timeout
                | Failure::Unavailable
                | Failure::Internal
                | Failure::Gone
                | Failure::Garbled
        )
    }

    /// How long the server asks to wait, where it does.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.0.failure {
            Failure::Throttled { retry_after } => retry_after,
            _ => None,
        }
    }
}

impl Failure {
    /// The class of an answer that is no success.
    ///
    /// By status code and reason, never by text. `retry_after` is the header's value.
    pub(crate) fn classify(code: u16, status: Option<&Status>, retry_after: Option<Duration>) -> Self {
        let reason = status.map_or("", |status| &*status.reason);
        let details = status.and_then(|status| status.details.as_ref());
        let causes = details.map_or(&[][..], |details| &details.causes);
        let asked = details.map_or(0, |details| details.retry_after_seconds);
        let retry_after = retry_after.or((asked > 0).then(|| Duration::from_secs(asked.into())));
        match code {
            401 => Self::Unauthorized,
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
            // A server timeout of another kind: the API machinery writes 500 with this reason.
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
    fn every_code_has_its_class() {
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
    fn a_field_conflict_is_told_from_a_failed_precondition_without_reading_text() {
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
    fn retry_after_comes_from_the_header_or_the_status() {
        let in_body = status(r#"{"code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":3}}"#);
        let seconds = |n| Failure::Throttled { retry_after: Some(Duration::from_secs(n)) };
        assert_eq!(Failure::classify(429, Some(&in_body), None), seconds(3));
        assert_eq!(Failure::classify(429, Some(&in_body), Some(Duration::from_secs(5))), seconds(5));
        assert_eq!(Failure::classify(503, None, Some(Duration::from_secs(1))), seconds(1));
    }

    #[test]
    fn an_error_says_what_was_tried_on_what_and_why_not() {
        assert_eq!(
            error(Failure::NotFound, "namespaces \"shop\" not found"),
            "cannot apply ConfigMap shop/web: not found: namespaces \"shop\" not found"
        );
        let causes = vec![FieldCause { field: "data.k".into(), reason: "FieldValueInvalid".into() }];
        assert_eq!(error(Failure::Invalid(causes), ""), "cannot apply ConfigMap shop/web: invalid data.k");
    }
}
