//! Leave to write, by what is remembered of earlier attempts.

use windlass_runtime::client::{ClientError, Failure};
use windlass_runtime::controller::Class;
use windlass_runtime::events::EventType;
use windlass_runtime::meta::Meta;

use super::node::Visitor;
use crate::blueprint::Blueprint;
use crate::desired::Desired;
use crate::error::{NodeError, Reason};
use crate::memory::{Leave, Memory};
use crate::plan::Node;

impl<B: Blueprint> Visitor<'_, B> {
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
                    self.machine.metrics.fought(B::NAME, &desired.resource.kind);
                    let told = format!("{}: {said}", node.draft.id);
                    self.machine.event(self.owner, EventType::Warning, Reason::Fighting, &told);
                }
                Err(NodeError { class: Class::Terminal, reason: Reason::Fighting, message: said })
            }
        }
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
