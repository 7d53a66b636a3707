//! Adoption of an object of a planned name that our watch does not show, or that is not ours.

use serde_json::Value;
use windlass_runtime::events::EventType;
use windlass_runtime::meta::{Keep, Uid};

use super::managed_fields::Takeover;
use super::run::Run;
use crate::error::{NodeError, Reason};
use crate::live::Live;
use crate::names::{ask, label, mark};
use crate::plan::node::{How, Place, Write};

/// The reason of the event for an adoption that dropped fields.
const ADOPTED: &str = "Adopted";

impl Run<'_> {
    /// Adopts an object of the planned name that our watch does not show: it is ours without its label, or
    /// somebody else's.
    pub(super) async fn adopt_found(&self, write: Write<'_>) -> Result<(), NodeError> {
        let Write { place, desired, .. } = write;
        let writer = &self.applier.writer;
        let Some(mut found) = writer.read(&desired.resource, &desired.key).await? else {
            return Err(NodeError::conflict("it was created and deleted during the reconcile"));
        };
        let live = self.decode(&found)?;
        let meta = &live.metadata;
        let consent = meta.annotations.get(ask::ADOPT).is_some_and(|title| **title == *self.owner.title())
            || self.owner.annotation(ask::ADOPT) == Some("true");
        let ours =
            self.owner.has(meta) || self.is_left_for_us(&live) || (consent && meta.controller().is_none());
        let writers = self.writers_of(place, &desired.key).await?;
        let inherited = !ours && writers.iter().any(|writer| writer.wrote(meta));
        if !(ours || inherited) {
            if !self.watch(&desired.resource, &desired.key).await {
                return Err(NodeError::conflict("the object that had its name was deleted"));
            }
            return Err(self.collides(&live));
        }
        if meta.deleting {
            return Err(NodeError::transient(
                Reason::Waiting,
                "an object of that name is still being deleted",
            ));
        }
        if !writers.is_empty() {
            found = self.inherit(desired, found, &writers).await?;
        }
        let only_marks = matches!(write.how, How::Marks);
        let takeover = if meta.managed.is_empty() && !only_marks {
            writer.take_over(desired, &found).await?
        } else {
            None
        };
        if place.retained() && only_marks {
            // The creator of the object may have set references that would delete it later.
            writer.disown(desired, &found, self.owner.uid).await?;
        }
        if let How::Remake(remake) = write.how {
            // The first version was made without knowledge of the existing object.
            let desired = remake.remake(&found).await?;
            self.apply_to(Write { desired: &desired, ..write }, meta, "adopted").await?;
        } else {
            self.apply_to(write, meta, "adopted").await?;
        }
        if let Some(takeover) = takeover {
            self.tell_dropped(place, &takeover);
        }
        Ok(())
    }

    /// Records the fields of its predecessors that an adopted object has lost.
    fn tell_dropped(&self, place: &Place, takeover: &Takeover) {
        if takeover.dropped.is_empty() {
            return;
        }
        let (managers, dropped) = (takeover.managers.join(", "), takeover.dropped.join(", "));
        let note = format!(
            "{} was adopted; fields of {managers} that the plan does not have are gone: {dropped}",
            place.id
        );
        let regarding = self.owner.regarding();
        self.applier.recorder.event(&regarding, EventType::Normal, ADOPTED, "Reconcile", &note);
    }

    /// Decodes an object that was read from the server.
    fn decode(&self, found: &Value) -> Result<Live, NodeError> {
        let keep = Keep::default().annotation(ask::ADOPT).annotation(mark::RETAIN).manager(self.applier.name);
        // Decoded from text: the entries of managers are kept as they were written, which a JSON tree does
        // not preserve.
        let text = found.to_string();
        keep.scope(|| serde_json::from_slice(text.as_bytes()))
            .map_err(|_| NodeError::transient(Reason::Unavailable, "the existing object cannot be decoded"))
    }

    /// Returns whether an object is data that an earlier owner of the same name left behind.
    pub(super) fn is_left_for_us(&self, live: &Live) -> bool {
        let meta = &live.metadata;
        let kept_for_us =
            meta.annotations.get(mark::RETAIN).is_some_and(|title| **title == *self.owner.title());
        let former = meta.labels.get(label::OWNER).and_then(|uid| uid.parse::<Uid>().ok());
        kept_for_us
            && meta.controller().is_none()
            && meta.namespace() == self.owner.namespace()
            && former.is_none_or(|former| !(self.applier.has_owner)(&former.to_string()))
    }

    /// Returns the error for an object of the planned name that is not ours.
    pub(super) fn collides(&self, live: &Live) -> NodeError {
        let whose = match live.metadata.controller() {
            Some(controller) => format!("controlled by {} {}", controller.kind, controller.name),
            None => "it has no controller".to_owned(),
        };
        let message = format!(
            "an object of that name exists and is not ours ({whose}): it is left alone. Delete or rename it, or let it be taken over \
             with the annotation {}={} on it",
            ask::ADOPT,
            self.owner.title()
        );
        tracing::debug!(object = %live.metadata.key, whose, "object not written: one of its name exists and is not ours");
        NodeError::terminal(Reason::Collision, message)
    }
}
