//! Reads an object, decides on its mend, and sends the patch.

use windlass_runtime::client::{ClientError, Failure, FieldCause};
use windlass_runtime::meta::Meta;

use super::{Case, mend};
use crate::apply::run::Run;
use crate::error::NodeError;
use crate::metrics::NodeResult;
use crate::plan::node::Write;

impl Run<'_> {
    /// Mends the object if an apply alone cannot express the plan; returns whether it did.
    pub(in crate::apply) async fn mend(
        &self,
        write: Write<'_>,
        live: &Meta,
        causes: &[FieldCause],
    ) -> Result<bool, NodeError> {
        let mended = self.try_mend(write, live, causes).await;
        if mended.is_err() {
            // The apply is not sent.
            self.applier.history.not_written(&self.owner.key, self.owner.uid, &write.place.id);
        }
        mended
    }

    async fn try_mend(
        &self,
        write: Write<'_>,
        live: &Meta,
        causes: &[FieldCause],
    ) -> Result<bool, NodeError> {
        let Write { place, desired, .. } = write;
        let writer = &self.applier.writer;
        let Some(found) = writer.read(&desired.resource, &desired.key).await? else {
            return Err(NodeError::conflict("it was deleted during the reconcile"));
        };
        if found["metadata"]["uid"] != *live.uid.to_string() {
            return Err(NodeError::conflict(
                "it was replaced by another object of its name during the reconcile",
            ));
        }
        let conflicts = place.options.conflicts;
        let case = Case { live: &found, desired, manager: &writer.manager, conflicts, causes };
        let Some(mend) = mend(&case) else { return Ok(false) };
        writer.mend(desired, mend.patch).await?;
        let fields = mend.paths.join(", ");
        tracing::info!(object = ?desired, fields, "patched, so that an apply can remove these fields");
        Ok(true)
    }

    /// Mends an object after a refused apply, and applies again.
    pub(in crate::apply) async fn mend_and_apply(
        &self,
        write: Write<'_>,
        attempt: &str,
        live: &Meta,
        refusal: ClientError,
    ) -> Result<(), NodeError> {
        let Write { place, desired, .. } = write;
        let causes = match refusal.failure() {
            Failure::Invalid(causes) => &causes[..],
            _ => &[],
        };
        if !self.mend(write, live, causes).await? {
            return Err(self.refused(place, attempt, refusal));
        }
        match self.applier.writer.update(desired, live.uid, place.options.conflicts).await {
            Ok(()) => {
                tracing::info!(object = ?desired, why = %refusal, "applied after removing conflicting fields");
                self.did(place, NodeResult::Applied);
                self.accepted(place);
                Ok(())
            }
            Err(error) => Err(self.refused(place, attempt, error)),
        }
    }
}
