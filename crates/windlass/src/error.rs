//! Errors for two readers: a class for programs, a message with the remedy for users.

use std::fmt;

use windlass_runtime::client::{ClientError, Failure};
use windlass_runtime::controller::{Class, Error};

/// The reason why a plan cannot be drawn. Terminal until the owner or one of the objects that the plan asked
/// for changes.
///
/// The `?` operator converts any error into one.
pub struct PlanError {
    source: Box<dyn std::error::Error + Send + Sync>,
    unknown: bool,
}

impl PlanError {
    /// Returns an error with a message. Say what is wrong, where, and what to do about it; never include a
    /// secret.
    pub fn new(message: impl Into<String>) -> Self {
        Self { source: message.into().into(), unknown: false }
    }

    /// Returns an error for a plan that depends on an unknown fact: the owner waits, and nothing is written.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self { source: why.into().into(), unknown: true }
    }

    /// Returns whether the plan only waits for a fact that is not known yet.
    pub fn is_unknown(&self) -> bool {
        self.unknown
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for PlanError {
    fn from(error: E) -> Self {
        Self { source: Box::new(error), unknown: false }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl fmt::Debug for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

/// The reason why a node failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeError {
    pub(crate) class: Class,
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

/// The reason why an owner or a node is not ready: a stable word, for conditions, events and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Every node of the plan is ready.
    Ready,
    /// A node needs more time.
    Waiting,
    /// A required input is missing.
    InputMissing,
    /// An object that the owner does not own has the name of a planned one.
    Collision,
    /// Another field manager owns fields of the plan, and the plan says not to take them.
    FieldConflict,
    /// The server refused an object as invalid.
    Invalid,
    /// An immutable field differs from the plan.
    Immutable,
    /// The operator's ServiceAccount lacks a right.
    Forbidden,
    /// A generated object was deleted.
    GeneratedLost,
    /// The plan cannot be drawn.
    DrawFailed,
    /// An actor does not do what the spec asks for, because that is not safe.
    Refused,
    /// A task or step failed.
    Failed,
    /// An object changed during the reconcile.
    Conflict,
    /// The API server, or the service that a step calls, does not answer.
    Unavailable,
    /// The same object is written again and again.
    Fighting,
    /// Too many objects would be deleted at once.
    PruneHeldBack,
    /// The owner is paused.
    Paused,
    /// The owner is being deleted.
    Deleting,
}

impl Reason {
    /// All reasons, for documentation and alerts that must be complete.
    pub const ALL: [Self; 18] = [
        Self::Ready,
        Self::Waiting,
        Self::InputMissing,
        Self::Collision,
        Self::FieldConflict,
        Self::Invalid,
        Self::Immutable,
        Self::Forbidden,
        Self::GeneratedLost,
        Self::DrawFailed,
        Self::Refused,
        Self::Failed,
        Self::Conflict,
        Self::Unavailable,
        Self::Fighting,
        Self::PruneHeldBack,
        Self::Paused,
        Self::Deleting,
    ];

    /// Returns the reason as a word in `CamelCase`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Waiting => "Waiting",
            Self::InputMissing => "InputMissing",
            Self::Collision => "Collision",
            Self::FieldConflict => "FieldConflict",
            Self::Invalid => "Invalid",
            Self::Immutable => "Immutable",
            Self::Forbidden => "Forbidden",
            Self::GeneratedLost => "GeneratedLost",
            Self::DrawFailed => "DrawFailed",
            Self::Refused => "Refused",
            Self::Failed => "Failed",
            Self::Conflict => "Conflict",
            Self::Unavailable => "Unavailable",
            Self::Fighting => "Fighting",
            Self::PruneHeldBack => "PruneHeldBack",
            Self::Paused => "Paused",
            Self::Deleting => "Deleting",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl NodeError {
    /// Returns an error that stays until something changes.
    pub(crate) fn terminal(reason: Reason, message: impl Into<String>) -> Self {
        Self { class: Class::Terminal, reason, message: message.into() }
    }

    /// Returns an error that may be gone at the next attempt.
    pub(crate) fn transient(reason: Reason, message: impl Into<String>) -> Self {
        Self { class: Class::Transient, reason, message: message.into() }
    }

    /// Returns an error because something else changed meanwhile: the node is tried again at once.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self { class: Class::Conflict, reason: Reason::Conflict, message: message.into() }
    }

    /// Returns the class of the error.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Returns the reason of the error.
    pub fn reason(&self) -> Reason {
        self.reason
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for NodeError {}

/// Derives the class from the kind of the server's response, never from the text of its message.
impl From<ClientError> for NodeError {
    fn from(error: ClientError) -> Self {
        let (class, reason) = match error.failure() {
            Failure::Invalid(_) => (Class::Terminal, Reason::Invalid),
            Failure::FieldConflict(_) => (Class::Terminal, Reason::FieldConflict),
            Failure::Conflict | Failure::AlreadyExists => (Class::Conflict, Reason::Conflict),
            // RBAC rules may be added at any time, and no watch reports it.
            Failure::Forbidden | Failure::Terminating | Failure::Unauthorized => {
                (Class::Transient, Reason::Forbidden)
            }
            _ => (Class::Transient, Reason::Unavailable),
        };
        Self { class, reason, message: error.to_string() }
    }
}

/// Converts an error in a plan that occurs while a node is visited: in a mutation, a generator or a renewal.
impl From<PlanError> for NodeError {
    fn from(error: PlanError) -> Self {
        Self::terminal(Reason::DrawFailed, error.to_string())
    }
}

/// Converts an error that a step's own code returned.
impl From<Error> for NodeError {
    fn from(error: Error) -> Self {
        Self { class: error.class(), reason: Reason::Failed, message: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_reasons_is_complete_and_each_has_its_own_word() {
        for (place, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place, "{reason:?}");
        }
        assert_eq!(Reason::ALL.len(), Reason::Deleting as usize + 1, "the last one that there is");
        let words: std::collections::BTreeSet<&str> =
            Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(words.len(), Reason::ALL.len());
    }
}
