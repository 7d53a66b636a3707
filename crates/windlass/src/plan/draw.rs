//! Draws the finished plan of an owner: the same function serves reconciles, previews and sketches.

use std::time::Duration;

use tokio::time::Instant;

use super::drawn::Drawn;
use super::needs::Needs;
use super::{Kinds, Plan};
use crate::error::PlanError;
use crate::needs::{Answers, Pass, PassEnd};

/// The maximum number of rounds of one pass.
const ROUNDS: usize = 4;
/// The time that one pass waits, in total, for the objects that it asked for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The author's part of drawing: the call of a blueprint's `draw` for one owner.
pub(crate) type Draw<'a> = &'a (dyn Fn(&mut Needs<'_>, &mut Plan) -> Result<(), PlanError> + Send + Sync);

/// The reason why there is no plan.
pub(crate) enum NoPlan {
    /// The plan cannot be drawn.
    Wrong(PlanError),
    /// The plan depends on an object that is not known yet, for this reason.
    Unknown(String),
    /// The plan asked for new objects in every round: these.
    OutOfRounds(String),
}

impl NoPlan {
    /// Returns how the pass ended, for the objects that it asked for.
    pub(crate) fn end(&self) -> PassEnd {
        match self {
            Self::Wrong(_) | Self::Unknown(_) => PassEnd::Incomplete,
            Self::OutOfRounds(_) => PassEnd::OutOfRounds,
        }
    }
}

impl From<PlanError> for NoPlan {
    fn from(error: PlanError) -> Self {
        if error.is_unknown() { Self::Unknown(error.to_string()) } else { Self::Wrong(error) }
    }
}

/// Draws the plan once, from the objects known now.
pub(crate) fn once(
    answers: &dyn Answers,
    kinds: &Kinds,
    namespace: Option<&str>,
    draw: Draw<'_>,
) -> Result<Drawn, PlanError> {
    let mut plan = Plan::new(namespace);
    let mut needs = Needs::new(answers, kinds, &plan);
    match draw(&mut needs, &mut plan) {
        Ok(()) => plan.finish(),
        // An error in the plan, such as an undeclared kind, does not go away by waiting.
        Err(unknown) if unknown.is_unknown() => Err(plan.finish().err().unwrap_or(unknown)),
        Err(wrong) => Err(wrong),
    }
}

/// Fails if two plans that were drawn from the same facts differ: such a plan would be written again and
/// again. Only debug builds make this check.
fn is_same_twice(one: &Drawn, other: &Drawn) -> Result<(), PlanError> {
    let differs = |message: String| {
        Err(PlanError::new(format!(
            "the plan is not the same when it is drawn twice: {message}. Look for a time, a random value or an unsorted list in it"
        )))
    };
    let (ones, others): (Vec<_>, Vec<_>) = (one.places().collect(), other.places().collect());
    if ones.len() != others.len() {
        return differs(format!("it has {} nodes, and then {}", ones.len(), others.len()));
    }
    for (one, other) in ones.iter().zip(&others) {
        if one.id != other.id {
            return differs(format!("where {} was, {} is", one.id, other.id));
        }
        if one.node.sketch() != other.node.sketch() || one.after != other.after {
            return differs(format!("{} has other content", one.id));
        }
    }
    Ok(())
}

/// Draws the plan until it asks for nothing new. Only the last round counts for nodes, digests, errors and
/// advice.
pub(crate) async fn in_rounds(
    pass: &Pass<'_>,
    kinds: &Kinds,
    namespace: Option<&str>,
    draw: Draw<'_>,
) -> Result<Drawn, NoPlan> {
    let deadline = Instant::now() + PATIENCE;
    let mut before = Vec::new();
    for round in 1.. {
        let drawn = once(pass, kinds, namespace, draw);
        let new = pass.new_asks();
        if new.is_empty() {
            let drawn = drawn?;
            if cfg!(debug_assertions) {
                let again = once(pass, kinds, namespace, draw)?;
                is_same_twice(&drawn, &again)?;
            }
            return Ok(drawn);
        }
        if round == ROUNDS {
            let message = format!(
                "the plan asks for something else each time it is drawn: for {} at last, for {} before that; a plan may ask in \
                 {ROUNDS} rounds",
                new.join(", "),
                before.join(", ")
            );
            return Err(NoPlan::OutOfRounds(message));
        }
        pass.settle(deadline).await;
        before = new;
    }
    Err(NoPlan::Unknown("it was not drawn".to_owned()))
}
