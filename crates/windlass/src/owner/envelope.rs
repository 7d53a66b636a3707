//! One reconcile of one owner, from top to bottom.
//!
//! The process may die at every step. Completed steps stay done; the next reconcile reads the present state
//! and goes on.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::IgnoredAny;
use windlass_graph::Outcome as NodeOutcome;
use windlass_runtime::client::Patch;
use windlass_runtime::controller::{Class, Error, Reconcile, Requeue};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::object::finalizers;

use super::debounce::Debounce;
use super::handle::{OwnerHandle, Owners};
use super::pause::Pause;
use super::state::PlanState;
use super::status::{PassReport, PausedPass, Verdict};
use super::undecoded::UndecodedOwner;
use crate::apply::{Applier, Pruned, Report, TornDown, retry_after};
use crate::error::{NodeError, PlanError, Reason};
use crate::names::{FINALIZER, UNDO_FINALIZER};
use crate::needs::{Pass, PassEnd};
use crate::plan::Kinds;
use crate::plan::draw::{self, NoPlan};
use crate::plan::drawn::Drawn;
use crate::plan::owner::OwnerView;

/// The time to wait for the watch of owners if it is behind the server. The watch event wakes the owner
/// earlier if it arrives.
const OUTDATED: Duration = Duration::from_secs(1);

/// Reconciles the owners of one controller.
pub(crate) struct Envelope {
    pub(crate) owners: Arc<dyn Owners>,
    /// The kinds that the controller declared.
    pub(crate) kinds: Kinds,
    pub(crate) applier: Applier,
    pub(crate) debounce: Debounce,
    /// The class of owners that this instance is responsible for, and the annotation that names it.
    pub(crate) class: Option<String>,
    pub(crate) class_annotation: &'static str,
}

impl Reconcile for Envelope {
    async fn reconcile(&self, key: ObjectKey) -> Result<Requeue, Error> {
        let Some(handle) = self.owners.get(&key) else {
            self.applier.history.forget(&key);
            self.applier.needs.forget(&key);
            self.debounce.forget(&key);
            self.owners.forget(&key);
            self.applier.metrics.owner_gone(self.applier.name, &key);
            return Ok(Requeue::OnChange);
        };
        // An owner that cannot be decoded has no plan: its status says why, and it can be deleted.
        let handle = &*match handle {
            Ok(handle) => handle,
            Err(unreadable) => UndecodedOwner::of(unreadable, self.applier.name).map_err(Error::terminal)?,
        };
        let owner = handle.view().map_err(Error::terminal)?;
        if owner.annotation(self.class_annotation) != self.class.as_deref() {
            // This instance may have been responsible for it before.
            self.applier.needs.forget(&key);
            self.owners.forget(&key);
            self.applier.metrics.owner_gone(self.applier.name, &key);
            return Ok(Requeue::OnChange);
        }
        let pass = Pass::begin(&self.applier.needs, &key);
        let mut end = PassEnd::Complete;
        let outcome = self.bring(handle, &owner, &pass, &mut end).await;
        pass.end(end);
        outcome
    }
}

