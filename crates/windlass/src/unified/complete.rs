//! The desired object of a node, completed with everything that all objects of a plan have.
//!
//! [`Completion`] is pure: a run and the [record of what is applied](crate::applied()) use the same code. Only the digest key is read by
//! the run, and only when it is needed.

use serde_json::{Value, json};
use windlass_runtime::cache::Digest;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::node::Visitor;
use super::owner::OwnerView;
use crate::desired::Desired;
use crate::error::{DrawError, NodeError, Reason};
use crate::live::Live;
use crate::names::{label, mark};
use crate::plan::{Mutation, Node, Verb};
use crate::secrecy::{self, Content, DigestKey, Stamp};

impl Visitor<'_> {
    /// The planned object, with everything that all objects of a plan have. The first error stops.
    pub(crate) async fn complete(
        &self,
        node: &Node,
        planned: &Desired,
        live: Option<&Live>,
    ) -> Result<Desired, NodeError> {
        let completion = self.completion();
        let mut desired = planned.clone();
        completion.mutate(node, &mut desired)?;
        let contents = contents_before(node, &self.contents.lock());
        let key = if needs_key(&desired, &contents) { Some(self.machine.keyring.get().await?) } else { None };
        let stamp = live.and_then(|live| live.metadata.annotations.get(mark::DEPENDENCIES));
        completion.complete(node, desired, &contents, key, stamp.map(|stamp| &**stamp))
    }

    /// The pure part of what completes the objects of this run.
    pub(super) fn completion(&self) -> Completion<'_> {
        Completion { name: self.machine.name, owner: self.owner, mutations: &self.machine.mutations }
    }

    /// Keeps the content that others depend on: known before anything is written.
    pub(super) fn offer_content(&self, node: &Node, desired: &Desired) -> Result<(), NodeError> {
        if let Some(content) = content_of(node, desired)? {
            self.contents.lock()[node.index] = Some(content);
        }
        Ok(())
    }
}

/// Completes the objects of one owner's plan. Pure.
pub(crate) struct Completion<'a> {
    /// The blueprint's name.
    pub(crate) name: &'static str,
    pub(crate) owner: &'a OwnerView,
    /// Changes to every object of the program, made after those of its node.
    pub(crate) mutations: &'a [Mutation],
}

impl Completion<'_> {
    /// Makes the changes that the node and the program ask for. The first error stops.
    pub(crate) fn mutate(&self, node: &Node, desired: &mut Desired) -> Result<(), NodeError> {
        let mut all = node.draft.mutations.iter().chain(self.mutations);
        all.try_for_each(|mutation| mutation(desired)).map_err(broken)
    }

    /// The object as it is applied: with the contents of what it comes after, in the order of `.after`, the marks of its owner, and its
    /// digest. `live_stamp` is the annotation of the live object. Where a [key is needed](needs_key), it must be given.
    pub(crate) fn complete(
        &self,
        node: &Node,
        mut desired: Desired,
        contents: &[Content],
        key: Option<&DigestKey>,
        live_stamp: Option<&str>,
    ) -> Result<Desired, NodeError> {
        let key = || {
            let missing = || NodeError::terminal(Reason::DrawFailed, "it needs a digest key and has none");
            key.ok_or_else(missing)
        };
        if rolls(&desired) {
            desired.label_pods(label::CONTROLLER, self.name);
            if !contents.is_empty() {
                let stamp = Stamp::next(key()?, contents, live_stamp);
                desired.annotate_pods(mark::TEMPLATE, stamp.token());
                desired.annotate(mark::DEPENDENCIES, stamp.to_string());
            }
        }
        self.mark_as_ours(node, &mut desired)?;
        let content = Digest::of(&desired.body).map_err(|error| broken(error.into()))?;
        let digest = if desired.is_secret() { key()?.digest(content) } else { secrecy::plain(content) };
        desired.annotate(mark::DIGEST, digest);
        Ok(desired)
    }

    /// Labels, order, and whose it is.
    pub(crate) fn mark_as_ours(&self, node: &Node, desired: &mut Desired) -> Result<(), NodeError> {
        desired.label(label::CONTROLLER, self.name);
        desired.label(label::OWNER, self.owner.uid.to_string());
        desired.annotate(mark::ORDER, node.order.to_string());
        let namespace = desired.key.namespace().map(str::to_owned);
        let retained = node.retained();
        match (&node.draft.verb, node.draft.retain) {
            (_, Some(false)) => desired.annotate(mark::RETAIN, "false"),
            _ if retained => desired.annotate(mark::RETAIN, self.owner.title()),
            (Verb::CreateOnce { .. }, None) => desired.annotate(mark::RETAIN, "unplanned"),
            _ => {}
        }
        if retained {
            return Ok(());
        }
        if self.owner.can_be_referred_to_from(namespace.as_deref()) {
            let reference = self
                .owner
                .reference_for(namespace.as_deref())
                .map_err(|error| NodeError::terminal(Reason::DrawFailed, error.to_string()))?;
            desired.body["metadata"]["ownerReferences"] = json!([reference]);
        }
        Ok(())
    }

    /// The marks of an object, without its content.
    pub(crate) fn shell(
        &self,
        node: &Node,
        resource: &ResourceType,
        key: &ObjectKey,
    ) -> Result<Desired, NodeError> {
        let body = json!({"metadata": {"name": key.name()}});
        let mut shell = Desired::from_value(resource.clone(), body, key.namespace()).map_err(broken)?;
        self.mark_as_ours(node, &mut shell)?;
        Ok(shell)
    }
}

