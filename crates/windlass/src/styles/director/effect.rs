//! Carries out the effects of a director's decisions.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use windlass_runtime::intern::Str;
use windlass_runtime::key::ObjectKey;

use super::Director;
use super::decision::{Action, ObjectAction, ObjectVerb};
use super::observers::Observers;
use crate::error::NodeError;
use crate::live::Known;
use crate::nodes::Perform;
use crate::plan::node::Visit;

/// An effect of one owner.
pub(super) struct OwnerEffect<D: Director> {
    pub(super) observers: Arc<Observers<D>>,
    pub(super) owner: ObjectKey,
    pub(super) target: Known<D::Target>,
    pub(super) action: Action<D::Effect>,
    pub(super) deadline: Duration,
}

impl<D: Director> Perform for OwnerEffect<D> {
    fn perform<'a>(&'a self, run: &'a dyn Visit) -> BoxFuture<'a, Result<(), NodeError>> {
        async move {
            // Its end is recorded however the effect ends: from then on earlier observations are outdated.
            let _end = self.observers.effect(&self.owner, &self.action.to_string());
            match (&self.action, &self.target) {
                (Action::Software(effect), Known::Known(target)) => {
                    Ok(self.observers.perform(target, effect, self.deadline).await?)
                }
                (Action::Software(_), Known::Unknown(why)) => Err(NodeError::transient(
                    crate::Reason::Waiting,
                    format!("not sent, because the software cannot be reached: {why}"),
                )),
                (Action::Object(action), _) => self.on_object(action, run).await,
            }
        }
        .boxed()
    }
}

impl<D: Director> OwnerEffect<D> {
    async fn on_object(&self, action: &ObjectAction, run: &dyn Visit) -> Result<(), NodeError> {
        let ObjectAction { verb, resource, name, uid, version } = action;
        // A cached owner may be older than the object: ask the server before anything is deleted.
        run.ensure_owner().await?;
        let namespace = self.owner.namespace().filter(|_| resource.namespaced);
        let key = ObjectKey::new(namespace.map(Str::new), &**name);
        match verb {
            ObjectVerb::Delete => run.delete_unchanged(resource, &key, *uid, version).await,
            ObjectVerb::Evict => run.evict(&key, *uid).await,
        }
    }
}
