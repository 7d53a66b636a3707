//! All writes of planned objects: each with its precondition, each in the name of the controller.

use serde::de::IgnoredAny;
use serde_json::{Value, json};
use windlass_runtime::client::{Apply, Client, ClientError, Delete, Deletion, Failure, Patch, Propagation};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::Uid;
use windlass_runtime::resource::ResourceType;

use super::managed_fields;
use crate::names::MARKS;
use crate::names::label::OWNER;
use crate::plan::Conflicts;
use crate::plan::desired::Desired;

/// Writes planned objects.
pub(crate) struct Writer {
    pub(crate) client: Client,
    /// The field manager: the controller's name.
    pub(crate) manager: String,
    pub(crate) predecessors: Vec<String>,
}

impl Writer {
    /// Creates an object, if there is none of that name: otherwise a [`Conflict`](Failure::Conflict), and nothing is touched.
    pub(crate) async fn create(&self, desired: &Desired) -> Result<(), ClientError> {
        self.apply(&desired.resource, &desired.key, &creation(desired), Conflicts::Take).await
    }

    /// Applies to this incarnation of an object: if it was deleted meanwhile, a [`Conflict`](Failure::Conflict).
    pub(crate) async fn update(
        &self,
        desired: &Desired,
        uid: Uid,
        conflicts: Conflicts,
    ) -> Result<(), ClientError> {
        let mut body = desired.body.clone();
        body["metadata"]["uid"] = uid.to_string().into();
        self.apply(&desired.resource, &desired.key, &body, conflicts).await
    }

    /// Puts our marks on a generated object, and nothing else. In a name of its own: an apply in the name that created it
    /// would take away the content, which the marks do not have.
    pub(crate) async fn mark(&self, shell: &Desired, uid: Uid) -> Result<(), ClientError> {
        let mut body = shell.body.clone();
        body["metadata"]["uid"] = uid.to_string().into();
        let apply = Apply::by(format!("{}{MARKS}", self.manager)).force();
        let objects = self.client.objects_of::<IgnoredAny>(shell.resource.clone());
        objects.apply(&shell.key, &body, &apply).await.map(|_| ())
    }

    /// Deletes this incarnation of an object. What makes pods goes after them, so that what they use can go after it.
    pub(crate) async fn delete(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        uid: Uid,
    ) -> Result<Deletion, ClientError> {
        let foreground = matches!(&*resource.group, "apps" | "batch");
        let propagation = if foreground { Propagation::Foreground } else { Propagation::Background };
        self.delete_with(resource, key, uid, propagation).await
    }

    /// Deletes this incarnation of an object, but nothing that it owns.
    pub(crate) async fn delete_alone(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        uid: Uid,
    ) -> Result<Deletion, ClientError> {
        self.delete_with(resource, key, uid, Propagation::Orphan).await
    }

    /// The object as the server has it.
    pub(crate) async fn read(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
    ) -> Result<Option<Value>, ClientError> {
        self.client.objects_of::<Value>(resource.clone()).find(key).await
    }

    /// Makes the fields of earlier managers ours, as the object was read: so that what we do not declare can go.
    pub(crate) async fn take_over(&self, desired: &Desired, live: &Value) -> Result<(), ClientError> {
        let managed = &live["metadata"]["managedFields"];
        let api_version = desired.resource.api_version();
        let Some(managed) =
            managed_fields::takeover(managed, &self.manager, &api_version, &self.predecessors)
        else {
            return Ok(());
        };
        self.write_managed(desired, live, managed).await
    }

