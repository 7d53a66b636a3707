//! Objects of a former operator that wrote or controlled a planned object: found, verified, and deleted if
//! they would go on writing.
//!
//! It promises: a writer counts only if it belongs to our owner, and an object counts as written by it only
//! if the writer controls it, or names it and nobody controls it; the label of an inherited object is set
//! before its writer is deleted, so that a crash in between loses nothing; and no object is deleted together
//! with its writer.

use serde_json::Value;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::{Meta, Uid};
use windlass_runtime::resource::ResourceType;

use super::run::Run;
use crate::error::NodeError;
use crate::names::label::OWNER;
use crate::plan::Predecessor;
use crate::plan::desired::Desired;
use crate::plan::node::Place;

/// An object of our owner that wrote another object.
pub(super) struct Writer {
    resource: ResourceType,
    key: ObjectKey,
    uid: Uid,
    /// True if its spec names the object that it is declared to have written.
    names_it: bool,
    /// True if it only controlled the object, and stays after the takeover.
    stays: bool,
}

impl Writer {
    /// Returns whether an object was written by this writer, and by nobody else.
    pub(super) fn wrote(&self, meta: &Meta) -> bool {
        meta.controller().map_or(self.names_it, |controller| controller.uid == self.uid)
    }
}

impl Run<'_> {
    /// Returns the existing writers of a node's object that belong to our owner.
    pub(super) async fn writers_of(&self, place: &Place, of: &ObjectKey) -> Result<Vec<Writer>, NodeError> {
        let mut writers = Vec::new();
        for Predecessor { resource, name, stays } in &place.options.predecessors {
            let namespace = of.namespace().filter(|_| resource.namespaced).map(Into::into);
            let key = ObjectKey::new(namespace, &**name);
            let Some(found) = self.applier.writer.read(resource, &key).await? else { continue };
            let uid = found["metadata"]["uid"].as_str().and_then(|uid| uid.parse().ok());
            if let Some(uid) = uid.filter(|_| belongs_to(&found, self.owner.uid, *stays)) {
                let names_it = names(&found["spec"], of.name());
                writers.push(Writer { resource: resource.clone(), key, uid, names_it, stays: *stays });
            }
        }
        Ok(writers)
    }

    /// Takes over the object that these writers wrote, as it was read, and deletes the writers; returns its
    /// new state.
    pub(super) async fn inherit(
        &self,
        desired: &Desired,
        found: Value,
        writers: &[Writer],
    ) -> Result<Value, NodeError> {
        let refers = |writer: &Writer| references(&found).any(|one| one["uid"] == *writer.uid.to_string());
        // The owner reference is dropped before the writer is deleted: otherwise the garbage collector would
        // delete the object too.
        let gone: Vec<Uid> =
            writers.iter().filter(|writer| refers(writer)).map(|writer| writer.uid).collect();
        self.applier.writer.claim(desired, &found, self.owner.uid, &gone).await?;
        self.stop(writers).await?;
        let now = self.applier.writer.read(&desired.resource, &desired.key).await?;
        now.ok_or_else(|| NodeError::conflict("it was deleted during the reconcile"))
    }

    /// Deletes the writers of an object that is already ours.
    pub(super) async fn stop_writers_of(&self, place: &Place, of: &ObjectKey) -> Result<(), NodeError> {
        let writers = self.writers_of(place, of).await?;
        self.stop(&writers).await
    }

    async fn stop(&self, writers: &[Writer]) -> Result<(), NodeError> {
        for Writer { resource, key, uid, .. } in writers.iter().filter(|writer| !writer.stays) {
            self.applier.writer.delete(resource, key, *uid).await?;
            tracing::info!(object = %format!("{} {key}", resource.kind), "deleted: its object was taken over");
        }
        Ok(())
    }
}

fn references(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}

/// Returns whether an object belongs to an owner: by its controller reference, or, if it has none and stays,
/// by our label. (An object that outlives its owner has only the label. But anybody can copy a label, so a
/// label alone is no reason to delete.)
fn belongs_to(object: &Value, owner: Uid, stays: bool) -> bool {
    let owner = owner.to_string();
    match references(object).find(|one| one["controller"] == true) {
        Some(controller) => controller["uid"] == *owner,
        None => stays && object["metadata"]["labels"][OWNER] == *owner,
    }
}

/// Returns whether any string in a value equals this name.
fn names(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => text == name,
        Value::Array(items) => items.iter().any(|item| names(item, name)),
        Value::Object(members) => members.values().any(|member| names(member, name)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_belongs_to_its_controller_or_without_one_to_the_writer_that_names_it() {
        let uid: Uid = "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d".parse().unwrap();
        let meta = |controller: Option<&str>| -> Meta {
            let reference = |uid| json!({"apiVersion": "v1", "kind": "Keeper", "name": "k", "uid": uid, "controller": true});
            let references: Vec<_> = controller.map(reference).into_iter().collect();
            let uid = "1b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d";
            serde_json::from_value(json!({"name": "a", "uid": uid, "ownerReferences": references})).unwrap()
        };
        let resource = ResourceType::of::<k8s_openapi::api::core::v1::ConfigMap>();
        let writer = |names_it| Writer {
            resource: resource.clone(),
            key: ObjectKey::namespaced("shop", "keeper"),
            uid,
            names_it,
            stays: true,
        };
        let his = uid.to_string();
        assert!(writer(false).wrote(&meta(Some(&his))) && writer(true).wrote(&meta(None)));
        assert!(!writer(false).wrote(&meta(None)));
        assert!(!writer(true).wrote(&meta(Some("9b1f0000-9b1f-4f0e-8a63-7a5d1f0c2e9d"))), "another has it");
    }

    #[test]
    fn a_name_is_found_anywhere_in_the_spec_of_a_writer() {
        let spec = json!({"secretName": "tls", "dnsNames": ["core"], "issuerRef": {"name": "internal"}});
        assert!(names(&spec, "tls") && names(&spec, "core") && names(&spec, "internal"));
        assert!(!names(&spec, "secretName") && !names(&spec, "tl"));
        assert!(!names(&Value::Null, "tls"));
    }

    #[test]
    fn a_writer_belongs_to_an_owner_that_controls_or_labels_it() {
        let owner: Uid = "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d".parse().unwrap();
        let kept_by = |controller: bool, uid: &str| json!({"metadata": {"ownerReferences": [{"uid": uid, "controller": controller}]}});
        let other = "9b1f0000-9b1f-4f0e-8a63-7a5d1f0c2e9d";
        for stays in [true, false] {
            assert!(belongs_to(&kept_by(true, &owner.to_string()), owner, stays));
            assert!(!belongs_to(&kept_by(false, &owner.to_string()), owner, stays));
            assert!(!belongs_to(&kept_by(true, other), owner, stays));
            assert!(!belongs_to(&json!({"metadata": {}}), owner, stays));
        }
        let mut labelled = json!({"metadata": {"labels": {OWNER: owner.to_string()}}});
        assert!(belongs_to(&labelled, owner, true));
        assert!(!belongs_to(&labelled, owner, false), "nothing is deleted for a label");
        labelled["metadata"]["ownerReferences"] = kept_by(true, other)["metadata"]["ownerReferences"].clone();
        assert!(!belongs_to(&labelled, owner, true), "a label that was copied");
    }
}
