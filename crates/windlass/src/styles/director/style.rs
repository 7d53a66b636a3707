//! The style of a director, for the controller: one pass of one owner.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::leader::Fence;
use windlass_runtime::meta::Meta;
use windlass_runtime::resource::ResourceType;

use super::Director;
use super::decide::{Decided, decide};
use super::decision::{DecisionState, Effect};
use super::effect::OwnerEffect;
use super::observers::{Observers, View, Wanted};
use super::snapshot::{Depth, Observed, Snapshot};
use super::trace::{Answer, Trace};
use crate::error::PlanError;
use crate::live::Known;
use crate::metrics::PlanMetrics;
use crate::names::status::DECISIONS;
use crate::needs::Wake;
use crate::nodes::ActorState;
use crate::owner::PlanState;
use crate::plan::{Needs, Plan};
use crate::styles::style::Style;

/// The style of a director.
pub(crate) struct Directing<D: Director> {
    observers: Arc<Observers<D>>,
    metrics: PlanMetrics,
}

impl<D: Director> Directing<D> {
    pub(crate) fn new(director: &Arc<D>, fence: Fence, wake: Wake, metrics: PlanMetrics) -> Self {
        Self { observers: Arc::new(Observers::new(Arc::clone(director), fence, wake)), metrics }
    }
}

/// One pass of one owner. The plan may be drawn several times; observation and time stay the same.
pub(crate) struct DirectorPass<D: Director> {
    key: ObjectKey,
    meta: (windlass_runtime::meta::Uid, i64),
    now: Timestamp,
    view: Mutex<Option<Frozen<D>>>,
    /// The result of the last drawing.
    drawn: Mutex<Option<Drawn<D>>>,
    /// The time after which decisions that the status does not show yet can be shown.
    due: Mutex<Option<Duration>>,
}

/// The observation that a pass has begun with, and its target.
struct Frozen<D: Director> {
    target: D::Target,
    seen: View<D::Observation>,
}

struct Drawn<D: Director> {
    target: Known<D::Target>,
    /// The decisions; `None` if nobody was asked, because the software has never been observed.
    decisions: Option<Trace>,
    wanted: Wanted,
}

impl<D: Director> DirectorPass<D> {
    /// Returns the observation of this pass: the same one each time.
    fn view(&self, observers: &Observers<D>, target: &D::Target) -> View<D::Observation> {
        let mut view = self.view.lock();
        match &*view {
            Some(frozen) if frozen.target == *target => frozen.seen.clone(),
            _ => {
                let (uid, generation) = self.meta;
                let seen = observers.view(&self.key, uid, generation, target);
                *view = Some(Frozen { target: target.clone(), seen: seen.clone() });
                seen
            }
        }
    }
}

impl<D: Director> Style<D> for Directing<D> {
    type Pass = DirectorPass<D>;

    fn begin(&self, meta: &Meta) -> DirectorPass<D> {
        DirectorPass {
            key: meta.key.clone(),
            meta: (meta.uid, meta.generation),
            now: Timestamp::now(),
            view: Mutex::default(),
            drawn: Mutex::default(),
            due: Mutex::default(),
        }
    }

    fn draw(
        &self,
        director: &D,
        owner: &D::Owner,
        pass: &DirectorPass<D>,
        needs: &mut Needs<'_>,
        plan: &mut Plan,
    ) -> Result<(), PlanError> {
        *pass.drawn.lock() = None;
        let facts = director.facts(owner, needs)?;
        let target = director.target(owner, &facts);
        let view = match &target {
            Known::Known(target) => pass.view(&self.observers, target),
            // There is nothing to observe, which the actors may know.
            Known::Unknown(why) => View::Ended(Known::Unknown(why.clone())),
        };
        let asked = !matches!(view, View::Never);
        let observed = match view {
            View::Never => Known::Unknown("the software has not been observed yet".to_owned()),
            View::Ended(observed) => observed,
        };
        let snapshot = Snapshot::new(owner, &facts, observed.as_ref().map(|seen| &**seen), pass.now);
        let timing = director.timing(owner);
        let decided = if asked { decide(director, &snapshot) } else { nobody_asked(director, &snapshot) };
        add_decisions(plan, &decided.trace, pass.now);
        director.draw(&snapshot, &decided.intent, needs, plan)?;
        let wanted = Wanted { timing, depth: decided.depth, moving: decided.is_moving() };
        let Decided { effects, trace, .. } = decided;
        let actor = trace.acting().unwrap_or_default();
        let effect_of = |effect: &Effect<D::Effect>| OwnerEffect {
            observers: Arc::clone(&self.observers),
            owner: pass.key.clone(),
            target: target.clone(),
            action: effect.action.clone(),
            deadline: timing.effect_deadline,
        };
        add_effects(plan, actor, &effects, effect_of);
        *pass.drawn.lock() = Some(Drawn { target, decisions: asked.then_some(trace), wanted });
        Ok(())
    }

