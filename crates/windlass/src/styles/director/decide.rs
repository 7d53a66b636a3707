//! Asks the actors in order: one pure function from a snapshot to an intent, effects and a trace.

use super::Director;
use super::actor::Pass;
use super::decision::{Decision, Effect, Next};
use super::snapshot::{Depth, Snapshot};
use super::trace::{ActorTrace, Answer, Trace};

/// The decisions of one pass.
pub struct Decided<D: Director> {
    /// The values to apply.
    pub intent: D::Intent,
    /// The effects that run in this pass: those of the first actor that has any.
    pub effects: Vec<Effect<D::Effect>>,
    /// The decision of each actor.
    pub trace: Trace,
    /// The depth of the next observation, as the actors asked for it.
    pub depth: Depth,
}

impl<D: Director> Decided<D> {
    /// Returns whether anything moves, waits or is refused.
    pub fn is_moving(&self) -> bool {
        !self.trace.actors.iter().all(ActorTrace::is_idle)
    }
}

/// Asks the actors of a director in order.
///
/// After a decision that stops the pass, only actors that are [always](super::Actor::always) asked follow;
/// the fields of the others stay as they are live. In one pass the effects of one actor run: of the first, in
/// order, that has any. The effects of later actors wait for the next pass, because they were decided without
/// their result.
///
/// It is a pure function, so that every decision can be tested by a table.
pub fn decide<D: Director>(director: &D, snapshot: &Snapshot<'_, D>) -> Decided<D> {
    let mut intent = director.begin(snapshot);
    let mut trace = Trace::default();
    let mut effects = Vec::new();
    let (mut acting, mut stopped): (Option<&'static str>, Option<&'static str>) = (None, None);
    let mut depth = Depth::Health;
    for actor in director.actors() {
        let name = actor.name();
        if let Some(by) = stopped.filter(|_| !actor.always()) {
            trace.actors.push(ActorTrace { name, answer: Answer::NotAsked(by) });
            continue;
        }
        let decision = actor.decide(&Pass::after(snapshot, &trace), &mut intent);
        let Decision { state, next, findings, effects: wanted, depth: deep } = decision;
        depth = depth.max(deep);
        if next == Next::Stop {
            stopped = stopped.or(Some(name));
        }
        let in_words = wanted.iter().map(|effect| effect.action.to_string()).collect();
        let held_back_by = acting.filter(|_| !wanted.is_empty());
        if acting.is_none() && !wanted.is_empty() {
            acting = Some(name);
            effects = wanted;
        }
        let answer = Answer::Decided { state, findings, effects: in_words, held_back_by };
        trace.actors.push(ActorTrace { name, answer });
    }
    Decided { intent, effects, trace, depth }
}
