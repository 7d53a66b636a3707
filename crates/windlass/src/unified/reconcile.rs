//! From a key to a cluster that is as it should be.

use std::time::Duration;

use jiff::Timestamp;
use serde::de::IgnoredAny;
use windlass_graph::{Outcome as Graphed, Report};
use windlass_runtime::client::Patch;
use windlass_runtime::controller::{Class, Error, Outcome, Reconcile};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::object::finalizers;

use super::builder::Machine;
use super::node::{RETRY, Visitor};
use super::owner::OwnerView;
use super::subject::Subject;
use crate::error::{DrawError, NodeError, Reason};
use crate::inputs::{Held, Inputs, Resolved, Unknown};
use crate::memory::UNEXPLAINED;
use crate::names::{FINALIZER, ask};
use crate::plan::{Drawn, Plan, Verb};
use crate::prune::{self, Belonging, Pruning};
use crate::seen::{Seen, Wait};
use crate::status::{self, Verdict};

/// Reconciles the owners of a blueprint.
pub(crate) struct Reconciler(pub(crate) Machine);

impl Reconcile for Reconciler {
    async fn reconcile(&self, key: ObjectKey) -> Result<Outcome, Error> {
        self.0.reconcile(key).await
    }
}

pub(super) type Told = Report<NodeError, Wait>;

/// What a plan was drawn from, and what came of it.
pub(super) struct Drawing {
    pub(super) drawn: Drawn,
    /// Every input was there.
    pub(super) whole: bool,
}

/// Why there is no plan.
pub(super) enum NoPlan {
    /// It cannot be drawn.
    Wrong(DrawError),
    /// What it is drawn from is not known yet: why.
    Unknown(String),
}

impl From<DrawError> for NoPlan {
    fn from(error: DrawError) -> Self {
        Self::Wrong(error)
    }
}

impl From<Unknown> for NoPlan {
    fn from(Unknown(why): Unknown) -> Self {
        Self::Unknown(why)
    }
}

/// What follows when it was not known what is there: another look, since nobody tells when a first list has ended without the object.
pub(super) const LOOK_AGAIN: Outcome = Outcome::After(Duration::from_secs(5));

impl Machine {
    pub(super) async fn reconcile(&self, key: ObjectKey) -> Result<Outcome, Error> {
        let Some(subject) = self.owners.get(&key) else {
            self.memory.forget(&key);
            self.registry.keep(&key, Held::default());
            return Ok(Outcome::Done);
        };
        let subject = &*subject.map_err(Error::terminal)?;
        let owner = subject.view().map_err(Error::terminal)?;
        if owner.annotation(self.class_annotation) != self.class.as_deref() {
            // It may have been ours a moment ago.
            self.registry.keep(&key, Held::default());
            return Ok(Outcome::Done);
        }
        let held = Held::default();
        let outcome = self.bring(subject, &owner, &held).await;
        self.registry.keep(&key, held);
        outcome
    }

    async fn bring(&self, subject: &dyn Subject, owner: &OwnerView, held: &Held) -> Result<Outcome, Error> {
        if subject.meta().deleting {
            return self.tear_down(subject, owner, held).await;
        }
        if owner.is_paused() {
            let said = format!("paused by the annotation {}: take it away to go on", ask::PAUSED);
            let verdict = Verdict::stopped(Reason::Paused, said);
            let own = self.own_status(subject, owner, None, &verdict);
            self.tell(owner, &verdict, false, owner.generated(), own).await?;
            return Ok(Outcome::Done);
        }
        if let Some(why) = subject.awaits() {
            return self.wait(subject, owner, Verdict::waiting(why), Outcome::Done).await;
        }
        self.hold(subject, owner).await?;
        let drawing = match self.draw(subject, owner, held).await {
            Ok(drawing) => drawing,
            Err(NoPlan::Unknown(why)) => {
                return self.wait(subject, owner, Verdict::waiting(why), LOOK_AGAIN).await;
            }
            Err(NoPlan::Wrong(error)) => {
                let verdict = Verdict::stopped(Reason::DrawFailed, error.to_string());
                let own = self.own_status(subject, owner, None, &verdict);
                self.tell(owner, &verdict, false, owner.generated(), own).await?;
                return Ok(Outcome::Done);
            }
        };
        let visitor = Visitor::new(self, owner, held, &drawing.drawn);
        let report: Told = drawing.drawn.graph.run(self.concurrency, |node| visitor.visit(node)).await;

        let mut verdict = Verdict::of(&report);
        let pruned =
            if drawing.whole { self.prune(owner, &drawing.drawn, &mut verdict).await } else { Ok(false) };
        let complete = *pruned.as_ref().unwrap_or(&false);
        let own = self.own_status(subject, owner, Some(&report), &verdict);
        let own = status::advised(own, &drawing.drawn.advice);
        let due = visitor.again.into_inner();
        let generated = visitor.generated.into_inner();
        let hold_back = self.hold_back(owner, &verdict);
        if hold_back.is_none() {
            self.tell(owner, &verdict, complete, generated, own).await?;
        }
        pruned?;
        let outcome = outcome_of(&report)?;
        let outcome = due.map_or(outcome, |due| soonest(outcome, until(due, Timestamp::now())));
        Ok(hold_back.map_or(outcome, |wait| soonest(outcome, wait)))
    }