/// Whether an object has pods that are replaced when the content of a dependency changes.
fn rolls(desired: &Desired) -> bool {
    desired.makes_pods() && desired.resource.group == "apps"
}

/// Whether a digest of the object, or of what it comes after, has to be keyed.
pub(crate) fn needs_key(desired: &Desired, contents: &[Content]) -> bool {
    desired.is_secret() || (rolls(desired) && !contents.is_empty())
}

/// The contents of what a node comes after, in the order of `.after`; nodes without content are left out.
pub(crate) fn contents_before(node: &Node, contents: &[Option<Content>]) -> Vec<Content> {
    node.after.iter().filter_map(|index| contents.get(*index).cloned().flatten()).collect()
}

/// The content of an applied object that flows into what comes after it, if its kind has one.
pub(crate) fn content_of(node: &Node, desired: &Desired) -> Result<Option<Content>, NodeError> {
    if !desired.has_content() {
        return Ok(None);
    }
    let digest = Digest::of(&desired.content()).map_err(|error| broken(error.into()))?;
    Ok(Some(Content { id: node.draft.id.clone(), digest: digest.as_bytes().to_vec() }))
}

fn broken(error: DrawError) -> NodeError {
    NodeError::terminal(Reason::DrawFailed, error.to_string())
}

/// The digest that an object carries.
pub(super) fn mark_of(desired: &Desired) -> String {
    let digest =
        desired.body.pointer("/metadata/annotations").and_then(|annotations| annotations.get(mark::DIGEST));
    digest.and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrecy::DigestKey;
    use k8s_openapi::api::core::v1::Secret;
    use windlass_runtime::resource::ResourceType;

    /// A changed value is a write of every object of every installation.
    #[test]
    fn the_digests_of_a_fixed_object_never_change() {
        let uid = "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d";
        let body = json!({"metadata": {"name": "a", "namespace": "shop", "labels": {label::CONTROLLER: "shop.test", label::OWNER: uid},
            "annotations": {mark::ORDER: "0"}}, "data": {"k": "dg=="}, "type": null});
        let secret = Desired::from_value(ResourceType::of::<Secret>(), body, None).unwrap();
        let content = Digest::of(&secret.body).unwrap();
        assert_eq!(secrecy::plain(content), "9a2f95de2b8effb768e43de901f12985");
        assert_eq!(DigestKey::from_bytes(&[7; 32]).digest(content), "60528a91da1d58a8cca9ddf20fcd90bc");
    }

    /// A changed token restarts every database of every installation.
    #[test]
    fn the_token_in_a_pod_template_never_changes() {
        let body = json!({"metadata": {"name": "a", "namespace": "shop"}, "stringData": {"k": "v"}});
        let secret = Desired::from_value(ResourceType::of::<Secret>(), body, None).unwrap();
        let digest = Digest::of(&secret.content()).unwrap().as_bytes().to_vec();
        let contents = [Content { id: "Secret a".into(), digest }];
        let stamp = Stamp::next(&DigestKey::from_bytes(&[7; 32]), &contents, None);
        assert_eq!(stamp.token(), "35f0f43632b7a6f104ed8057310ab833");
    }
}
