//! Writes one object: creates or applies it with its precondition, and handles a refusal of the server.

use windlass_runtime::client::{ClientError, Failure};
use windlass_runtime::meta::Meta;
use windlass_runtime::resource::ResourceType;

use super::guard::Attempted;
use super::mend::is_suspect;
use super::run::Run;
use super::writer::{is_another, is_immutable};
use crate::error::{NodeError, Reason};
use crate::metrics::NodeResult;
use crate::names::mark;
use crate::plan::Immutable;
use crate::plan::desired::digest_of;
use crate::plan::node::{Creation, How, Write};

impl Run<'_> {
    /// Creates an object if no object of its name exists.
    pub(super) async fn try_create(&self, write: Write<'_>) -> Result<Creation, NodeError> {
        let Write { place, desired, digest, how } = write;
        let attempt = Attempted(digest, None).to_string();
        self.may_write(write, &attempt)?;
        match self.applier.writer.create(desired).await {
            Ok(()) => {
                match how {
                    How::Marks => tracing::info!(object = ?desired, "object generated"),
                    How::Apply | How::Remake(_) => tracing::info!(object = ?desired, "object created"),
                }
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

    /// Applies to the existing object.
    pub(super) async fn apply_to(&self, write: Write<'_>, live: &Meta, why: &str) -> Result<(), NodeError> {
        let Write { place, desired, digest, how } = write;
        let attempt = Attempted(digest, Some(live)).to_string();
        self.may_write(write, &attempt)?;
        let writer = &self.applier.writer;
        let written = match how {
            How::Marks => writer.mark(desired, live.uid).await,
            How::Apply | How::Remake(_) => {
                if is_suspect(desired, live, has_had(digest, live)) {
                    self.mend(write, live, &[]).await?;
                }
                writer.update(desired, live.uid, place.options.conflicts).await
            }
        };
        match written {
            Ok(()) => {
                tracing::info!(object = ?desired, why, "object applied");
                self.did(place, NodeResult::Applied);
                self.accepted(place);
                Ok(())
            }
            Err(error) if is_immutable(&desired.resource, error.failure()) => {
                self.cannot_change(write, live, error).await
            }
            Err(error) if is_another(error.failure()) => {
                Err(NodeError::conflict("it was replaced by another object of its name during the reconcile"))
            }
            Err(error) if matches!(error.failure(), Failure::Invalid(_)) => {
                self.mend_and_apply(write, &attempt, live, error).await
            }
            Err(error) => Err(self.refused(place, &attempt, error)),
        }
    }

    /// Handles a difference in an immutable field.
    async fn cannot_change(
        &self,
        write: Write<'_>,
        live: &Meta,
        error: ClientError,
    ) -> Result<(), NodeError> {
        let Write { place, desired, .. } = write;
        match place.options.immutable.unwrap_or_else(|| Immutable::of(&desired.resource)) {
            Immutable::Report => {
                let attempt = Attempted(&digest_of(desired), Some(live)).to_string();
                let message = format!("{error}: it cannot be changed; {}", remedy(&desired.resource));
                let error = NodeError::terminal(Reason::Immutable, message);
                let (key, uid) = (&self.owner.key, self.owner.uid);
                self.applier.history.refused(key, uid, &place.id, self.among(&attempt), &error);
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

/// Returns the remedy for a change of an immutable field. Deletion is advised only for kinds that hold no
/// data, and without which none is lost.
fn remedy(resource: &ResourceType) -> &'static str {
    match (&*resource.group, &*resource.kind) {
        ("apps", "Deployment" | "DaemonSet")
        | ("batch", "Job" | "CronJob")
        | ("", "Service")
        | ("policy", "PodDisruptionBudget") => {
            "undo the change, or delete the object to have it created again"
        }
        _ => {
            "undo the change, or create the owner again under another name with the new value and move the data \
             to it"
        }
    }
}

/// Returns whether the object has had exactly this content before.
fn has_had(digest: &str, live: &Meta) -> bool {
    live.annotations.get(mark::DIGEST).is_some_and(|known| **known == *digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
    use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret, Service};

    #[test]
    fn users_n6_deletion_is_not_advised_for_what_may_hold_data() {
        let kinds = [
            ResourceType::of::<PersistentVolumeClaim>(),
            ResourceType::of::<StatefulSet>(),
            ResourceType::of::<Secret>(),
        ];
        for kind in kinds {
            let remedy = remedy(&kind);
            assert!(remedy.contains("undo the change") && !remedy.contains("delete"), "{kind:?}: {remedy}");
        }
        for kind in [ResourceType::of::<Deployment>(), ResourceType::of::<Service>()] {
            assert!(remedy(&kind).contains("delete the object"), "{kind:?}");
        }
    }
}
