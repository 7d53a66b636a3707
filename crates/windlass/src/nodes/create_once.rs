//! An object that is generated once: credentials and keys.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use serde::Serialize;
use windlass_graph::Progress;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::Meta;
use windlass_runtime::resource::ResourceType;

use super::blocking;
use crate::error::{NodeError, PlanError, Reason};
use crate::live::Kind;
use crate::live::kind::id;
use crate::live::readiness::Readiness;
use crate::names::{ask, label};
use crate::plan::node::{
    Creation, How, Node, Place, Sketched, Visit, Visited, Wait, Write, being_deleted, not_read_back,
};
use crate::plan::{Desired, Plan, Planned, Random};

type Generate = Arc<dyn Fn(&mut Random) -> Result<Desired, PlanError> + Send + Sync>;

impl Plan {
    /// Adds an object of this name that is generated once: credentials and keys. `generate` runs only when
    /// the object is created; its content is never changed afterwards.
    ///
    /// If the object is deleted, the node fails instead of generating it again: data that was protected with
    /// the old one would become unreadable. The error message says how to allow it.
    pub fn create_once<K: Kind + Serialize>(
        &mut self,
        name: impl AsRef<str>,
        generate: impl Fn(&mut Random) -> Result<K, PlanError> + Send + Sync + 'static,
    ) -> Planned {
        let resource = ResourceType::of::<K>();
        let key = self.key(&resource, name.as_ref());
        let (namespace, wanted) = (self.namespace().map(str::to_owned), key.clone());
        let generate: Generate = Arc::new(move |random: &mut Random| {
            let desired = Desired::of(&generate(random)?, namespace.as_deref())?;
            if desired.key == wanted {
                return Ok(desired);
            }
            Err(PlanError::new(format!(
                "the generated {} is named {}, but its place in the plan is {wanted}",
                desired.resource.kind, desired.key
            )))
        });
        self.node(id(&resource, &key, self.namespace()), CreateOnce { resource, key, generate })
    }
}

struct CreateOnce {
    resource: ResourceType,
    key: ObjectKey,
    generate: Generate,
}

impl Node for CreateOnce {
    fn describe(&self) -> String {
        "generate once".to_owned()
    }

    fn object(&self) -> Option<(&ResourceType, &ObjectKey)> {
        Some((&self.resource, &self.key))
    }

    fn sketch(&self) -> Sketched<'_> {
        Sketched::Generated
    }

    fn outlives_plan(&self) -> bool {
        true
    }

    fn visit<'a>(&'a self, place: &'a Place, run: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        self.bring(place, run).boxed()
    }
}

impl CreateOnce {
    async fn bring(&self, place: &Place, run: &dyn Visit) -> Visited {
        match run.live(&self.resource, &self.key)? {
            None => self.generate(place, run).await?,
            Some(live) => {
                let live = live.live();
                if !run.owner().has(&live.metadata) && !run.was_left_for_us(live) {
                    return Err(run.collision(live));
                }
                if !live.metadata.deleting && !is_marked(place, &live.metadata, run) {
                    self.adopt(place, run).await?;
                }
            }
        }
        let Some(live) = run.live(&self.resource, &self.key)? else { return Ok(not_read_back()) };
        let live = live.live();
        if live.metadata.deleting {
            return Ok(being_deleted(live));
        }
        run.note_generated(&self.resource, self.key.name());
        run.offer(place, content(&live.metadata));
        match place.options.check.as_ref().map(|check| check(live)) {
            None | Some(Readiness::Ready) => Ok(Progress::Ready),
            Some(Readiness::Waiting(why)) => Ok(Wait::new(why).into()),
            Some(Readiness::Failed(why)) => Err(NodeError::terminal(Reason::Failed, why)),
        }
    }

    async fn generate(&self, place: &Place, run: &dyn Visit) -> Result<(), NodeError> {
        let (owner, kind, name) = (run.owner(), &self.resource.kind, self.key.name());
        if owner.has_generated(kind, name) && !owner.may_regenerate(kind, name) {
            return self.find_lost(place, run).await;
        }
        let mut desired = self.generated().await?;
        run.mutate(place, &mut desired)?;
        run.mark(place, &mut desired)?;
        let write = Write { place, desired: &desired, digest: "generated", how: How::Marks };
        match run.create(write).await? {
            Creation::Created => Ok(()),
            // The existing object stays as it is: only our marks are added.
            Creation::Exists => self.adopt(place, run).await,
        }
    }

    async fn generated(&self) -> Result<Desired, NodeError> {
        let generate = Arc::clone(&self.generate);
        blocking::run(move || generate(&mut Random::new())).await
    }

    /// Looks for an object that was generated before and that our watch does not show: it has lost its label,
    /// or it was deleted.
    async fn find_lost(&self, place: &Place, run: &dyn Visit) -> Result<(), NodeError> {
        if run.read(&self.resource, &self.key).await?.is_some() {
            return self.adopt(place, run).await;
        }
        // An object that was restored from a backup may lack the label that our watch selects by.
        if run.watch_foreign(&self.resource, &self.key).await {
            return Err(NodeError::conflict("it was restored during the reconcile"));
        }
        run.ensure_owner().await?;
        let message = format!(
            "it was generated and is gone. Restore it from a backup; or, if what it protected may be lost, have another one \
             made with the annotation {}={} on {}",
            ask::REGENERATE,
            self.key.name(),
            run.owner().title()
        );
        Err(NodeError::terminal(Reason::GeneratedLost, message))
    }

    /// Adds our marks to the existing object, and nothing else.
    async fn adopt(&self, place: &Place, run: &dyn Visit) -> Result<(), NodeError> {
        let marks = run.marks(place, &self.resource, &self.key)?;
        run.adopt(Write { place, desired: &marks, digest: "shell", how: How::Marks }).await
    }
}

/// Returns the content of a generated object that flows into the nodes after it: its uid. The values are not
/// needed: an object with other values would be another object.
pub(crate) fn content(meta: &Meta) -> Vec<u8> {
    meta.uid.as_bytes().to_vec()
}

/// Returns whether a generated object carries the marks of its owner.
fn is_marked(place: &Place, meta: &Meta, run: &dyn Visit) -> bool {
    let owner = run.owner();
    let refers = !place.retained() && owner.can_be_referred_to_from(meta.namespace());
    owner.has(meta)
        && meta.labels.get(label::OWNER).is_some_and(|uid| **uid == *owner.uid.to_string())
        && refers == meta.controller().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Secret;
    use std::thread;

    fn node(generate: impl Fn() -> Result<Desired, PlanError> + Send + Sync + 'static) -> CreateOnce {
        let (resource, key) = (ResourceType::of::<Secret>(), ObjectKey::namespaced("shop", "key"));
        CreateOnce { resource, key, generate: Arc::new(move |_: &mut Random| generate()) }
    }

    #[tokio::test]
    async fn seam_low_a_key_is_not_generated_on_a_thread_of_the_runtime() {
        let here = thread::current().id();
        let elsewhere = node(move || {
            let message = if thread::current().id() == here { "here" } else { "elsewhere" };
            Err(PlanError::new(message))
        });
        assert_eq!(elsewhere.generated().await.unwrap_err().to_string(), "elsewhere");
    }

    #[tokio::test]
    #[should_panic(expected = "no primes")]
    async fn a_panic_of_a_generator_is_one_of_its_node() {
        let _ = node(|| panic!("no primes")).generated().await;
    }
}