    fn drawn(&self, name: &'static str, pass: &DirectorPass<D>) {
        let drawn = pass.drawn.lock();
        let Some(Drawn { target, decisions, wanted }) = &*drawn else { return };
        let (uid, generation) = pass.meta;
        match target {
            Known::Known(target) => {
                self.observers.follow(&pass.key, uid, generation, target.clone(), *wanted);
            }
            Known::Unknown(_) => self.observers.forget(&pass.key),
        }
        for trace in decisions.iter().flat_map(|trace| &trace.actors) {
            tracing::debug!(actor = trace.name, decision = trace.line(), effects = ?trace.effects(), "decided");
            self.metrics.decided(name, trace.name, trace.state());
            trace.rules().for_each(|rule| self.metrics.held(name, rule));
        }
    }

    fn is_undecided(&self, pass: &DirectorPass<D>) -> bool {
        pass.drawn.lock().as_ref().is_some_and(|drawn| drawn.decisions.is_none())
    }

    fn status(
        &self,
        director: &D,
        owner: &D::Owner,
        pass: &DirectorPass<D>,
        state: &PlanState<'_>,
    ) -> Option<Value> {
        let own = director.status(owner, state);
        let drawn = pass.drawn.lock();
        let Some(trace) = drawn.as_ref().and_then(|drawn| drawn.decisions.as_ref()) else { return own };
        let (shown, due) = self.observers.shown(&pass.key, trace.status());
        *pass.due.lock() = due;
        let mut own = own.unwrap_or_else(|| json!({}));
        if !shown.is_empty() {
            own[DECISIONS] = json!(shown);
        }
        Some(own)
    }

    fn due(&self, pass: &DirectorPass<D>) -> Option<Duration> {
        *pass.due.lock()
    }

    fn is_torn_down_by_inventory(&self) -> bool {
        true
    }

    fn forget(&self, key: &ObjectKey) {
        self.observers.forget(key);
    }
}

/// Returns the decisions of a pass in which nobody was asked: nothing changes.
pub(super) fn nobody_asked<D: Director>(director: &D, snapshot: &Snapshot<'_, D>) -> Decided<D> {
    let intent = director.begin(snapshot);
    Decided { intent, effects: Vec::new(), trace: Trace::default(), depth: Depth::Health }
}

/// Adds a node for each actor.
pub(super) fn add_decisions(plan: &mut Plan, trace: &Trace, now: Timestamp) {
    for actor in &trace.actors {
        let state = match &actor.answer {
            Answer::NotAsked(_) | Answer::Decided { state: DecisionState::Idle, .. } => ActorState::Calm,
            Answer::Decided { state: DecisionState::Working(what), .. } => {
                ActorState::Waits(what.clone(), None)
            }
            Answer::Decided { state: DecisionState::Waiting { why, until }, .. } => {
                let left =
                    until.map(|until| Duration::try_from(now.duration_until(until)).unwrap_or_default());
                ActorState::Waits(why.clone(), left.map(|left| left.max(Duration::from_secs(1))))
            }
            Answer::Decided { state: state @ DecisionState::Refused { .. }, .. } => {
                ActorState::Refuses(state.message())
            }
        };
        plan.decision(actor.name, actor.line(), state);
    }
}

/// Adds the effects of one actor, each after the one before.
pub(super) fn add_effects<E: std::fmt::Debug, P: crate::nodes::Perform>(
    plan: &mut Plan,
    actor: &str,
    effects: &[Effect<E>],
    effect_of: impl Fn(&Effect<E>) -> P,
) {
    let mut before: Option<crate::plan::Planned> = None;
    for effect in effects {
        let key = |(resource, name): &(ResourceType, String)| (resource.clone(), plan.key(resource, name));
        let applied = effect.after.iter().map(key).collect();
        let node = plan.effect(actor, &effect.action.to_string(), applied, effect_of(effect));
        before = Some(match before {
            Some(before) => node.behind([before]),
            None => node,
        });
    }
}

/// The observation of a preview: given as a value, or unknown.
pub(super) type Given<'a, O> = Known<&'a Observed<O>>;
