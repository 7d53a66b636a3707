//! The end of an owner whose deletion has an order: the plan backwards.

use serde::de::IgnoredAny;
use windlass_graph::Progress;
use windlass_runtime::client::{Deletion, Failure, Patch};
use windlass_runtime::controller::{Error, Outcome};
use windlass_runtime::object::finalizers;

use super::builder::Machine;
use super::node::{Visited, being_deleted};
use super::owner::OwnerView;
use super::reconcile::{LOOK_AGAIN, NoPlan, Told, outcome_of, soonest};
use super::subject::Subject;
use crate::error::Reason;
use crate::inputs::{Given, Held};
use crate::names::FINALIZER;
use crate::plan::{Node, Verb};
use crate::prune::{self, Pruning};
use crate::seen::Wait;
use crate::status::Verdict;
use crate::step::{AnyStep, StepState};

impl Machine {
    pub(super) async fn tear_down(
        &self,
        subject: &dyn Subject,
        owner: &OwnerView,
        held: &Held,
    ) -> Result<Outcome, Error> {
        if !subject.meta().finalizers.iter().any(|finalizer| **finalizer == *FINALIZER) {
            // The garbage collector sees to it.
            return Ok(Outcome::Done);
        }
        let drawing = match self.draw(subject, owner, held).await {
            Ok(drawing) => drawing,
            Err(NoPlan::Unknown(why)) => {
                let verdict = Verdict::going(format!("deleting: {why}"));
                return self.wait(subject, owner, verdict, LOOK_AGAIN).await;
            }
            Err(NoPlan::Wrong(error)) => {
                let said = format!(
                    "deleting, but the plan cannot be drawn: {error}. Mend that; or, if nothing outside of the cluster has to be \
                     undone, take the finalizer {FINALIZER} away"
                );
                let verdict = Verdict::stopped(Reason::Deleting, said);
                let own = self.own_status(subject, owner, None, &verdict);
                self.tell(owner, &verdict, false, owner.generated(), own).await?;
                return Ok(Outcome::Done);
            }
        };
        let drawn = &drawing.drawn;
        // What is in no plan any more may depend on what is.
        let unplanned = self.inventory(owner, |resource, key| drawn.holds(resource, key));
        let unplanned = match prune::decide(unplanned, true) {
            Pruning::Delete(objects) => {
                for object in &objects {
                    self.desk.delete(&object.resource, &object.key, object.uid).await?;
                }
                self.inventory(owner, |resource, key| drawn.holds(resource, key))
            }
            Pruning::Wait(objects) => objects,
            Pruning::Nothing | Pruning::HeldBack(..) => Vec::new(),
        };
        if let Pruning::Delete(going) | Pruning::Wait(going) = prune::decide(unplanned, true) {
            // Its going wakes us.
            let verdict = Verdict::going(format!("deleting: {}", prune::going(&going)));
            let own = self.own_status(subject, owner, None, &verdict);
            self.tell(owner, &verdict, false, owner.generated(), own).await?;
            return Ok(Outcome::Done);
        }
        let report: Told =
            drawn.graph.run_reverse(self.concurrency, |node| self.take_down(owner, node)).await;
        let left = self.inventory(owner, |_, _| false);
        if report.is_ready() && prune::decide(left, true) == Pruning::Nothing {
            return self.release(subject, owner).await;
        }
        let verdict = Verdict::of_teardown(&report);
        if let Some(wait) = self.hold_back(owner, &verdict) {
            return Ok(soonest(outcome_of(&report)?, wait));
        }
        // Of a plan that goes, ready means gone: nothing is told of it as if it were there.
        let own = self.own_status(subject, owner, None, &verdict);
        self.tell(owner, &verdict, false, owner.generated(), own).await?;
        outcome_of(&report)
    }

    /// The last word: after it the owner is gone.
    async fn release(&self, subject: &dyn Subject, owner: &OwnerView) -> Result<Outcome, Error> {
        if let Some(patch) = finalizers::removal(subject.object_meta(), FINALIZER) {
            let owners = self.desk.client.objects_of::<IgnoredAny>(owner.resource.clone());
            match owners.patch(&owner.key, &Patch::Json(patch), self.name).await {
                Ok(_) => {}
                Err(error) if *error.failure() == Failure::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Outcome::Done)
    }

    async fn take_down(&self, owner: &OwnerView, node: &Node) -> Visited {
        match &node.draft.verb {
            Verb::Step(step) => undo(&**step).await,
            Verb::Input(Given::Missing(why)) => {
                // Only what comes after it could need it, and that is gone by now.
                tracing::debug!(why, "an input is missing");
                Ok(Progress::Ready)
            }
            Verb::Input(_) | Verb::Broken => Ok(Progress::Ready),
            Verb::Apply(_) | Verb::CreateOnce { .. } | Verb::Renew { .. } | Verb::Pending { .. } => {
                self.take_down_object(owner, node).await
            }
        }
    }

    async fn take_down_object(&self, owner: &OwnerView, node: &Node) -> Visited {
        let Some((resource, key)) = node.object() else { return Ok(Progress::Ready) };
        let kind = self.kind(resource)?;
        let Some(live) = kind.get(key) else { return Ok(Progress::Ready) };
        let meta = &live.live().metadata;
        if node.retained() || !owner.has(meta) {
            return Ok(Progress::Ready);
        }
        if meta.deleting {
            return Ok(being_deleted(live.live()));
        }
        tracing::info!(object = %format!("{} {key}", resource.kind), "deleted with its owner");
        Ok(match self.desk.delete(resource, key, meta.uid).await? {
            Deletion::Done => Progress::Ready,
            Deletion::Pending => Progress::Waiting(Wait::new("it is being deleted")),
        })
    }
}

async fn undo(step: &dyn AnyStep) -> Visited {
    if !step.undoes() {
        return Ok(Progress::Ready);
    }
    let why = match step.undo().await? {
        StepState::Done => return Ok(Progress::Ready),
        StepState::NotDone => "it is not undone yet".to_owned(),
        StepState::Waiting(why) => why,
    };
    Ok(Progress::Waiting(Wait { reason: Reason::Deleting, message: why, poll: Some(step.poll()) }))
}
