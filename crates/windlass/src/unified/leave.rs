//! Leave to write: by what is remembered of earlier attempts, and by whom it is for.

use windlass_runtime::client::{ClientError, Failure};
use windlass_runtime::controller::Class;
use windlass_runtime::events::EventType;
use windlass_runtime::meta::Meta;

use super::node::{Visitor, conflict};
use crate::desired::Desired;
use crate::error::{NodeError, Reason};
use crate::memory::{Leave, Memory};
use crate::plan::Node;

impl Visitor<'_> {
    /// Leave to write, by what is remembered of earlier attempts.
    pub(super) fn leave(
        &self,
        node: &Node,
        desired: &Desired,
        digest: &str,
        attempt: &str,
    ) -> Result<(), NodeError> {
        let (key, uid, id) = (&self.owner.key, self.owner.uid, &node.draft.id);
        match self.machine.memory.may_write(key, uid, id, digest, attempt, self.machine.writes) {
            Leave::Granted => Ok(()),
            Leave::Refused(error, _) => Err(NodeError { class: Class::Terminal, ..error }),
            Leave::Fight(_, first) => {
                // Without the time that is left: each look would be another status.
                let said = format!(
                    "it has been written {} times and is changed each time: somebody else writes it too. Look at its \
                     managedFields, and stop one of the two; it is tried again once a minute",
                    self.machine.writes
                );
                if first {
                    self.machine.metrics.fought(self.machine.name, &desired.resource.kind);
                    let told = format!("{}: {said}", node.draft.id);
                    self.machine.event(self.owner, EventType::Warning, Reason::Fighting, &told);
                }
                Err(NodeError { class: Class::Terminal, reason: Reason::Fighting, message: said })
            }
        }
    }

    /// Whether an object that is missing was there before.
    pub(super) fn was_there(&self, node: &Node) -> bool {
        self.owner.was_complete()
            || self.machine.memory.was_written(&self.owner.key, self.owner.uid, &node.draft.id)
    }

    /// Makes sure that what is missing does not go with its owner.
    ///
    /// When an owner is deleted, the garbage collector takes what it owned. The owner and its objects are told of by watches of their own,
    /// so that an object may be seen to go first: made anew it would be in nobody's hands. The server knows; it is asked once in a run, and
    /// only when something is missing that was there.
    ///
    /// # Errors
    /// A conflict if the owner is gone, is going, or has been replaced by another of its name: its own watch will say so.
    pub(super) async fn with_its_owner(&self) -> Result<(), NodeError> {
        let stays = self
            .owner_stays
            .get_or_try_init(|| async {
                let live = self.machine.desk.look(&self.owner.resource, &self.owner.key).await?;
                let stays = live.is_some_and(|live| {
                    let meta = &live["metadata"];
                    meta["uid"] == *self.owner.uid.to_string() && meta["deletionTimestamp"].is_null()
                });
                Ok::<_, NodeError>(stays)
            })
            .await?;
        if *stays { Ok(()) } else { Err(conflict("it goes with its owner, which is being deleted")) }
    }

    /// Remembers what the server would not have.
    pub(super) fn refused(&self, node: &Node, attempt: &str, error: ClientError) -> NodeError {
        self.machine.memory.not_written(&self.owner.key, self.owner.uid, &node.draft.id);
        let internal = *error.failure() == Failure::Internal;
        let final_word = matches!(error.failure(), Failure::Invalid(_) | Failure::FieldConflict(_));
        let error = NodeError::from(error);
        if !(internal || final_word) {
            return error;
        }
        let times =
            self.machine.memory.refused(&self.owner.key, self.owner.uid, &node.draft.id, attempt, &error);
        if internal && Memory::is_last_word(times) {
            return NodeError { class: Class::Terminal, ..error };
        }
        error
    }
}

/// What the server was given: a content, and what it was to become a part of. What was refused on one object may be accepted on
/// the next, or when somebody has changed that one.
pub(super) struct Attempt<'a>(pub(super) &'a str, pub(super) Option<&'a Meta>);

impl std::fmt::Display for Attempt<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self(digest, None) => f.write_str(digest),
            Self(digest, Some(meta)) => write!(f, "{digest} {} {}", meta.uid, meta.generation),
        }
    }
}