impl Envelope {
    async fn bring(
        &self,
        handle: &dyn OwnerHandle,
        owner: &OwnerView,
        pass: &Pass<'_>,
        end: &mut PassEnd,
    ) -> Result<Requeue, Error> {
        if handle.meta().deleting {
            return self.delete(handle, owner, pass, end).await;
        }
        if let Some(pause) = Pause::of(owner, Timestamp::now()) {
            return self.observe(handle, owner, pass, end, &pause).await;
        }
        if has_former_finalizer(handle) {
            self.remove_finalizers(handle, owner).await?;
        }
        if let Some(why) = handle.why_wait() {
            return self.wait(handle, owner, Verdict::waiting(why)).await;
        }
        let drawn = match self.draw(handle, owner, pass).await {
            Ok(drawn) => drawn,
            Err(no_plan) => {
                *end = no_plan.end();
                return match no_plan {
                    NoPlan::Unknown(why) | NoPlan::OutOfRounds(why) => {
                        self.wait(handle, owner, Verdict::waiting(why)).await
                    }
                    NoPlan::Wrong(error) => {
                        let verdict = Verdict::stopped(Reason::DrawFailed, error.to_string());
                        self.stop(handle, owner, verdict).await
                    }
                };
            }
        };
        // Only after there is a plan: an owner with an error in its plan can be deleted without the operator.
        self.add_finalizers(handle, owner, &drawn).await?;
        self.applier.kinds_listed().await;
        let complete = drawn.is_complete();
        *end = if complete { PassEnd::Complete } else { PassEnd::Incomplete };
        let applied = self.applier.apply(owner, pass, &drawn).await;

        let mut verdict = Verdict::of(&applied.report);
        let pruned = if complete {
            self.prune(owner, &drawn, &applied.report, &mut verdict).await
        } else {
            Ok(Some(false))
        };
        if matches!(pruned, Ok(None)) {
            // The watch of owners is late, and wakes the owner when it has caught up.
            return Ok(Requeue::After(OUTDATED));
        }
        let own = self.own_status(handle, owner, Some(&applied.report), &verdict);
        let delay = self.debounce.delay(owner, &verdict);
        // Before the first decision of a process the status is that of the process before.
        if delay.is_none() && (verdict.failed || !handle.is_undecided()) {
            let complete = matches!(pruned, Ok(Some(true)));
            let (generated, advice) = (applied.generated, drawn.advice);
            self.write_status(owner, PassReport { verdict, complete, generated, own, advice, paused: None })
                .await?;
        }
        pruned?;
        let outcome = outcome_of(&applied.report)?;
        let outcome = applied.due.map_or(outcome, |due| soonest(outcome, until(due, Timestamp::now())));
        Ok(delay.into_iter().chain(handle.due()).fold(outcome, soonest))
    }

    /// Observes a paused owner: only its status is written.
    async fn observe(
        &self,
        handle: &dyn OwnerHandle,
        owner: &OwnerView,
        pass: &Pass<'_>,
        end: &mut PassEnd,
        pause: &Pause,
    ) -> Result<Requeue, Error> {
        // The watches of its needs are kept as long as the pause lasts.
        *end = PassEnd::Incomplete;
        let (verdict, applied, advice) = match self.draw(handle, owner, pass).await {
            Ok(drawn) => {
                self.applier.kinds_listed().await;
                let applied = self.applier.observe(owner, pass, &drawn).await;
                (Verdict::of(&applied.report), Some(applied), drawn.advice)
            }
            Err(NoPlan::Unknown(why) | NoPlan::OutOfRounds(why)) => (Verdict::waiting(why), None, Vec::new()),
            Err(NoPlan::Wrong(error)) => {
                (Verdict::stopped(Reason::DrawFailed, error.to_string()), None, Vec::new())
            }
        };
        let ends = pause.until.map(|until_then| until(until_then, Timestamp::now()));
        if let Some(delay) = self.debounce.delay(owner, &verdict) {
            return Ok(Requeue::After(ends.map_or(delay, |ends| ends.min(delay))));
        }
        let own = self.own_status(handle, owner, applied.as_ref().map(|applied| &applied.report), &verdict);
        let differing = applied.as_ref().map_or(0, |applied| applied.differing);
        let generated = applied.map_or_else(|| owner.generated(), |applied| applied.generated);
        let paused = Some(PausedPass { message: pause.message(differing), differs: differing > 0 });
        let report = PassReport { verdict, complete: false, generated, own, advice, paused };
        self.write_status(owner, report).await?;
        Ok(ends.map_or(Requeue::OnChange, Requeue::After))
    }

