//! Completes a planned object with everything that all objects of a plan have. Pure, except for reading the
//! digest key.

use serde_json::json;
use windlass_runtime::cache::Digest;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::run::Run;
use crate::error::{NodeError, PlanError, Reason};
use crate::live::Live;
use crate::names::mark::FIRST;
use crate::names::{label, mark};
use crate::plan::desired::Desired;
use crate::plan::digest::{self, Content, DigestKey, Stamp};
use crate::plan::node::Place;
use crate::plan::options::Mutation;
use crate::plan::owner::OwnerView;

impl Run<'_> {
    /// Returns the planned object with mutations, marks, the token of its dependencies and its digest. The
    /// first error stops.
    pub(super) async fn completed(
        &self,
        place: &Place,
        planned: &Desired,
        live: Option<&Live>,
    ) -> Result<Desired, NodeError> {
        let completion = self.completion();
        let mut desired = planned.clone();
        completion.mutate(place, &mut desired)?;
        let contents = self.contents_of(place);
        let keyed = needs_key(&desired, &contents);
        let key = if keyed { Some(self.applier.keyring.get().await?) } else { None };
        let stamp = live.and_then(|live| live.metadata.annotations.get(mark::DEPENDENCIES));
        completion.complete(place, desired, &contents, key, stamp.map(|stamp| &**stamp))
    }

    /// Returns the completion for the objects of this run.
    pub(super) fn completion(&self) -> Completion<'_> {
        let (name, mutations) = (self.applier.name, &*self.applier.mutations);
        Completion { name, owner: self.owner, mutations }
    }
}

/// Completes the objects of one owner's plan.
pub(crate) struct Completion<'a> {
    /// The controller's name.
    pub(crate) name: &'static str,
    pub(crate) owner: &'a OwnerView,
    /// Changes to every object of the controller, made after those of its node.
    pub(crate) mutations: &'a [Mutation],
}

impl Completion<'_> {
    /// Makes the changes that the node and the controller ask for. The first error stops.
    pub(crate) fn mutate(&self, place: &Place, desired: &mut Desired) -> Result<(), NodeError> {
        let mut all = place.options.mutations.iter().chain(self.mutations);
        Ok(all.try_for_each(|mutation| mutation(desired))?)
    }

    /// Returns the object as it is applied: with the token of the contents that flow into it, the marks of
    /// its owner, and its digest. `live_stamp` is the annotation of the live object. The key must be passed
    /// if it [is needed](needs_key).
    pub(crate) fn complete(
        &self,
        place: &Place,
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
        self.mark_as_ours(place, &mut desired)?;
        let content = Digest::of(&desired.body).map_err(PlanError::from)?;
        let digest = if desired.is_secret() { key()?.digest(content) } else { digest::plain(content) };
        desired.annotate(mark::DIGEST, digest);
        Ok(desired)
    }

    /// Adds labels, order and ownership to an object.
    pub(crate) fn mark_as_ours(&self, place: &Place, desired: &mut Desired) -> Result<(), NodeError> {
        desired.label(label::CONTROLLER, self.name);
        desired.label(label::OWNER, self.owner.uid.to_string());
        desired.annotate(mark::ORDER, place.order.to_string());
        let namespace = desired.key.namespace().map(str::to_owned);
        let retained = place.retained();
        match place.options.retain {
            Some(false) => desired.annotate(mark::RETAIN, "false"),
            _ if retained => desired.annotate(mark::RETAIN, self.owner.title()),
            None if place.node.outlives_plan() => desired.annotate(mark::RETAIN, "unplanned"),
            _ => {}
        }
        if retained {
            return Ok(());
        }
        if place.options.pruned_first {
            desired.annotate(mark::PRUNE, FIRST);
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

    /// Returns the marks of an object, without its content.
    pub(crate) fn marks(
        &self,
        place: &Place,
        resource: &ResourceType,
        key: &ObjectKey,
    ) -> Result<Desired, NodeError> {
        let body = json!({"metadata": {"name": key.name()}});
        let mut marks = Desired::from_value(resource.clone(), body, key.namespace())?;
        self.mark_as_ours(place, &mut marks)?;
        Ok(marks)
    }
}

/// Returns whether an object has pods that are replaced when the content of a dependency changes.
fn rolls(desired: &Desired) -> bool {
    desired.makes_pods() && desired.resource.group == "apps"
}

/// Returns whether a digest of the object, or of the contents that flow into it, has to be keyed.
fn needs_key(desired: &Desired, contents: &[Content]) -> bool {
    desired.is_secret() || (rolls(desired) && !contents.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(digest::plain(content), "9a2f95de2b8effb768e43de901f12985");
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