    /// Takes the reference to its owner from an object, as it was read, so that the garbage collector does not take the object along.
    pub(crate) async fn disown(
        &self,
        desired: &Desired,
        live: &Value,
        owner: Uid,
    ) -> Result<(), ClientError> {
        let metadata = &live["metadata"];
        let all = metadata["ownerReferences"].as_array().cloned().unwrap_or_default();
        let others: Vec<&Value> = all.iter().filter(|one| one["uid"] != *owner.to_string()).collect();
        if others.len() == all.len() {
            return Ok(());
        }
        let patch = json!({"metadata": {
            "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"], "ownerReferences": others,
        }});
        let objects = self.client.objects_of::<IgnoredAny>(desired.resource.clone());
        objects.patch(&desired.key, &Patch::Merge(patch), &self.manager).await.map(|_| ())
    }

    /// Says on an object, as it was read, that it belongs to an owner, and no longer to these: nothing else of it changes.
    pub(crate) async fn claim(
        &self,
        desired: &Desired,
        live: &Value,
        owner: Uid,
        not: &[Uid],
    ) -> Result<(), ClientError> {
        let metadata = &live["metadata"];
        let mut patch = json!({"metadata": {
            "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"], "labels": {OWNER: owner.to_string()},
        }});
        if !not.is_empty() {
            let all = metadata["ownerReferences"].as_array().into_iter().flatten();
            let others = all.filter(|one| !not.iter().any(|uid| one["uid"] == *uid.to_string()));
            patch["metadata"]["ownerReferences"] = others.cloned().collect();
        }
        let objects = self.client.objects_of::<IgnoredAny>(desired.resource.clone());
        objects.patch(&desired.key, &Patch::Merge(patch), &self.manager).await.map(|_| ())
    }

    /// Makes ours what somebody has put in the place of our fields, as the object was read; whether there was any.
    pub(crate) async fn make_way(&self, desired: &Desired, live: &Value) -> Result<bool, ClientError> {
        let (metadata, api_version) = (&live["metadata"], desired.resource.api_version());
        let managed =
            managed_fields::make_way(&metadata["managedFields"], &self.manager, &api_version, &desired.body);
        let Some(managed) = managed else { return Ok(false) };
        self.write_managed(desired, live, managed).await?;
        Ok(true)
    }

    async fn write_managed(
        &self,
        desired: &Desired,
        live: &Value,
        managed: Value,
    ) -> Result<(), ClientError> {
        let metadata = &live["metadata"];
        let patch = json!({"metadata": {
            "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"], "managedFields": managed,
        }});
        let objects = self.client.objects_of::<IgnoredAny>(desired.resource.clone());
        objects.patch(&desired.key, &Patch::Merge(patch), &self.manager).await.map(|_| ())
    }

    async fn apply(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        body: &Value,
        conflicts: Conflicts,
    ) -> Result<(), ClientError> {
        let apply = Apply::by(&*self.manager);
        let apply = if conflicts == Conflicts::Take { apply.force() } else { apply };
        self.client.objects_of::<IgnoredAny>(resource.clone()).apply(key, body, &apply).await.map(|_| ())
    }

    async fn delete_with(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        uid: Uid,
        propagation: Propagation,
    ) -> Result<Deletion, ClientError> {
        let objects = self.client.objects_of::<IgnoredAny>(resource.clone());
        match objects.delete(key, &Delete::incarnation(uid).propagation(propagation)).await {
            // Gone already. A conflict says that another has its name by now, or that the server was busy: only the next look
            // can tell them apart.
            Err(error) if *error.failure() == Failure::NotFound => Ok(Deletion::Done),
            other => other,
        }
    }
}

/// The body of the apply that creates an object.
pub(crate) fn creation(desired: &Desired) -> Value {
    let mut body = desired.body.clone();
    // No object ever has this version, so nothing that exists is applied to.
    body["metadata"]["resourceVersion"] = "1".into();
    body
}

/// Returns whether a write met another incarnation than the one it was meant for. Where there is none at all, that is a conflict; where there
/// is another, the server says that the uid cannot be changed.
pub(crate) fn is_another(failure: &Failure) -> bool {
    matches!(failure, Failure::Invalid(causes) if causes.iter().any(|cause| cause.field == "metadata.uid"))
}

/// Returns whether the server refused a write because a field cannot be changed: by the fields that it names, never by its words.
pub(crate) fn is_immutable(resource: &ResourceType, failure: &Failure) -> bool {
    let Failure::Invalid(causes) = failure else { return false };
    let fixed: &[(&str, &str)] = match (&*resource.group, &*resource.kind) {
        ("apps", "Deployment" | "DaemonSet") => &[("spec.selector", "FieldValueInvalid")],
        ("apps", "StatefulSet") | ("", "PersistentVolumeClaim") => &[("spec", "FieldValueForbidden")],
        ("batch", "Job") => &[
            ("spec.template", "FieldValueInvalid"),
            ("spec.selector", "FieldValueInvalid"),
            ("spec.completions", "FieldValueInvalid"),
        ],
        ("", "Service") => {
            &[("spec.clusterIPs[0]", "FieldValueInvalid"), ("spec.clusterIP", "FieldValueInvalid")]
        }
        ("", "Secret" | "ConfigMap") => &[
            ("data", "FieldValueForbidden"),
            ("type", "FieldValueInvalid"),
            ("immutable", "FieldValueForbidden"),
        ],
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            &[("roleRef", "FieldValueInvalid")]
        }
        _ => &[],
    };
    causes
        .iter()
        .any(|cause| fixed.iter().any(|(field, reason)| cause.field == *field && cause.reason == *reason))
}