    /// Draws the plan of an owner. Pure, except for reading the objects that it asks for.
    async fn draw(
        &self,
        handle: &dyn OwnerHandle,
        owner: &OwnerView,
        pass: &Pass<'_>,
    ) -> Result<Drawn, NoPlan> {
        let namespace = owner.namespace();
        let drawn =
            draw::in_rounds(pass, &self.kinds, namespace, &|needs, plan| handle.draw(needs, plan)).await?;
        needs_finalizer(handle, owner, &drawn)?;
        handle.drawn();
        Ok(drawn)
    }

    /// Adds the finalizers to the owner before anything is done that needs them.
    async fn add_finalizers(
        &self,
        handle: &dyn OwnerHandle,
        owner: &OwnerView,
        drawn: &Drawn,
    ) -> Result<(), Error> {
        if !handle.is_deleted_in_order() {
            return Ok(());
        }
        let undoes = drawn.places().any(|place| place.node.undoes());
        let wanted = if undoes { &[FINALIZER, UNDO_FINALIZER][..] } else { &[FINALIZER] };
        let Some(patch) = finalizers::additions(handle.object_meta(), wanted)? else {
            return Ok(());
        };
        let owners = self.applier.writer.client.objects_of::<IgnoredAny>(owner.resource.clone());
        owners.patch(&owner.key, &Patch::Json(patch), self.applier.name).await?;
        Ok(())
    }

    /// Deletes the objects that have left a complete plan. Returns whether none of them is left; `None` if
    /// the owner has changed since it was read.
    async fn prune(
        &self,
        owner: &OwnerView,
        drawn: &Drawn,
        report: &Report,
        verdict: &mut Verdict,
    ) -> Result<Option<bool>, Error> {
        match self.applier.prune(owner, drawn, report).await? {
            Pruned::Outdated => Ok(None),
            Pruned::Done => Ok(Some(true)),
            Pruned::Deleted => Ok(Some(false)),
            Pruned::Going(what) => {
                verdict.progressing = true;
                verdict.message = format!("{}; {what}", verdict.message);
                Ok(Some(false))
            }
            Pruned::Held(objects) => {
                verdict.hold(&objects);
                Ok(Some(false))
            }
            Pruned::HeldBack(why) => {
                verdict.degraded = Some((Reason::PruneHeldBack, why));
                Ok(Some(true))
            }
        }
    }

    /// Handles an owner that is being deleted.
    async fn delete(
        &self,
        handle: &dyn OwnerHandle,
        owner: &OwnerView,
        pass: &Pass<'_>,
        end: &mut PassEnd,
    ) -> Result<Requeue, Error> {
        self.owners.forget(&owner.key);
        if !handle.has_finalizer(FINALIZER) {
            // The garbage collector deletes the objects.
            return Ok(Requeue::OnChange);
        }
        if has_former_finalizer(handle) {
            self.remove_finalizers(handle, owner).await?;
            return Ok(Requeue::OnChange);
        }
        self.applier.kinds_listed().await;
        if let Some(unlisted) = self.applier.unlisted() {
            // An object that may exist without being known must not be taken for deleted.
            // Nothing wakes the owner if the list turns out to be empty.
            let outcome = self.wait(handle, owner, Verdict::going(format!("deleting: {unlisted}"))).await?;
            return Ok(soonest(outcome, OUTDATED));
        }
        if !self.applier.is_going(owner).await? {
            return Ok(Requeue::After(OUTDATED));
        }
        let drawn = if handle.is_torn_down_by_inventory() {
            Err(NoPlan::Unknown("the plan is not needed".to_owned()))
        } else {
            self.draw(handle, owner, pass).await
        };
        let torn_down = match drawn {
            Ok(drawn) => {
                *end = if drawn.is_complete() { PassEnd::Complete } else { PassEnd::Incomplete };
                self.applier.tear_down(owner, pass, &drawn).await?
            }
            Err(no_plan) => {
                *end = no_plan.end();
                if handle.has_finalizer(UNDO_FINALIZER) {
                    return self.cannot_undo(handle, owner, no_plan).await;
                }
                self.applier.tear_down_inventory(owner).await?
            }
        };
        let report = match torn_down {
            TornDown::Gone => {
                self.remove_finalizers(handle, owner).await?;
                return Ok(Requeue::OnChange);
            }
            TornDown::Going(what) => {
                return self.stop(handle, owner, Verdict::going(format!("deleting: {what}"))).await;
            }
            TornDown::Unfinished(report) => report,
        };
        let verdict = Verdict::of_teardown(&report);
        if let Some(delay) = self.debounce.delay(owner, &verdict) {
            return Ok(soonest(outcome_of(&report)?, delay));
        }
        // The report of a teardown is not shown: its nodes are ready when they are gone.
        let _ = self.stop(handle, owner, verdict).await?;
        outcome_of(&report)
    }