    /// Says why there is no plan yet, if that has lasted.
    pub(super) async fn wait(
        &self,
        subject: &dyn Subject,
        owner: &OwnerView,
        verdict: Verdict,
        then: Outcome,
    ) -> Result<Outcome, Error> {
        if let Some(wait) = self.hold_back(owner, &verdict) {
            return Ok(Outcome::After(wait));
        }
        let own = self.own_status(subject, owner, None, &verdict);
        self.tell(owner, &verdict, false, owner.generated(), own).await?;
        Ok(then)
    }

    /// The plan of an owner. Pure but for reading the inputs.
    pub(super) async fn draw(
        &self,
        subject: &dyn Subject,
        owner: &OwnerView,
        held: &Held,
    ) -> Result<Drawing, NoPlan> {
        let mut inputs = Inputs::new(owner.namespace());
        subject.inputs(&mut inputs);
        self.are_declared(&inputs)?;
        let mut resolved = self.registry.resolve(&owner.key, inputs, held).await?;
        let mut further = Inputs::new(owner.namespace());
        let so_far = Resolved::place(resolved.clone(), owner.namespace(), &mut Plan::new(owner.namespace()));
        subject.further_inputs(&so_far, &mut further);
        self.are_declared(&further)?;
        resolved.extend(self.registry.resolve(&owner.key, further, held).await?);
        let mut plan = Plan::new(owner.namespace());
        let given = Resolved::place(resolved, owner.namespace(), &mut plan);
        subject.draw(&given, &mut plan)?;
        let drawn = plan.finish()?;
        needs_finalizer(subject, owner, &drawn)?;
        let missing = |node: &crate::plan::Node| {
            matches!(&node.draft.verb, Verb::Input(crate::inputs::Given::Missing(_)))
        };
        let whole = !drawn.nodes().any(missing);
        Ok(Drawing { drawn, whole })
    }

    fn are_declared(&self, inputs: &Inputs) -> Result<(), DrawError> {
        let undeclared = inputs.wanted.iter().find(|wanted| !self.required.contains(wanted.resource()));
        match undeclared {
            Some(undeclared) => Err(DrawError::new(format!(
                "the kind of {} is not declared: add `kinds.requires::<{}>()` to Blueprint::kinds",
                undeclared.id,
                undeclared.resource().kind
            ))),
            None => Ok(()),
        }
    }

    /// Puts the finalizer on the owner before anything is done that needs it.
    async fn hold(&self, subject: &dyn Subject, owner: &OwnerView) -> Result<(), Error> {
        if !subject.finalizes() {
            return Ok(());
        }
        let Some(patch) = finalizers::addition(subject.object_meta(), FINALIZER)? else {
            return Ok(());
        };
        let owners = self.desk.client.objects_of::<IgnoredAny>(owner.resource.clone());
        owners.patch(&owner.key, &Patch::Json(patch), self.name).await?;
        Ok(())
    }

    /// Deletes what has left the plan; returns whether nothing of it is left.
    async fn prune(&self, owner: &OwnerView, drawn: &Drawn, verdict: &mut Verdict) -> Result<bool, Error> {
        let inventory = self.inventory(owner, |resource, key| drawn.holds(resource, key));
        match prune::decide(inventory, owner.explains_pruning()) {
            Pruning::Nothing => Ok(true),
            Pruning::Delete(objects) => {
                for object in &objects {
                    tracing::info!(object = %format!("{} {}", object.resource.kind, object.key), "pruned: it has left the plan");
                    self.desk.delete(&object.resource, &object.key, object.uid).await?;
                    self.metrics.visited(
                        self.name,
                        &object.resource.kind,
                        crate::metrics::NodeResult::Deleted,
                        Duration::ZERO,
                    );
                }
                // What is still there tells us when it goes; what is gone lets the next go at once.
                Ok(self.all_gone(owner, drawn))
            }
            Pruning::Wait(objects) => {
                verdict.progressing = true;
                verdict.message = format!("{}; {}", verdict.message, prune::going(&objects));
                Ok(false)
            }
            Pruning::HeldBack(leaving, all) => {
                let said = format!(
                    "the plan no longer has {leaving} of {all} objects, though the spec has not changed: nothing is deleted. If that \
                     is right, allow it with the annotation {}={}",
                    ask::ALLOW_PRUNE,
                    owner.generation
                );
                verdict.degraded = Some((Reason::PruneHeldBack, said));
                Ok(true)
            }
        }
    }

    fn all_gone(&self, owner: &OwnerView, drawn: &Drawn) -> bool {
        let inventory = self.inventory(owner, |resource, key| drawn.holds(resource, key));
        prune::decide(inventory, true) == Pruning::Nothing
    }

