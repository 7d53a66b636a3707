//! The decision of an actor, as a node: it is part of the report, so that conditions, events and the next
//! reconcile follow from decisions in the same way as from objects.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use windlass_graph::Progress;

use crate::error::{NodeError, Reason};
use crate::plan::node::{Node, Place, Visit, Visited, Wait};
use crate::plan::{Plan, Planned};

/// The state of an actor, as far as the status of its owner depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ActorState {
    /// The actor has nothing to do, or was not asked.
    Calm,
    /// The actor works or waits: the reason, and the time after which it wants to be asked again.
    Waits(String, Option<Duration>),
    /// The actor refuses what the spec asks for: the reason and the remedy.
    Refuses(String),
}

impl Plan {
    /// Adds the decision of an actor; `line` describes it for previews.
    pub(crate) fn decision(&mut self, actor: &str, line: String, state: ActorState) -> Planned {
        self.node(format!("actor {actor}"), DecisionNode { line, state })
    }
}

struct DecisionNode {
    line: String,
    state: ActorState,
}

impl Node for DecisionNode {
    fn describe(&self) -> String {
        self.line.clone()
    }

    fn kind(&self) -> &'static str {
        "actor"
    }

    fn visit<'a>(&'a self, _: &'a Place, _: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        let visited = match &self.state {
            ActorState::Calm => Ok(Progress::Ready),
            ActorState::Waits(why, None) => Ok(Wait::new(why).into()),
            ActorState::Waits(why, Some(poll)) => Ok(Wait::new(why).poll(*poll).into()),
            ActorState::Refuses(why) => Err(NodeError::terminal(Reason::Refused, why)),
        };
        std::future::ready(visited).boxed()
    }

    fn remove<'a>(&'a self, _: &'a Place, _: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        std::future::ready(Ok(Progress::Ready)).boxed()
    }
}
