//! Writing one object: created or applied with its precondition, and what follows where the server refuses.

use windlass_runtime::client::{ClientError, Failure};
use windlass_runtime::meta::Meta;

use super::guard::Attempt;
use super::run::Run;
use super::writer::{is_another, is_immutable};
use crate::error::{NodeError, Reason};
use crate::metrics::NodeResult;
use crate::names::mark;
use crate::plan::Immutable;
use crate::plan::desired::digest_of;
use crate::plan::node::{Creation, How, Write};

impl Run<'_> {
    /// Creates an object, if there is none of its name.
    pub(super) async fn try_create(&self, write: Write<'_>) -> Result<Creation, NodeError> {
        let Write { place, desired, digest, how } = write;
        let attempt = Attempt(digest, None).to_string();
        self.may_write(write, &attempt)?;
        match self.applier.writer.create(desired).await {
            Ok(()) => {
                let verb = if matches!(how, How::Marks) { "generated" } else { "created" };
                tracing::info!(object = ?desired, "{verb}");
                self.did(place, NodeResult::Created);
                self.accepted(place);
                Ok(Creation::Created)
            }
            Err(error) if matches!(error.failure(), Failure::Conflict | Failure::AlreadyExists) => {
                Ok(Creation::Exists)
            }
            Err(error) => Err(self.refused(place, &attempt, error)),
        }
    }

    /// Applies to the object that exists.
    pub(super) async fn apply_to(&self, write: Write<'_>, live: &Meta, why: &str) -> Result<(), NodeError> {
        let Write { place, desired, digest, how } = write;
        let attempt = Attempt(digest, Some(live)).to_string();
        self.may_write(write, &attempt)?;
        let writer = &self.applier.writer;
        let written = match how {
            How::Marks => writer.mark(desired, live.uid).await,
            How::Apply | How::Remake(_) => writer.update(desired, live.uid, place.options.conflicts).await,
        };
        match written {
            Ok(()) => {
                tracing::info!(object = ?desired, why, "applied");
                self.did(place, NodeResult::Applied);
                self.accepted(place);
                Ok(())
            }
            Err(error) if is_immutable(&desired.resource, error.failure()) => {
                self.cannot_change(write, live, error).await
            }
            Err(error) if is_another(error.failure()) => {
                Err(NodeError::conflict("it was replaced by another of its name while we looked"))
            }
            Err(error) if matches!(error.failure(), Failure::Invalid(_)) && has_had(digest, live) => {
                self.make_way(write, &attempt, live, error).await
            }
            Err(error) => Err(self.refused(place, &attempt, error)),
        }
    }

    /// Makes way for content that was accepted before and is refused now: somebody has put something beside it that cannot be there.
    async fn make_way(
        &self,
        write: Write<'_>,
        attempt: &str,
        live: &Meta,
        refusal: ClientError,
    ) -> Result<(), NodeError> {
        let Write { place, desired, .. } = write;
        let writer = &self.applier.writer;
        let Some(found) = writer.read(&desired.resource, &desired.key).await? else {
            return Err(NodeError::conflict("it went while we looked"));
        };
        if !writer.make_way(desired, &found).await? {
            return Err(self.refused(place, attempt, refusal));
        }
        match writer.update(desired, live.uid, place.options.conflicts).await {
            Ok(()) => {
                tracing::info!(object = ?desired, why = %refusal, "applied, after what was in its way");
                self.did(place, NodeResult::Applied);
                self.accepted(place);
                Ok(())
            }
            Err(error) => Err(self.refused(place, attempt, error)),
        }
    }

    /// A field differs that cannot be changed.
    async fn cannot_change(
        &self,
        write: Write<'_>,
        live: &Meta,
        error: ClientError,
    ) -> Result<(), NodeError> {
        let Write { place, desired, .. } = write;
        match place.options.immutable.unwrap_or_else(|| Immutable::of(&desired.resource)) {
            Immutable::Report => {
                let attempt = Attempt(&digest_of(desired), Some(live)).to_string();
                let message = format!(
                    "{error}: it cannot be changed; undo the change, or delete the object to have it created anew"
                );
                let error = NodeError::terminal(Reason::Immutable, message);
                let (key, uid) = (&self.owner.key, self.owner.uid);
                self.applier.history.refused(key, uid, &place.id, &attempt, &error);
                Err(error)
            }
            Immutable::Recreate => {
                tracing::info!(object = ?desired, %error, "deleted, to be created anew: a field cannot be changed");
                self.applier.writer.delete_alone(&desired.resource, &desired.key, live.uid).await?;
                Err(NodeError::conflict("it is being replaced, because a field of it cannot be changed"))
            }
        }
    }
}

/// Returns whether the object has had this very content before.
fn has_had(digest: &str, live: &Meta) -> bool {
    live.annotations.get(mark::DIGEST).is_some_and(|known| **known == *digest)
}
