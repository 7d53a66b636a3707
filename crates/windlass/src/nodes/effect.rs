//! An effect on the outside that a decision asked for: a call to the software, a deleted pod.
//!
//! It promises: an effect waits until the objects that it names are applied, not until they are ready, and
//! nothing else holds it back; it is not sent while the owner is paused; it counts against the write budget
//! of its owner. It is short and has no patience: the actor that asked for it says what does not move. It is
//! not undone when its owner is deleted.

use futures::future::{BoxFuture, FutureExt as _};
use windlass_graph::Progress;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use crate::error::{NodeError, Reason};
use crate::plan::node::{Node, Place, Visit, Visited};
use crate::plan::{Plan, Planned};

/// Carries out an effect.
pub(crate) trait Perform: Send + Sync + 'static {
    fn perform<'a>(&'a self, run: &'a dyn Visit) -> BoxFuture<'a, Result<(), NodeError>>;
}

impl Plan {
    /// Adds an effect that an actor asked for. It waits until these objects of the plan are applied.
    pub(crate) fn effect(
        &mut self,
        actor: &str,
        words: &str,
        applied: Vec<(ResourceType, ObjectKey)>,
        perform: impl Perform,
    ) -> Planned {
        let node = EffectNode { words: words.to_owned(), applied, perform };
        self.node(format!("effect of {actor}: {words}"), node)
    }
}

struct EffectNode<P> {
    words: String,
    applied: Vec<(ResourceType, ObjectKey)>,
    perform: P,
}

impl<P: Perform> Node for EffectNode<P> {
    fn describe(&self) -> String {
        "effect".to_owned()
    }

    fn kind(&self) -> &'static str {
        "effect"
    }

    fn visit<'a>(&'a self, place: &'a Place, run: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        async move {
            if run.is_observing() {
                return Err(NodeError::transient(Reason::Paused, "not sent while the owner is paused"));
            }
            for (resource, key) in &self.applied {
                if let Some(wait) = run.applied(resource, key).await? {
                    return Ok(wait.into());
                }
            }
            run.may_act(place, &self.words)?;
            match self.perform.perform(run).await {
                Ok(()) => {
                    tracing::info!(effect = self.words, "effect sent");
                    run.acted(place);
                    Ok(Progress::Ready)
                }
                Err(error) => {
                    run.not_acted(place);
                    Err(error)
                }
            }
        }
        .boxed()
    }

    fn remove<'a>(&'a self, _: &'a Place, _: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        std::future::ready(Ok(Progress::Ready)).boxed()
    }
}
