//! The planned object, completed with everything that all objects of a plan have.

use serde_json::json;
use windlass_runtime::cache::Digest;

use super::run::Run;
use crate::error::{NodeError, PlanError, Reason};
use crate::live::Live;
use crate::names::{label, mark};
use crate::plan::desired::Desired;
use crate::plan::digest::{self, Stamp};
use crate::plan::drawn::Place;
use crate::plan::node::Visit as _;

impl Run<'_> {
    /// The planned object with mutations, marks, the token of its dependencies and its digest. The first error stops.
    pub(super) async fn completed(
        &self,
        place: &Place,
        planned: &Desired,
        live: Option<&Live>,
    ) -> Result<Desired, NodeError> {
        let mut desired = planned.clone();
        self.mutate(place, &mut desired)?;
        if desired.makes_pods() && desired.resource.group == "apps" {
            desired.label_pods(label::CONTROLLER, self.applier.name);
            let contents = self.contents_of(place);
            if !contents.is_empty() {
                let before = live.and_then(|live| live.metadata.annotations.get(mark::DEPENDENCIES));
                let key = self.applier.keyring.get().await?;
                let stamp = Stamp::next(key, &contents, before.map(|stamp| &**stamp));
                desired.annotate_pods(mark::TEMPLATE, stamp.token());
                desired.annotate(mark::DEPENDENCIES, stamp.to_string());
            }
        }
        self.mark_as_ours(place, &mut desired)?;
        let content = Digest::of(&desired.body).map_err(PlanError::from)?;
        let digest = if desired.is_secret() {
            self.applier.keyring.get().await?.digest(content)
        } else {
            digest::plain(content)
        };
        desired.annotate(mark::DIGEST, digest);
        Ok(desired)
    }

    /// Puts labels, order and ownership on an object.
    pub(super) fn mark_as_ours(&self, place: &Place, desired: &mut Desired) -> Result<(), NodeError> {
        desired.label(label::CONTROLLER, self.applier.name);
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
        if self.owner.can_be_referred_to_from(namespace.as_deref()) {
            let reference = self
                .owner
                .reference_for(namespace.as_deref())
                .map_err(|error| NodeError::terminal(Reason::DrawFailed, error.to_string()))?;
            desired.body["metadata"]["ownerReferences"] = json!([reference]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::digest::{Content, DigestKey};
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
