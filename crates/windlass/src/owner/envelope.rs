//! One reconcile of one owner, from top to bottom.
//!
//! Every step is a place where the process may die. What is done is done; the next reconcile reads what is true and goes on.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::IgnoredAny;
use windlass_graph::Outcome as NodeOutcome;
use windlass_runtime::client::Patch;
use windlass_runtime::controller::{Class, Error, Outcome, Reconcile};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::object::finalizers;

use super::debounce::Debounce;
use super::handle::{OwnerHandle, Owners};
use super::state::PlanState;
use super::status::{PassReport, Verdict};
use crate::apply::{Applier, Pruned, Report, TornDown, retry_after};
use crate::error::{NodeError, PlanError, Reason};
use crate::names::{FINALIZER, ask};
use crate::needs::{Pass, PassEnd};
use crate::plan::Kinds;
use crate::plan::draw::{self, NoPlan};
use crate::plan::drawn::Drawn;
use crate::plan::owner::OwnerView;

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
    async fn reconcile(&self, key: ObjectKey) -> Result<Outcome, Error> {
        let Some(handle) = self.owners.get(&key) else {
            self.applier.history.forget(&key);
            self.applier.needs.forget(&key);
            self.debounce.forget(&key);
            return Ok(Outcome::Done);
        };
        let handle = &*handle.map_err(Error::terminal)?;
        let owner = handle.view().map_err(Error::terminal)?;
        if owner.annotation(self.class_annotation) != self.class.as_deref() {
            // It may have been ours a moment ago.
            self.applier.needs.forget(&key);
            return Ok(Outcome::Done);
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
    ) -> Result<Outcome, Error> {
        if handle.meta().deleting {
            return self.delete(handle, owner, pass, end).await;
        }
        if owner.is_paused() {
            let message = format!("paused by the annotation {}: take it away to go on", ask::PAUSED);
            return self.stop(handle, owner, Verdict::stopped(Reason::Paused, message)).await;
        }
        if let Some(why) = handle.why_wait() {
            return self.wait(handle, owner, Verdict::waiting(why)).await;
        }
        self.add_finalizer(handle, owner).await?;
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
        self.applier.kinds_listed().await;
        let complete = drawn.is_complete();
        *end = if complete { PassEnd::Complete } else { PassEnd::Incomplete };
        let applied = self.applier.apply(owner, pass, &drawn).await;

        let mut verdict = Verdict::of(&applied.report);
        let pruned = if complete { self.prune(owner, &drawn, &mut verdict).await } else { Ok(false) };
        let own = self.own_status(handle, owner, Some(&applied.report), &verdict);
        let delay = self.debounce.delay(owner, &verdict);
        if delay.is_none() {
            let complete = *pruned.as_ref().unwrap_or(&false);
            let (generated, advice) = (applied.generated, drawn.advice);
            self.write_status(owner, PassReport { verdict, complete, generated, own, advice }).await?;
        }
        pruned?;
        let outcome = outcome_of(&applied.report)?;
        let outcome = applied.due.map_or(outcome, |due| soonest(outcome, until(due, Timestamp::now())));
        Ok(delay.map_or(outcome, |delay| soonest(outcome, delay)))
    }

    /// The plan of an owner. Pure but for reading what it asks for.
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
        Ok(drawn)
    }

    /// Puts the finalizer on the owner before anything is done that needs it.
    async fn add_finalizer(&self, handle: &dyn OwnerHandle, owner: &OwnerView) -> Result<(), Error> {
        if !handle.is_deleted_in_order() {
            return Ok(());
        }
        let Some(patch) = finalizers::addition(handle.object_meta(), FINALIZER)? else {
            return Ok(());
        };
        let owners = self.applier.writer.client.objects_of::<IgnoredAny>(owner.resource.clone());
        owners.patch(&owner.key, &Patch::Json(patch), self.applier.name).await?;
        Ok(())
    }

    /// Prunes what has left a complete plan; returns whether nothing of it is left.
    async fn prune(&self, owner: &OwnerView, drawn: &Drawn, verdict: &mut Verdict) -> Result<bool, Error> {
        match self.applier.prune(owner, drawn).await? {
            Pruned::Done => Ok(true),
            Pruned::Deleted => Ok(false),
            Pruned::Going(what) => {
                verdict.progressing = true;
                verdict.message = format!("{}; {what}", verdict.message);
                Ok(false)
            }
            Pruned::HeldBack(why) => {
                verdict.degraded = Some((Reason::PruneHeldBack, why));
                Ok(true)
            }
        }
    }

    /// Takes an owner down that is being deleted.
    async fn delete(
        &self,
        handle: &dyn OwnerHandle,
        owner: &OwnerView,
        pass: &Pass<'_>,
        end: &mut PassEnd,
    ) -> Result<Outcome, Error> {
        if !handle.meta().finalizers.iter().any(|finalizer| **finalizer == *FINALIZER) {
            // The garbage collector sees to it.
            return Ok(Outcome::Done);
        }
        let drawn = match self.draw(handle, owner, pass).await {
            Ok(drawn) => drawn,
            Err(no_plan) => {
                *end = no_plan.end();
                return match no_plan {
                    NoPlan::Unknown(why) | NoPlan::OutOfRounds(why) => {
                        self.wait(handle, owner, Verdict::going(format!("deleting: {why}"))).await
                    }
                    NoPlan::Wrong(error) => {
                        let message = format!(
                            "deleting, but the plan cannot be drawn: {error}. Mend that; or, if nothing outside of the cluster has \
                             to be undone, take the finalizer {FINALIZER} away"
                        );
                        self.stop(handle, owner, Verdict::stopped(Reason::Deleting, message)).await
                    }
                };
            }
        };
        *end = if drawn.is_complete() { PassEnd::Complete } else { PassEnd::Incomplete };
        let report = match self.applier.tear_down(owner, pass, &drawn).await? {
            TornDown::Gone => return self.release(handle, owner).await,
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

    /// Takes the finalizer away: after it the owner is gone.
    async fn release(&self, handle: &dyn OwnerHandle, owner: &OwnerView) -> Result<Outcome, Error> {
        if let Some(patch) = finalizers::removal(handle.object_meta(), FINALIZER) {
            let owners = self.applier.writer.client.objects_of::<IgnoredAny>(owner.resource.clone());
            match owners.patch(&owner.key, &Patch::Json(patch), self.applier.name).await {
                Ok(_) => {}
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Outcome::Done)
    }

    /// Writes why there is no plan yet, if that has lasted. A watch tells when it changes.
    async fn wait(
        &self,
        handle: &dyn OwnerHandle,
        owner: &OwnerView,
        verdict: Verdict,
    ) -> Result<Outcome, Error> {
        match self.debounce.delay(owner, &verdict) {
            Some(delay) => Ok(Outcome::After(delay)),
            None => self.stop(handle, owner, verdict).await,
        }
    }

    /// Writes a verdict that follows from no run of a plan.
    async fn stop(
        &self,
        handle: &dyn OwnerHandle,
        owner: &OwnerView,
        verdict: Verdict,
    ) -> Result<Outcome, Error> {
        let own = self.own_status(handle, owner, None, &verdict);
        let (generated, advice) = (owner.generated(), Vec::new());
        self.write_status(owner, PassReport { verdict, complete: false, generated, own, advice }).await?;
        Ok(Outcome::Done)
    }

    /// The kind's own fields. They are part of every status that is written: what an apply leaves out, it takes away.
    fn own_status(
        &self,
        handle: &dyn OwnerHandle,
        owner: &OwnerView,
        report: Option<&Report>,
        verdict: &Verdict,
    ) -> Option<serde_json::Value> {
        let (kinds, namespace) = (&*self.applier.kinds, owner.namespace());
        handle.status(&PlanState { report, failed: verdict.failed, kinds, namespace })
    }
}

/// A plan that only a finalizer can clean up must not be begun without one.
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

/// The time to wait for something that is due: an hour at most, since clocks are set right and timers do not follow them. A
/// reconcile that finds nothing to do costs no request.
fn until(due: Timestamp, now: Timestamp) -> Duration {
    let left = Duration::try_from(now.duration_until(due)).unwrap_or_default();
    left.clamp(Duration::from_secs(1), Duration::from_hours(1))
}

/// The outcome, but not later than after `wait`.
fn soonest(outcome: Outcome, wait: Duration) -> Outcome {
    match outcome {
        Outcome::After(poll) => Outcome::After(wait.min(poll)),
        Outcome::Done => Outcome::After(wait),
    }
}

/// When the owner is to be reconciled again, though nothing may have changed.
fn outcome_of(report: &Report) -> Result<Outcome, Error> {
    let mut worst: Option<(Class, String)> = None;
    let mut poll: Option<Duration> = None;
    let mut sooner = |wait: Duration| poll = Some(poll.map_or(wait, |poll| poll.min(wait)));
    for node in report.nodes() {
        match node.outcome() {
            NodeOutcome::Waiting(wait) => wait.poll.into_iter().for_each(&mut sooner),
            NodeOutcome::Failed(failure) => {
                failure.error().and_then(retry_after).into_iter().for_each(&mut sooner);
                let class = failure.error().map_or(Class::Transient, NodeError::class);
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
        Some((_, message)) => Err(Error::transient(message)),
        None => Ok(poll.map_or(Outcome::Done, Outcome::After)),
    }
}