    /// Reports why an owner cannot be deleted while its plan is needed to undo effects outside of the
    /// cluster.
    async fn cannot_undo(
        &self,
        handle: &dyn OwnerHandle,
        owner: &OwnerView,
        no_plan: NoPlan,
    ) -> Result<Requeue, Error> {
        match no_plan {
            NoPlan::Unknown(why) | NoPlan::OutOfRounds(why) => {
                self.wait(handle, owner, Verdict::going(format!("deleting: {why}"))).await
            }
            NoPlan::Wrong(error) => {
                let message = format!(
                    "deleting, but the plan cannot be drawn: {error}. Correct that; or, if nothing outside of the cluster has \
                     to be undone, remove the finalizers {FINALIZER} and {UNDO_FINALIZER}"
                );
                self.stop(handle, owner, Verdict::stopped(Reason::Deleting, message)).await
            }
        }
    }

    /// Removes our finalizers. An owner that is being deleted is gone afterwards, unless others hold it.
    async fn remove_finalizers(&self, handle: &dyn OwnerHandle, owner: &OwnerView) -> Result<(), Error> {
        let removals = finalizers::removals(handle.object_meta(), &[FINALIZER, UNDO_FINALIZER]);
        let Some(patch) = removals else { return Ok(()) };
        let owners = self.applier.writer.client.objects_of::<IgnoredAny>(owner.resource.clone());
        match owners.patch(&owner.key, &Patch::Json(patch), self.applier.name).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the reason why there is no plan yet, if it persists. A watch reports the change.
    async fn wait(
        &self,
        handle: &dyn OwnerHandle,
        owner: &OwnerView,
        verdict: Verdict,
    ) -> Result<Requeue, Error> {
        match self.debounce.delay(owner, &verdict) {
            Some(delay) => Ok(Requeue::After(delay)),
            None => self.stop(handle, owner, verdict).await,
        }
    }

    /// Writes a verdict that does not follow from a run of a plan.
    async fn stop(
        &self,
        handle: &dyn OwnerHandle,
        owner: &OwnerView,
        verdict: Verdict,
    ) -> Result<Requeue, Error> {
        let own = self.own_status(handle, owner, None, &verdict);
        let (generated, advice) = (owner.generated(), Vec::new());
        self.write_status(
            owner,
            PassReport { verdict, complete: false, generated, own, advice, paused: None },
        )
        .await?;
        Ok(Requeue::OnChange)
    }

    /// Returns the kind's own fields. They are part of every status that is written, because an apply removes
    /// the fields that it leaves out.
    fn own_status(
        &self,
        handle: &dyn OwnerHandle,
        owner: &OwnerView,
        report: Option<&Report>,
        verdict: &Verdict,
    ) -> Option<serde_json::Value> {
        let (kinds, namespace) = (&*self.applier.kinds, owner.namespace());
        let (failed, stalled) = (verdict.failed, verdict.is_stalled());
        handle.status(&PlanState { report, failed, stalled, kinds, namespace })
    }
}

/// Returns whether an owner carries the finalizer of a former version of the operator, which nothing needs
/// any more. Effects outside of the cluster would still have to be undone.
fn has_former_finalizer(handle: &dyn OwnerHandle) -> bool {
    handle.was_deleted_in_order() && handle.has_finalizer(FINALIZER) && !handle.has_finalizer(UNDO_FINALIZER)
}

/// Fails if a plan needs a finalizer to be cleaned up and the deletion is not ordered.
fn needs_finalizer(handle: &dyn OwnerHandle, owner: &OwnerView, drawn: &Drawn) -> Result<(), PlanError> {
    if handle.is_deleted_in_order() {
        return Ok(());
    }
    let why = drawn.places().find_map(|place| {
        if place.node.undoes() {
            return Some(format!("{} has to be undone", place.id));
        }
        let (_, key) = place.object()?;
        let stays = place.retained() || owner.can_be_referred_to_from(key.namespace());
        let kind = &owner.resource.kind;
        (!stays).then(|| format!("{} cannot be owned by a {kind} of another scope or namespace", place.id))
    });
    match why {
        Some(why) => Err(PlanError::new(format!("{why}: let Controls::DELETION be Deletion::Ordered"))),
        None => Ok(()),
    }
}

/// Returns the time to wait until a due time: an hour at most, since timers do not follow corrections of the
/// clock. A reconcile that finds nothing to do costs no request.
fn until(due: Timestamp, now: Timestamp) -> Duration {
    let left = Duration::try_from(now.duration_until(due)).unwrap_or_default();
    left.clamp(Duration::from_secs(1), Duration::from_hours(1))
}

/// Returns the outcome, but not later than after `wait`.
fn soonest(outcome: Requeue, wait: Duration) -> Requeue {
    match outcome {
        Requeue::After(poll) => Requeue::After(wait.min(poll)),
        Requeue::OnChange => Requeue::After(wait),
    }
}

/// Returns when the owner is reconciled again even if nothing has changed.
fn outcome_of(report: &Report) -> Result<Requeue, Error> {
    let mut worst: Option<(Class, String)> = None;
    let mut refused = false;
    let mut poll: Option<Duration> = None;
    let mut sooner = |wait: Duration| poll = Some(poll.map_or(wait, |poll| poll.min(wait)));
    for node in report.nodes() {
        match node.outcome() {
            NodeOutcome::Waiting(wait) => wait.poll.into_iter().for_each(&mut sooner),
            NodeOutcome::Failed(failure) => {
                failure.error().and_then(retry_after).into_iter().for_each(&mut sooner);
                let class = failure.error().map_or(Class::Transient, NodeError::class);
                let reason = failure.error().map(NodeError::reason);
                refused |= matches!(reason, Some(Reason::Forbidden | Reason::Unavailable));
                let graver = match (&worst, class) {
                    (_, Class::Terminal) => false,
                    (None, _) | (Some((Class::Conflict, _)), Class::Transient) => true,
                    _ => false,
                };
                if graver {
                    worst = Some((class, format!("{}: {failure}", node.id())));
                }
            }
            _ => {}
        }
    }
    match worst {
        Some((Class::Conflict, message)) => Err(Error::conflict(message)),
        // No watch reports that a right was granted, or that the server answers again.
        Some((_, message)) if refused => Err(Error::transient(message).refused()),
        Some((_, message)) => Err(Error::transient(message)),
        None => Ok(poll.map_or(Requeue::OnChange, Requeue::After)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seam_low_an_owner_that_lacks_a_right_is_tried_again_within_a_minute() {
        let longest = |reason| {
            let failed = NodeOutcome::from(Err(NodeError::transient(reason, "no")));
            let report = Report::from_steps([("Secret key", failed, Some(Duration::ZERO))]).unwrap();
            outcome_of(&report).unwrap_err().longest()
        };
        assert_eq!(longest(Reason::Forbidden), Some(Duration::from_mins(1)));
        assert_eq!(longest(Reason::Unavailable), Some(Duration::from_mins(1)));
        assert_eq!(longest(Reason::Failed), None, "the step decides");
    }
}
