//! One object: compared, applied where it differs, checked.

use std::time::Duration;

use jiff::Timestamp;
use windlass_graph::Progress;
use windlass_runtime::client::{ClientError, Failure};
use windlass_runtime::meta::{Keep, Meta, Uid};

use super::complete::mark_of;
use super::desk::{is_another, is_immutable};
use super::leave::Attempt;
use super::node::{Visited, Visitor, being_deleted, conflict};
use crate::desired::Desired;
use crate::error::{NodeError, Reason};
use crate::kinds::OpenKind;
use crate::live::{AsLive, Live};
use crate::metrics::NodeResult;
use crate::names::{ask, label, mark};
use crate::ownership;
use crate::plan::{Immutable, Node, Verb};
use crate::pods;
use crate::readiness::{self, Readiness};
use crate::seen::Wait;

/// How often to look whether a kind that may be missing has been installed.
const MISSING_KIND: Duration = Duration::from_secs(10);

impl Visitor<'_> {
    pub(super) async fn object(&self, node: &Node, planned: &Desired, done: &mut NodeResult) -> Visited {
        let kind = self.machine.kind(&planned.resource)?;
        if let Some(why) = kind.missing() {
            // Nobody tells when it is installed.
            let (reason, poll) = (Reason::InputMissing, Some(MISSING_KIND));
            return Ok(Progress::Waiting(Wait { reason, message: why, poll }));
        }
        let live = kind.get(&planned.key);
        let desired = self.complete(node, planned, live.as_deref().map(AsLive::live)).await?;
        self.offer_content(node, &desired)?;
        let digest = mark_of(&desired);
        match &live {
            None => self.create(node, &desired, &digest, done).await?,
            Some(live) if !self.owner.has(&live.live().metadata) => {
                if !self.take_back(live.live()) {
                    return Err(self.collision(&desired, &describe(live.live())));
                }
                self.update(node, &desired, &digest, &live.live().metadata, "taken back", done).await?;
            }
            Some(live) if live.live().metadata.deleting => return Ok(being_deleted(live.live())),
            Some(live) => {
                if let Some(why) = drift(&desired, &digest, live.live()) {
                    self.update(node, &desired, &digest, &live.live().metadata, &why, done).await?;
                }
            }
        }
        self.check(node, &desired, &*kind)
    }

    pub(super) async fn create(
        &self,
        node: &Node,
        desired: &Desired,
        digest: &str,
        done: &mut NodeResult,
    ) -> Result<(), NodeError> {
        let attempt = Attempt(digest, None).to_string();
        if self.was_there(node) {
            self.with_its_owner().await?;
        }
        self.leave(node, desired, digest, &attempt)?;
        match self.machine.desk.create(desired).await {
            Ok(()) => {
                tracing::info!(object = ?desired, "created");
                *done = NodeResult::Created;
                self.machine.memory.accepted(&self.owner.key, self.owner.uid, &node.draft.id);
                Ok(())
            }
            Err(error) if matches!(error.failure(), Failure::Conflict | Failure::AlreadyExists) => {
                self.meet(node, desired, digest, done).await
            }
            Err(error) => Err(self.refused(node, &attempt, error)),
        }
    }

    /// Something of that name is there that our watch does not show: ours without its label, or somebody else's.
    pub(super) async fn meet(
        &self,
        node: &Node,
        desired: &Desired,
        digest: &str,
        done: &mut NodeResult,
    ) -> Result<(), NodeError> {
        let Some(mut found) = self.machine.desk.look(&desired.resource, &desired.key).await? else {
            return Err(conflict("it came and went while we looked"));
        };
        let keep = Keep::default().annotation(ask::ADOPT).annotation(mark::RETAIN).manager(self.machine.name);
        // From text: managers' entries are kept as they are written, which a tree no longer knows.
        let text = found.to_string();
        let live: Live = keep
            .scope(|| serde_json::from_slice(text.as_bytes()))
            .map_err(|_| NodeError::transient(Reason::Unavailable, "what is there cannot be read"))?;
        let meta = &live.metadata;
        let consent = meta.annotations.get(ask::ADOPT).is_some_and(|title| **title == *self.owner.title())
            || self.owner.annotation(ask::ADOPT) == Some("true");
        let ours = self.owner.has(meta) || self.take_back(&live) || (consent && meta.controller().is_none());
        let writers = self.writers(node, &desired.key).await?;
        let inherited = !ours && writers.iter().any(|writer| writer.wrote(meta));
        if !(ours || inherited) {
            let registry = &self.machine.registry;
            if !registry.follow_foreign(&self.owner.key, &desired.resource, &desired.key, self.held).await {
                return Err(conflict("what was in its way has gone"));
            }
            return Err(self.collision(desired, &describe(&live)));
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
        let generated = matches!(node.draft.verb, Verb::CreateOnce { .. });
        if meta.managed.is_empty() && !generated {
            self.machine.desk.take_over(desired, &found).await?;
        }
        if node.retained() && generated {
            // It may have been made by somebody who did not think of the day after.
            self.machine.desk.disown(desired, &found, self.owner.uid).await?;
        }
        let made;
        let desired = match node.draft.verb {
            // What we made was made without knowing what is there.
            Verb::Renew { .. } => {
                made = self.make(node, digest, Timestamp::now(), Some(&found)).await?;
                &made
            }
            _ => desired,
        };
        self.update(node, desired, digest, meta, "adopted", done).await
    }

    pub(super) async fn update(
        &self,
        node: &Node,
        desired: &Desired,
        digest: &str,
        meta: &Meta,
        why: &str,
        done: &mut NodeResult,
    ) -> Result<(), NodeError> {
        let attempt = Attempt(digest, Some(meta)).to_string();
        self.leave(node, desired, digest, &attempt)?;
        let written = match node.draft.verb {
            Verb::CreateOnce { .. } => self.machine.desk.mark(desired, meta.uid).await,
            _ => self.machine.desk.update(desired, meta.uid, node.draft.conflicts).await,
        };
        match written {
            Ok(()) => {
                tracing::info!(object = ?desired, why, "applied");
                *done = NodeResult::Applied;
                self.machine.memory.accepted(&self.owner.key, self.owner.uid, &node.draft.id);
                Ok(())
            }
            Err(error) if is_immutable(&desired.resource, error.failure()) => {
                self.immutable(node, desired, meta, error).await
            }
            Err(error) if is_another(error.failure()) => {
                Err(conflict("it was replaced by another of its name while we looked"))
            }
            Err(error) if matches!(error.failure(), Failure::Invalid(_)) && is_drift(digest, meta) => {
                self.make_way(node, desired, &attempt, meta, error, done).await
            }
            Err(error) => Err(self.refused(node, &attempt, error)),
        }
    }

    /// What was right before is refused now, so somebody has put something beside it that cannot be there: it gives way.
    pub(super) async fn make_way(
        &self,
        node: &Node,
        desired: &Desired,
        attempt: &str,
        meta: &Meta,
        refusal: ClientError,
        done: &mut NodeResult,
    ) -> Result<(), NodeError> {
        let Some(found) = self.machine.desk.look(&desired.resource, &desired.key).await? else {
            return Err(conflict("it went while we looked"));
        };
        if !self.machine.desk.make_way(desired, &found).await? {
            return Err(self.refused(node, attempt, refusal));
        }
        match self.machine.desk.update(desired, meta.uid, node.draft.conflicts).await {
            Ok(()) => {
                tracing::info!(object = ?desired, why = %refusal, "applied, after what was in its way");
                *done = NodeResult::Applied;
                self.machine.memory.accepted(&self.owner.key, self.owner.uid, &node.draft.id);
                Ok(())
            }
            Err(error) => Err(self.refused(node, attempt, error)),
        }
    }

    /// A field differs that cannot be changed.
    pub(super) async fn immutable(
        &self,
        node: &Node,
        desired: &Desired,
        meta: &Meta,
        error: ClientError,
    ) -> Result<(), NodeError> {
        match node.draft.immutable.unwrap_or_else(|| Immutable::of(&desired.resource)) {
            Immutable::Report => {
                let attempt = Attempt(&mark_of(desired), Some(meta)).to_string();
                let said = format!(
                    "{error}: it cannot be changed; undo the change, or delete the object to have it created anew"
                );
                let error = NodeError::terminal(Reason::Immutable, said);
                self.machine.memory.refused(
                    &self.owner.key,
                    self.owner.uid,
                    &node.draft.id,
                    &attempt,
                    &error,
                );
                Err(error)
            }
            Immutable::Recreate => {
                tracing::info!(object = ?desired, %error, "deleted, to be created anew: a field cannot be changed");
                self.machine.desk.delete_alone(&desired.resource, &desired.key, meta.uid).await?;
                Err(conflict("it is being replaced, because a field of it cannot be changed"))
            }
        }
    }

    pub(super) fn collision(&self, desired: &Desired, whose: &str) -> NodeError {
        let said = format!(
            "an object of that name exists and is not ours ({whose}): it is left alone. Delete or rename it, or let it be taken over \
             with the annotation {}={} on it",
            ask::ADOPT,
            self.owner.title()
        );
        tracing::debug!(object = ?desired, whose, "collision");
        NodeError::terminal(Reason::Collision, said)
    }

    /// Whether an object is data that an earlier owner of our name left behind.
    pub(super) fn take_back(&self, live: &Live) -> bool {
        let meta = &live.metadata;
        let kept_for_us =
            meta.annotations.get(mark::RETAIN).is_some_and(|title| **title == *self.owner.title());
        let former = meta.labels.get(label::OWNER).and_then(|uid| uid.parse::<Uid>().ok());
        kept_for_us
            && meta.controller().is_none()
            && meta.namespace() == self.owner.namespace()
            && former.is_none_or(|former| self.machine.owners.of_uid(&former.to_string()).is_empty())
    }

    pub(super) fn check(&self, node: &Node, desired: &Desired, kind: &dyn OpenKind) -> Visited {
        // The answer to our write is in the cache, unless it fell out of the selection.
        let Some(live) = kind.get(&desired.key) else {
            return Ok(Progress::Waiting(Wait::new("it has not been read back yet")));
        };
        let live = live.live();
        let readiness = match &node.draft.check {
            Some(check) => check(live),
            None => readiness::check(&desired.resource, live),
        };
        match readiness {
            Readiness::Ready => Ok(Progress::Ready),
            Readiness::Failed(why) => Err(NodeError::terminal(Reason::Failed, why)),
            Readiness::Waiting(why) => {
                let problem = self
                    .machine
                    .pods
                    .as_ref()
                    .and_then(|pods| pods::problem(pods, &desired.resource, &desired.key));
                Ok(Progress::Waiting(Wait::new(match problem {
                    Some(problem) => format!("{why} ({problem})"),
                    None => why,
                })))
            }
        }
    }
}

/// Why an object must be applied: `None` if nothing of it has changed since it was.
fn drift(desired: &Desired, digest: &str, live: &Live) -> Option<String> {
    let meta = &live.metadata;
    match meta.annotations.get(mark::DIGEST) {
        None => return Some("its digest is missing".into()),
        Some(known) if **known != *digest => return Some("the plan has changed".into()),
        Some(_) => {}
    }
    let api_version = desired.resource.api_version();
    let Some(entry) = meta.managed.iter().find(|entry| *entry.api_version == *api_version) else {
        return Some("it was written in another way".into());
    };
    ownership::lost(&desired.body, &entry.fields()).map(|path| format!("somebody changed {path}"))
}

/// Whether the object has had this very content before.
fn is_drift(digest: &str, meta: &Meta) -> bool {
    meta.annotations.get(mark::DIGEST).is_some_and(|known| **known == *digest)
}

/// Whose object it is, in a few words.
pub(super) fn describe(live: &Live) -> String {
    match live.metadata.controller() {
        Some(controller) => format!("controlled by {} {}", controller.kind, controller.name),
        None => "it has no controller".to_owned(),
    }
}
