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
use crate::plan::owner::{self, OwnerView};

impl Envelope {
    /// Writes the status of an owner, if it changed; then records the event of what it changed to.
    pub(super) async fn write_status(&self, owner: &OwnerView, report: PassReport) -> Result<(), Error> {
        let verdict = report.verdict.clone();
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
            // It has gone: nobody is left to be told. A conflict may also mean a busy server, so it is tried again.
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        self.announce(owner, &verdict, &next);
        Ok(())
    }

    /// Events, on transitions only. That quick work is done is no news.
    fn announce(&self, owner: &OwnerView, verdict: &Verdict, next: &Value) {
        let before = owner::condition(&owner.status, condition::READY);
        let after = owner::condition(next, condition::READY);
        if before == after {
            return;
        }
        let was_ready = before.as_ref().is_some_and(|(truth, _)| truth == "True");
        let (kind, reason) = match (before.is_some(), verdict) {
            (false, Verdict { ready: true, .. }) => return,
            (_, Verdict { ready: true, .. }) => (EventType::Normal, Reason::Ready),
            (_, Verdict { failed: true, reason, .. }) => (EventType::Warning, *reason),
            (
                _,
                Verdict {
                    reason: reason @ (Reason::Paused | Reason::Deleting | Reason::InputMissing), ..
                },
            ) => (EventType::Normal, *reason),
            // Between two kinds of waiting there is no transition.
            _ if was_ready => (EventType::Normal, verdict.reason),
            _ => return,
        };
        self.applier.event(owner, kind, reason, &verdict.message);
    }
}
