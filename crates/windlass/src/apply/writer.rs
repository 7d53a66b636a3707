//! All writes of planned objects: each with its precondition and the controller's field manager.

use serde::de::IgnoredAny;
use serde_json::{Value, json};
use windlass_runtime::client::{Apply, Client, ClientError, Delete, Deletion, Failure, Patch, Propagation};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::{ResourceVersion, Uid};
use windlass_runtime::resource::ResourceType;

use super::managed_fields::{self, Takeover};
use crate::names::label::OWNER;
use crate::names::mark::DATA_VERSION;
use crate::names::{MARKS, RECORDS};
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
    /// Creates an object. If an object of that name exists, the result is a [`Conflict`](Failure::Conflict),
    /// and nothing is changed.
    pub(crate) async fn create(&self, desired: &Desired) -> Result<(), ClientError> {
        self.apply(&desired.resource, &desired.key, &creation(desired), Conflicts::Take).await
    }

    /// Applies to this incarnation of an object. If it was deleted meanwhile, the result is a
    /// [`Conflict`](Failure::Conflict).
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

    /// Adds our marks to a generated object, and nothing else. The marks have a field manager of their own:
    /// an apply by the manager that created the object would remove the content, which the marks do not
    /// contain.
    pub(crate) async fn mark(&self, shell: &Desired, uid: Uid) -> Result<(), ClientError> {
        let mut body = shell.body.clone();
        body["metadata"]["uid"] = uid.to_string().into();
        let apply = Apply::by(format!("{}{MARKS}", self.manager)).force();
        let objects = self.client.objects_of::<IgnoredAny>(shell.resource.clone());
        objects.apply(&shell.key, &body, &apply).await.map(|_| ())
    }

    /// Records the version of the data that this incarnation of an object holds, with a field manager of its
    /// own.
    pub(crate) async fn record(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        uid: Uid,
        version: &str,
    ) -> Result<(), ClientError> {
        let body = json!({
            "apiVersion": resource.api_version(), "kind": resource.kind,
            "metadata": {"name": key.name(), "namespace": key.namespace(), "uid": uid.to_string(),
                "annotations": {DATA_VERSION: version}},
        });
        let apply = Apply::by(format!("{}{RECORDS}", self.manager)).force();
        self.client.objects_of::<IgnoredAny>(resource.clone()).apply(key, &body, &apply).await.map(|_| ())
    }

    /// Deletes this incarnation of an object. A workload is deleted after its pods, so that the objects that
    /// they use can be deleted after it.
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

    /// Deletes this incarnation of an object if it has not changed since it was read.
    pub(crate) async fn delete_unchanged(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        uid: Uid,
        version: &ResourceVersion,
    ) -> Result<(), ClientError> {
        let objects = self.client.objects_of::<IgnoredAny>(resource.clone());
        let unchanged = Delete::incarnation(uid).unchanged_since(version.clone());
        match objects.delete(key, &unchanged).await {
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Deletes this incarnation of an object without the objects that it owns.
    pub(crate) async fn delete_alone(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        uid: Uid,
    ) -> Result<Deletion, ClientError> {
        self.delete_with(resource, key, uid, Propagation::Orphan).await
    }

    /// Reads the object from the server.
    pub(crate) async fn read(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
    ) -> Result<Option<Value>, ClientError> {
        self.client.objects_of::<Value>(resource.clone()).find(key).await
    }

    /// Transfers the fields of our predecessors to our manager, on the object as it was read, so that fields
    /// that we do not declare can be removed. Returns the fields that were taken over, if there are any.
    pub(crate) async fn take_over(
        &self,
        desired: &Desired,
        live: &Value,
    ) -> Result<Option<Takeover>, ClientError> {
        let (managed, api_version) = (&live["metadata"]["managedFields"], desired.resource.api_version());
        let takeover =
            managed_fields::takeover(managed, &self.manager, &api_version, &self.predecessors, &desired.body);
        if let Some(takeover) = &takeover {
            self.write_managed(desired, live, &takeover.managed).await?;
        }
        Ok(takeover)
    }

    /// Removes the owner reference from an object, as it was read, so that the garbage collector does not
    /// delete the object too.
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

    /// Labels an object, as it was read, as belonging to an owner, and removes the references to these
    /// others: nothing else changes.
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

    /// Patches an object as it was read: the patch carries its uid and resource version.
    pub(crate) async fn mend(&self, desired: &Desired, patch: Value) -> Result<(), ClientError> {
        let objects = self.client.objects_of::<IgnoredAny>(desired.resource.clone());
        objects.patch(&desired.key, &Patch::Json(patch), &self.manager).await.map(|_| ())
    }

    async fn write_managed(
        &self,
        desired: &Desired,
        live: &Value,
        managed: &Value,
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
            // The object is gone already. A conflict means that another object has its name by now, or that
            // the server was busy: only the next read can tell.
            Err(error) if *error.failure() == Failure::NotFound => Ok(Deletion::Done),
            other => other,
        }
    }
}

/// Returns the body of the apply that creates an object.
pub(crate) fn creation(desired: &Desired) -> Value {
    let mut body = desired.body.clone();
    // No object ever has this version, so the apply cannot change an existing object.
    body["metadata"]["resourceVersion"] = "1".into();
    body
}

/// Returns whether a write met another incarnation than the intended one. If there is none at all, the server
/// reports a conflict; if there is another, the server reports that the uid cannot be changed.
pub(crate) fn is_another(failure: &Failure) -> bool {
    matches!(failure, Failure::Invalid(causes) if causes.iter().any(|cause| cause.field == "metadata.uid"))
}

/// Returns whether the server refused a write because a field is immutable: decided by the fields that it
/// names, never by the text of its message.
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
