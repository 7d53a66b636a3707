//! Status and events: written when they change, and only then.

use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use windlass_runtime::client::Apply;
use windlass_runtime::controller::Error;
use windlass_runtime::events::EventType;

use super::envelope::Envelope;
use super::status::{self, PassReport, Verdict, condition};
use crate::error::Reason;
use crate::metrics::OwnerConditions;
use crate::plan::owner::{self, OwnerView};

impl Envelope {
    /// Writes the status of an owner if it changed; then records an event about the change.
    pub(super) async fn write_status(&self, owner: &OwnerView, report: PassReport) -> Result<(), Error> {
        let verdict = report.verdict.clone();
        let conditions =
            OwnerConditions { ready: verdict.ready, failed: verdict.failed, paused: report.paused.is_some() };
        self.applier.metrics.owner_is(self.applier.name, &owner.key, conditions);
        let next = status::next(&owner.status, owner.generation, report, Timestamp::now());
        if !status::differs(&owner.status, &next, &owner.status_fields) {
            return Ok(());
        }
        let body = json!({
            "apiVersion": owner.resource.api_version(),
            "kind": owner.resource.kind,
            "metadata": {"name": owner.key.name(), "namespace": owner.key.namespace(), "uid": owner.uid},
            "status": next,
        });
        let owners = self.applier.writer.client.objects_of::<IgnoredAny>(owner.resource.clone());
        match owners.apply_status(&owner.key, &body, &Apply::by(self.applier.name).force()).await {
            Ok(_) => self.debounce.written(owner),
            // The owner is gone, so there is no status to write. A conflict may also mean a busy server, so
            // it is tried again.
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        self.announce(owner, &verdict, &next);
        Ok(())
    }

    /// Records events, on transitions only. The end of quick work causes no event.
    fn announce(&self, owner: &OwnerView, verdict: &Verdict, next: &Value) {
        let transition = |kind| (owner::condition(&owner.status, kind), owner::condition(next, kind));
        if let (None, Some(_)) = transition(condition::PAUSED) {
            let note = owner::condition_message(next, condition::PAUSED);
            self.applier.event(owner, EventType::Normal, Reason::Paused, &note);
        }
        let (before, after) = transition(condition::READY);
        if before == after {
            return;
        }
        let was_ready = before.as_ref().is_some_and(|(truth, _)| truth == "True");
        let (kind, reason) = match (before.is_some(), verdict) {
            (false, Verdict { ready: true, .. }) => return,
            (_, Verdict { ready: true, .. }) => (EventType::Normal, Reason::Ready),
            (_, Verdict { failed: true, reason, .. }) => (EventType::Warning, *reason),
            (_, Verdict { reason: reason @ (Reason::Deleting | Reason::InputMissing), .. }) => {
                (EventType::Normal, *reason)
            }
            // A change between two reasons for waiting is no transition.
            _ if was_ready => (EventType::Normal, verdict.reason),
            _ => return,
        };
        self.applier.event(owner, kind, reason, &verdict.message);
    }
}
