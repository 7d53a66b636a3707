//! What can go wrong, for two readers: a class for the program, a sentence with the remedy for the user.

use std::fmt;

use windlass_runtime::client::{ClientError, Failure};
use windlass_runtime::controller::{Class, Error};

/// The reason why a plan cannot be drawn. Terminal until the owner or one of the objects that the plan asked for changes.
///
/// The `?` operator converts any error into one.
pub struct PlanError {
    source: Box<dyn std::error::Error + Send + Sync>,
    unknown: bool,
}

impl PlanError {
    /// An error with a message. Say what is wrong, where, and what to do about it; never a secret.
    pub fn new(message: impl Into<String>) -> Self {
        Self { source: message.into().into(), unknown: false }
    }

    /// The plan depends on a fact that is not known yet: the owner waits, and nothing is written.
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

/// Why a node failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeError {
    pub(crate) class: Class,
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

/// Why something is not ready: stable words, for conditions, events and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Everything is as it should be.
    Ready,
    /// Something needs more time.
    Waiting,
    /// A required input is missing.
    InputMissing,
    /// An object that is not ours has the name of one of ours.
    Collision,
    /// Another manager holds fields that we want, and the plan says not to take them.
    FieldConflict,
    /// The server finds an object wrong.
    Invalid,
    /// A field that cannot be changed differs.
    Immutable,
    /// Our account may not do it.
    Forbidden,
    /// A generated object is gone.
    GeneratedLost,
    /// The plan cannot be drawn.
    DrawFailed,
    /// A task or step failed.
    Failed,
    /// Something else changed while we acted.
    Conflict,
    /// The API server, or what a step talks to, cannot answer.
    Unavailable,
    /// The same object is written again and again.
    Fighting,
    /// Too much would be deleted at once.
    PruneHeldBack,
    /// The owner is paused.
    Paused,
    /// The owner is being deleted.
    Deleting,
}

impl Reason {
    /// All of them, for pages and alerts that must miss none.
    pub const ALL: [Self; 17] = [
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
        Self::Failed,
        Self::Conflict,
        Self::Unavailable,
        Self::Fighting,
        Self::PruneHeldBack,
        Self::Paused,
        Self::Deleting,
    ];

    /// The word, in `CamelCase`.
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
    /// A failure that stays until something changes.
    pub(crate) fn terminal(reason: Reason, message: impl Into<String>) -> Self {
        Self { class: Class::Terminal, reason, message: message.into() }
    }

    /// A failure that may be gone next time.
    pub(crate) fn transient(reason: Reason, message: impl Into<String>) -> Self {
        Self { class: Class::Transient, reason, message: message.into() }
    }

    /// A failure because something else changed meanwhile: tried again at once.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self { class: Class::Conflict, reason: Reason::Conflict, message: message.into() }
    }

    /// Its class.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Its reason.
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

/// The class follows from what the server answered, never from its words.
impl From<ClientError> for NodeError {
    fn from(error: ClientError) -> Self {
        let (class, reason) = match error.failure() {
            Failure::Invalid(_) => (Class::Terminal, Reason::Invalid),
            Failure::FieldConflict(_) => (Class::Terminal, Reason::FieldConflict),
            Failure::Conflict | Failure::AlreadyExists => (Class::Conflict, Reason::Conflict),
            // Rights are given while we wait, and nobody tells us.
            Failure::Forbidden | Failure::Unauthorized => (Class::Transient, Reason::Forbidden),
            _ => (Class::Transient, Reason::Unavailable),
        };
        Self { class, reason, message: error.to_string() }
    }
}

/// A plan that turns out wrong while a node is visited: in a mutation, a generator or a renewal.
impl From<PlanError> for NodeError {
    fn from(error: PlanError) -> Self {
        Self::terminal(Reason::DrawFailed, error.to_string())
    }
}

/// What a step's own code returns.
impl From<Error> for NodeError {
    fn from(error: Error) -> Self {
        Self { class: error.class(), reason: Reason::Failed, message: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_reason_is_forgotten_and_each_has_a_word_of_its_own() {
        for (place, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place, "{reason:?}");
        }
        assert_eq!(Reason::ALL.len(), Reason::Deleting as usize + 1, "the last one that there is");
        let words: std::collections::BTreeSet<&str> =
            Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(words.len(), Reason::ALL.len());
    }
}