    /// Everything that belongs to an owner.
    pub(super) fn inventory(
        &self,
        owner: &OwnerView,
        planned: impl Fn(&windlass_runtime::resource::ResourceType, &ObjectKey) -> bool,
    ) -> Vec<Belonging> {
        let of_kind = |kind: &std::sync::Arc<dyn crate::kinds::OpenKind>| {
            let resource = kind.resource().clone();
            let objects = kind.belonging_to(&owner.uid);
            objects.into_iter().map(move |object| (resource.clone(), object))
        };
        self.kinds
            .iter()
            .flat_map(of_kind)
            .filter(|(_, object)| owner.made(&object.live().metadata))
            .map(|(resource, object)| {
                let meta = &object.live().metadata;
                Belonging::new(&resource, meta, planned(&resource, &meta.key))
            })
            .collect()
    }

    /// Quick work is told once: a status that would change in a moment is held back. That is a first one, another word on the same
    /// wait, and that what was ready is at work again (which generation a `Ready` speaks of is in its status). How long, if so.
    pub(super) fn hold_back(&self, owner: &OwnerView, verdict: &Verdict) -> Option<Duration> {
        if verdict.ready || verdict.failed {
            self.memory.settled(&owner.key, owner.uid);
            return None;
        }
        let since = match status::said(&owner.status, status::condition::READY) {
            None => self.memory.known_for(&owner.key, owner.uid),
            Some((truth, _)) if truth == "True" => self.memory.unready_for(&owner.key, owner.uid),
            Some((truth, reason)) if truth == "False" && reason == verdict.reason.as_str() => {
                self.memory.told_ago(&owner.key, owner.uid)?
            }
            Some(_) => return None,
        };
        self.told_within.checked_sub(since).filter(|left| !left.is_zero())
    }

    /// The kind's own fields. They are part of every status that is written: what an apply leaves out, it takes away.
    pub(super) fn own_status(
        &self,
        subject: &dyn Subject,
        owner: &OwnerView,
        report: Option<&Told>,
        verdict: &Verdict,
    ) -> Option<serde_json::Value> {
        let seen = Seen { report, failed: verdict.failed, kinds: &self.kinds, namespace: owner.namespace() };
        subject.status(&seen)
    }
}

/// What only a finalizer can clean up must not be begun without one.
fn needs_finalizer(subject: &dyn Subject, owner: &OwnerView, drawn: &Drawn) -> Result<(), DrawError> {
    if subject.finalizes() {
        return Ok(());
    }
    let why = drawn.nodes().find_map(|node| match &node.draft.verb {
        Verb::Step(step) if step.undoes() => Some(format!("{} has to be undone", node.draft.id)),
        _ => node
            .object()
            .filter(|(_, key)| !node.retained() && !owner.can_be_referred_to_from(key.namespace()))
            .map(|_| {
                format!(
                    "{} cannot be owned by a {} of another scope or namespace",
                    node.draft.id, owner.resource.kind
                )
            }),
    });
    match why {
        Some(why) => Err(DrawError::new(format!(
            "{why}: let Blueprint::FINALIZES and Blueprint::ordered_deletion be true"
        ))),
        None => Ok(()),
    }
}

/// How long to wait for what is due then: a day at most, since clocks are set right and timers have limits. A look costs nothing.
fn until(due: Timestamp, now: Timestamp) -> Duration {
    let left = Duration::try_from(now.duration_until(due)).unwrap_or_default();
    left.clamp(Duration::from_secs(1), Duration::from_hours(24))
}

/// The outcome, but not later than after `wait`.
pub(super) fn soonest(outcome: Outcome, wait: Duration) -> Outcome {
    match outcome {
        Outcome::After(poll) => Outcome::After(wait.min(poll)),
        Outcome::Done => Outcome::After(wait),
    }
}

/// When the owner is to be looked at again, though nothing may have changed.
pub(super) fn outcome_of(report: &Told) -> Result<Outcome, Error> {
    let mut worst: Option<(Class, String)> = None;
    let mut poll: Option<Duration> = None;
    let mut sooner = |wait: Duration| poll = Some(poll.map_or(wait, |poll| poll.min(wait)));
    for node in report.nodes() {
        match node.outcome() {
            Graphed::Waiting(wait) => wait.poll.into_iter().for_each(&mut sooner),
            Graphed::Failed(failure) => {
                let class = failure.error().map_or(Class::Transient, NodeError::class);
                match failure.error().map(NodeError::reason) {
                    Some(Reason::Fighting) => sooner(Duration::from_mins(1)),
                    // Watched, or a matter of the plan alone.
                    Some(Reason::Collision | Reason::GeneratedLost | Reason::DrawFailed) => {}
                    // Nobody tells when a webhook answers again.
                    Some(Reason::Unavailable) if class == Class::Terminal => sooner(UNEXPLAINED),
                    _ if class == Class::Terminal => sooner(RETRY),
                    _ => {}
                }
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
        Some((Class::Conflict, said)) => Err(Error::conflict(said)),
        Some((_, said)) => Err(Error::transient(said)),
        None => Ok(poll.map_or(Outcome::Done, Outcome::After)),
    }
}
