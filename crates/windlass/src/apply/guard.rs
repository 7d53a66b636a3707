//! The write guard: decides whether a write may be made, from the write history and the state of the owner.

use std::time::Duration;

use windlass_runtime::client::{ClientError, Failure};
use windlass_runtime::controller::Class;
use windlass_runtime::events::EventType;
use windlass_runtime::meta::Meta;

use super::history::{Attempt, Budget, Permission, REFUSAL, UNEXPLAINED, WriteHistory};
use super::run::Run;
use crate::error::{NodeError, Reason};
use crate::plan::node::{Place, Write};

/// Returns the time after which a failed node is tried again even if nothing has changed; `None` if a watch
/// reports the change, or the class of the error decides.
pub(crate) fn retry_after(error: &NodeError) -> Option<Duration> {
    match (error.reason, error.class) {
        (Reason::Fighting, _) => Some(Duration::from_mins(1)),
        // A watch reports the change, or only the plan can change it.
        (Reason::Collision | Reason::GeneratedLost | Reason::DrawFailed | Reason::Refused, _) => None,
        // No watch reports when a webhook answers again.
        (Reason::Unavailable, Class::Terminal) => Some(UNEXPLAINED),
        (_, Class::Terminal) => Some(REFUSAL),
        _ => None,
    }
}

impl Run<'_> {
    /// Checks against the write history whether a write may be made.
    pub(super) fn may_write(&self, write: Write<'_>, attempt: &str) -> Result<(), NodeError> {
        let Write { place, desired, digest, .. } = write;
        let applier = self.applier;
        let (key, uid, limit) = (&self.owner.key, self.owner.uid, applier.writes);
        let budget = Budget { generation: self.owner.generation, limit };
        match applier.history.may_write(key, uid, &place.id, digest, self.among(attempt), budget) {
            Permission::Granted => Ok(()),
            Permission::Refused(error, _) => Err(NodeError { class: Class::Terminal, ..error }),
            Permission::Exhausted { first, restless, .. } => {
                // The message leaves out the remaining time: otherwise each reconcile would write another
                // status.
                let why = if restless {
                    "it has been written {limit} times, with other content each time: the plan is not the same when it is drawn \
                     again. Look for a time, a random value or an unsorted list in it"
                } else {
                    "it has been written {limit} times and is changed each time: somebody else writes it too. Look at its \
                     managedFields, and stop one of the two"
                };
                let why = why.replace("{limit}", &limit.to_string());
                let message = format!("{why}; it is tried again once a minute");
                if first {
                    applier.metrics.fought(applier.name, &desired.resource.kind);
                    let note = format!("{}: {message}", place.id);
                    applier.event(self.owner, EventType::Warning, Reason::Fighting, &note);
                }
                Err(NodeError { class: Class::Terminal, reason: Reason::Fighting, message })
            }
        }
    }

    /// Checks against the write history whether an effect may be sent.
    pub(super) fn may_send(&self, place: &Place, words: &str) -> Result<(), NodeError> {
        let applier = self.applier;
        let (key, uid, limit) = (&self.owner.key, self.owner.uid, applier.writes);
        let budget = Budget { generation: self.owner.generation, limit };
        let attempt = Attempt { content: words, beside: "" };
        match applier.history.may_write(key, uid, &place.id, words, attempt, budget) {
            Permission::Granted => Ok(()),
            Permission::Refused(error, _) => Err(NodeError { class: Class::Terminal, ..error }),
            Permission::Exhausted { first, .. } => {
                let message = format!(
                    "it has been sent {limit} times without the result that its actor expects; it is sent once a minute from \
                     now on"
                );
                if first {
                    applier.metrics.fought(applier.name, place.node.kind());
                    let note = format!("{}: {message}", place.id);
                    applier.event(self.owner, EventType::Warning, Reason::Fighting, &note);
                }
                Err(NodeError { class: Class::Terminal, reason: Reason::Fighting, message })
            }
        }
    }

    /// Makes sure that a missing object was not deleted together with its owner.
    ///
    /// When an owner is deleted, the garbage collector deletes the objects that it owned. The owner and its
    /// objects are watched separately, so that the deletion of an object may be seen first: an object that is
    /// created again would have no owner. The server is asked once in a run, and only if an object is missing
    /// that existed before.
    ///
    /// # Errors
    /// A conflict if the owner has been deleted, is being deleted, or has been replaced by another of its
    /// name: the watch of owners will report it.
    pub(super) async fn owner_must_stay(&self) -> Result<(), NodeError> {
        let stays = self
            .owner_stays
            .get_or_try_init(|| async {
                let live = self.applier.writer.read(&self.owner.resource, &self.owner.key).await?;
                let stays = live.is_some_and(|live| {
                    let meta = &live["metadata"];
                    meta["uid"] == *self.owner.uid.to_string() && meta["deletionTimestamp"].is_null()
                });
                Ok::<_, NodeError>(stays)
            })
            .await?;
        if *stays { Ok(()) } else { Err(NodeError::conflict("it is deleted together with its owner")) }
    }

    /// Records that the server accepted a write of the node's object.
    pub(super) fn accepted(&self, place: &Place) {
        self.applier.history.accepted(&self.owner.key, self.owner.uid, &place.id);
    }

    /// Records that the server refused a write.
    pub(super) fn refused(&self, place: &Place, attempt: &str, error: ClientError) -> NodeError {
        let (history, key, uid) = (&self.applier.history, &self.owner.key, self.owner.uid);
        history.not_written(key, uid, &place.id);
        let internal = *error.failure() == Failure::Internal;
        let is_final = matches!(error.failure(), Failure::Invalid(_) | Failure::FieldConflict(_));
        let error = NodeError::from(error);
        if !(internal || is_final) {
            return error;
        }
        let last_word = history.refused(key, uid, &place.id, self.among(attempt), &error);
        if !last_word.stands {
            return NodeError { class: Class::Transient, ..error };
        }
        if internal && WriteHistory::is_last_word(last_word.times) {
            return NodeError { class: Class::Terminal, ..error };
        }
        error
    }
}

impl Run<'_> {
    /// Returns the attempt together with the objects that have left the plan and still exist.
    pub(super) fn among<'s>(&'s self, content: &'s str) -> Attempt<'s> {
        let leftovers = || self.applier.leftovers(self.owner, self.drawn).join(", ");
        Attempt { content, beside: self.leftovers.get_or_init(leftovers) }
    }
}

/// An attempted write: the content, and the live object that it was applied to. A content that was refused on
/// one object may be accepted on another, or after somebody has changed the object.
pub(super) struct Attempted<'a>(pub(super) &'a str, pub(super) Option<&'a Meta>);

impl std::fmt::Display for Attempted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self(digest, None) => f.write_str(digest),
            Self(digest, Some(meta)) => write!(f, "{digest} {} {}", meta.uid, meta.generation),
        }
    }
}
