//! What was asked for, completed: with everything that all objects of a plan have.

use serde_json::{Value, json};
use windlass_runtime::cache::Digest;

use super::node::Visitor;
use crate::desired::Desired;
use crate::error::{DrawError, NodeError, Reason};
use crate::live::Live;
use crate::names::{label, mark};
use crate::plan::{Node, Verb};
use crate::secrecy::{self, Content, Stamp};

impl Visitor<'_> {
    /// What was asked for, with everything that all objects of a plan have. The first error stops.
    pub(crate) async fn complete(
        &self,
        node: &Node,
        planned: &Desired,
        live: Option<&Live>,
    ) -> Result<Desired, NodeError> {
        let broken = |error: DrawError| NodeError::terminal(Reason::DrawFailed, error.to_string());
        let mut desired = planned.clone();
        for mutation in node.draft.mutations.iter().chain(&self.machine.mutations) {
            mutation(&mut desired).map_err(broken)?;
        }
        if desired.makes_pods() && desired.resource.group == "apps" {
            desired.label_pods(label::CONTROLLER, self.machine.name);
            let contents: Vec<Content> = {
                let all = self.contents.lock();
                node.after.iter().filter_map(|index| all[*index].clone()).collect()
            };
            if !contents.is_empty() {
                let before = live.and_then(|live| live.metadata.annotations.get(mark::DEPENDENCIES));
                let stamp =
                    Stamp::next(self.machine.keyring.get().await?, &contents, before.map(|stamp| &**stamp));
                desired.annotate_pods(mark::TEMPLATE, stamp.token());
                desired.annotate(mark::DEPENDENCIES, stamp.to_string());
            }
        }
        self.mark_as_ours(node, &mut desired)?;
        let content = Digest::of(&desired.body).map_err(|error| broken(error.into()))?;
        let digest = if desired.is_secret() {
            self.machine.keyring.get().await?.digest(content)
        } else {
            secrecy::plain(content)
        };
        desired.annotate(mark::DIGEST, digest);
        Ok(desired)
    }

    /// Labels, order, and whose it is.
    pub(super) fn mark_as_ours(&self, node: &Node, desired: &mut Desired) -> Result<(), NodeError> {
        desired.label(label::CONTROLLER, self.machine.name);
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

    /// What others depend on: known before anything is written.
    pub(super) fn offer_content(&self, node: &Node, desired: &Desired) -> Result<(), NodeError> {
        if desired.has_content() {
            let digest = Digest::of(&desired.content())
                .map_err(|error| NodeError::terminal(Reason::DrawFailed, error.to_string()))?;
            let content = Content { id: node.draft.id.clone(), digest: digest.as_bytes().to_vec() };
            self.contents.lock()[node.index] = Some(content);
        }
        Ok(())
    }
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
