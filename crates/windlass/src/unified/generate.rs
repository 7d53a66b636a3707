//! An object that is generated once.

use windlass_graph::Progress;
use windlass_runtime::client::Failure;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::Meta;
use windlass_runtime::resource::ResourceType;

use super::node::{Visited, Visitor, being_deleted, conflict};
use super::object::describe;
use crate::desired::Desired;
use crate::error::{DrawError, NodeError, Reason};
use crate::live::LiveRef;
use crate::metrics::NodeResult;
use crate::names::{ask, label};
use crate::plan::{Generator, Node, Verb};
use crate::readiness::Readiness;
use crate::secrecy::{Content, Random};
use crate::seen::Wait;

impl Visitor<'_> {
    /// An object that is generated once.
    pub(super) async fn generated(&self, node: &Node, done: &mut NodeResult) -> Visited {
        let Verb::CreateOnce { resource, key, generate } = &node.draft.verb else {
            return Err(NodeError::terminal(Reason::DrawFailed, "it is not generated"));
        };
        let kind = self.machine.kind(resource)?;
        let live: Option<LiveRef> = kind.get(key);
        if let Some(live) = &live
            && !self.owner.has(&live.live().metadata)
            && !self.take_back(live.live())
        {
            let shell = self.shell(node, resource, key)?;
            return Err(self.collision(&shell, &describe(live.live())));
        }
        if live.is_none() {
            self.generate(node, key.name(), generate, done).await?;
        } else if let Some(live) = &live
            && !live.live().metadata.deleting
            && !self.is_marked(node, &live.live().metadata)
        {
            let shell = self.shell(node, resource, key)?;
            self.meet(node, &shell, "shell", done).await?;
        }
        let Some(live) = kind.get(key) else {
            return Ok(Progress::Waiting(Wait::new("it has not been read back yet")));
        };
        if live.live().metadata.deleting {
            return Ok(being_deleted(live.live()));
        }
        self.remember(key.name());
        self.contents.lock()[node.index] = Some(generated_content(node, &live.live().metadata));
        match &node.draft.check {
            Some(check) => match check(live.live()) {
                Readiness::Ready => Ok(Progress::Ready),
                Readiness::Waiting(why) => Ok(Progress::Waiting(Wait::new(why))),
                Readiness::Failed(why) => Err(NodeError::terminal(Reason::Failed, why)),
            },
            None => Ok(Progress::Ready),
        }
    }

    pub(super) async fn generate(
        &self,
        node: &Node,
        name: &str,
        generate: &Generator,
        done: &mut NodeResult,
    ) -> Result<(), NodeError> {
        let Verb::CreateOnce { resource, key, .. } = &node.draft.verb else { return Ok(()) };
        let known = self.owner.generated().iter().any(|generated| generated == name);
        if known && !self.owner.may_regenerate(name) {
            // It may be there without its label: then it is not lost.
            let shell = self.shell(node, resource, key)?;
            if self.machine.desk.look(resource, key).await?.is_some() {
                return self.meet(node, &shell, "shell", done).await;
            }
            // Restored from a backup, it may come without the label that our watch selects by.
            if self.machine.registry.follow_foreign(&self.owner.key, resource, key, self.held).await {
                return Err(conflict("it came back while we looked"));
            }
            self.with_its_owner().await?;
            let said = format!(
                "it was generated and is gone. Restore it from a backup; or, if what it protected may be lost, have another one \
                 made with the annotation {}={name} on {}",
                ask::REGENERATE,
                self.owner.title()
            );
            return Err(NodeError::terminal(Reason::GeneratedLost, said));
        }
        let broken = |error: DrawError| NodeError::terminal(Reason::DrawFailed, error.to_string());
        let mut desired = generate(&mut Random::new()).map_err(broken)?;
        self.completion().mutate(node, &mut desired)?;
        self.completion().mark_as_ours(node, &mut desired)?;
        self.leave(node, &desired, "generated", "generated")?;
        match self.machine.desk.create(&desired).await {
            Ok(()) => {
                tracing::info!(object = ?desired, "generated");
                *done = NodeResult::Created;
                self.machine.memory.accepted(&self.owner.key, self.owner.uid, &node.draft.id);
                Ok(())
            }
            Err(error) if matches!(error.failure(), Failure::Conflict | Failure::AlreadyExists) => {
                // What is there stays as it is: only its marks become ours.
                let shell = self.shell(node, resource, key)?;
                self.meet(node, &shell, "shell", done).await
            }
            Err(error) => Err(self.refused(node, "generated", error)),
        }
    }

    /// Whether an object that was generated says whose it is.
    pub(super) fn is_marked(&self, node: &Node, meta: &Meta) -> bool {
        let refers = !node.retained() && self.owner.can_be_referred_to_from(meta.namespace());
        self.owner.has(meta)
            && meta.labels.get(label::OWNER).is_some_and(|uid| **uid == *self.owner.uid.to_string())
            && refers == meta.controller().is_some()
    }

    /// The marks of an object, without its content.
    pub(super) fn shell(
        &self,
        node: &Node,
        resource: &ResourceType,
        key: &ObjectKey,
    ) -> Result<Desired, NodeError> {
        self.completion().shell(node, resource, key)
    }

    pub(super) fn remember(&self, name: &str) {
        let mut generated = self.generated.lock();
        if !generated.iter().any(|known| known == name) {
            generated.push(name.to_owned());
            generated.sort();
        }
    }
}

/// The content of a generated object that flows into what comes after it: its uid. Its values are nobody's business, and with other values
/// it would be another object.
pub(crate) fn generated_content(node: &Node, meta: &Meta) -> Content {
    Content { id: node.draft.id.clone(), digest: meta.uid.as_bytes().to_vec() }
}
