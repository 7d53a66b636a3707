//! The write guard: whether a write may be made, by the write history and by its owner.

use std::time::Duration;

use windlass_runtime::client::{ClientError, Failure};
use windlass_runtime::controller::Class;
use windlass_runtime::events::EventType;
use windlass_runtime::meta::Meta;

use super::history::{Permission, REFUSAL, UNEXPLAINED, WriteHistory};
use super::run::Run;
use crate::error::{NodeError, Reason};
use crate::plan::node::{Place, Write};

/// When a failed node is tried again, though nothing may have changed; `None` if a watch tells, or the error's class says.
pub(crate) fn retry_after(error: &NodeError) -> Option<Duration> {
    match (error.reason, error.class) {
        (Reason::Fighting, _) => Some(Duration::from_mins(1)),
        // Watched, or a matter of the plan alone.
        (Reason::Collision | Reason::GeneratedLost | Reason::DrawFailed, _) => None,
        // Nobody tells when a webhook answers again.
        (Reason::Unavailable, Class::Terminal) => Some(UNEXPLAINED),
        (_, Class::Terminal) => Some(REFUSAL),
        _ => None,
    }
}

impl Run<'_> {
    /// Returns whether a write may be made, by what is remembered of earlier attempts.
    pub(super) fn may_write(&self, write: Write<'_>, attempt: &str) -> Result<(), NodeError> {
        let Write { place, desired, digest, .. } = write;
        let applier = self.applier;
        let (key, uid, limit) = (&self.owner.key, self.owner.uid, applier.writes);
        match applier.history.may_write(key, uid, &place.id, digest, attempt, limit) {
            Permission::Granted => Ok(()),
            Permission::Refused(error, _) => Err(NodeError { class: Class::Terminal, ..error }),
            Permission::Fight(_, first) => {
                // Without the time that is left: each reconcile would write another status.
                let message = format!(
                    "it has been written {limit} times and is changed each time: somebody else writes it too. Look at its \
                     managedFields, and stop one of the two; it is tried again once a minute"
                );
                if first {
                    applier.metrics.fought(applier.name, &desired.resource.kind);
                    let note = format!("{}: {message}", place.id);
                    applier.event(self.owner, EventType::Warning, Reason::Fighting, &note);
                }
                Err(NodeError { class: Class::Terminal, reason: Reason::Fighting, message })
            }
        }
    }

    /// Makes sure that a missing object does not go with its owner.
    ///
    /// When an owner is deleted, the garbage collector takes what it owned. The owner and its objects are watched apart, so
    /// that an object may be seen to go first: made anew it would be in nobody's hands. The server knows; it is asked once
    /// in a run, and only when something is missing that was there.
    ///
    /// # Errors
    /// A conflict if the owner is gone, is going, or has been replaced by another of its name: its own watch will say so.
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
        if *stays {
            Ok(())
        } else {
            Err(NodeError::conflict("it goes with its owner, which is being deleted"))
        }
    }

    /// The server accepted a write of the node's object.
    pub(super) fn accepted(&self, place: &Place) {
        self.applier.history.accepted(&self.owner.key, self.owner.uid, &place.id);
    }

    /// Remembers what the server refused.
    pub(super) fn refused(&self, place: &Place, attempt: &str, error: ClientError) -> NodeError {
        let (history, key, uid) = (&self.applier.history, &self.owner.key, self.owner.uid);
        history.not_written(key, uid, &place.id);
        let internal = *error.failure() == Failure::Internal;
        let is_final = matches!(error.failure(), Failure::Invalid(_) | Failure::FieldConflict(_));
        let error = NodeError::from(error);
        if !(internal || is_final) {
            return error;
        }
        let times = history.refused(key, uid, &place.id, attempt, &error);
        if internal && WriteHistory::is_last_word(times) {
            return NodeError { class: Class::Terminal, ..error };
        }
        error
    }
}

/// What the server was given: a content, and what it was to become a part of. What was refused on one object may be accepted
/// on the next, or when somebody has changed that one.
pub(super) struct Attempt<'a>(pub(super) &'a str, pub(super) Option<&'a Meta>);

impl std::fmt::Display for Attempt<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self(digest, None) => f.write_str(digest),
            Self(digest, Some(meta)) => write!(f, "{digest} {} {}", meta.uid, meta.generation),
        }
    }
}
