//! From an owner to its finished plan: one function draws, for reconciles, previews and sketches alike.

use std::time::Duration;

use tokio::time::Instant;

use super::drawn::Drawn;
use super::needs::Needs;
use super::{Kinds, Plan};
use crate::error::PlanError;
use crate::needs::{Answers, Pass, PassEnd};

/// The rounds of one pass.
const ROUNDS: usize = 4;
/// How long one pass waits for objects that it asked for, in all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The author's part of drawing: what `draw` of a blueprint does for one owner.
pub(crate) type Draw<'a> = &'a (dyn Fn(&mut Needs<'_>, &mut Plan) -> Result<(), PlanError> + Send + Sync);

/// The reason why there is no plan.
pub(crate) enum NoPlan {
    /// The plan cannot be drawn.
    Wrong(PlanError),
    /// The plan depends on something that is not known yet: why.
    Unknown(String),
    /// The plan asked for something new in every round: which objects.
    OutOfRounds(String),
}

impl NoPlan {
    /// What the end of the pass means for the objects that it asked for.
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

/// Draws once, from what is known now.
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
        // What is wrong with the plan, such as a kind that is not declared, would not become known by waiting.
        Err(unknown) if unknown.is_unknown() => Err(plan.finish().err().unwrap_or(unknown)),
        Err(wrong) => Err(wrong),
    }
}

/// Draws until nothing new is asked for. Only the last round counts for nodes, digests, errors and advice.
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
            return Ok(drawn?);
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
