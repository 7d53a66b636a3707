//! Observations from outside: the objects of a namespace, and whether an operator has come to rest.

use std::collections::BTreeMap;

use anyhow::Result;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use windlass_testenv::eventually;

use super::{Corner, Operator};

/// Group, version and kind of all objects that a test may leave behind.
const KINDS: [(&str, &str, &str); 18] = [
    ("", "v1", "ServiceAccount"),
    ("", "v1", "ConfigMap"),
    ("", "v1", "Secret"),
    ("", "v1", "PersistentVolumeClaim"),
    ("", "v1", "Service"),
    ("", "v1", "Pod"),
    ("", "v1", "Event"),
    ("apps", "v1", "StatefulSet"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "ReplicaSet"),
    ("apps", "v1", "ControllerRevision"),
    ("batch", "v1", "Job"),
    ("networking.k8s.io", "v1", "Ingress"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    ("test.windlass.dev", "v1", "Shop"),
    ("test.windlass.dev", "v1", "Bundle"),
];

/// The kinds among them that an operator's plan can hold.
const PLANNED: [&str; 10] = [
    "ServiceAccount",
    "ConfigMap",
    "Secret",
    "PersistentVolumeClaim",
    "Service",
    "StatefulSet",
    "Deployment",
    "Job",
    "Ingress",
    "NetworkPolicy",
];

/// An object by kind and name.
pub(crate) type Objects = BTreeMap<String, Value>;

impl Corner {
    /// Returns the API of a kind that is known by its name only.
    pub(crate) fn of_kind(&self, kind: &str) -> Api<DynamicObject> {
        let known = KINDS.iter().find(|(_, _, known)| *known == kind);
        let (group, version, kind) = known.unwrap_or_else(|| panic!("the kit does not look at {kind}"));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.env.client(), self.namespace.name(), &resource)
    }

    /// Returns everything in the namespace, as stored on the server.
    pub(crate) async fn everything(&self) -> Result<Objects> {
        let mut found = Objects::new();
        for (_, _, kind) in KINDS {
            for object in self.of_kind(kind).list(&ListParams::default()).await? {
                let name = object.metadata.name.clone().unwrap_or_default();
                found.insert(format!("{kind} {name}"), serde_json::to_value(object)?);
            }
        }
        Ok(found)
    }

    /// Returns the existing objects of the kinds that plans can hold, each with its uid and generation.
    pub(crate) async fn standing(&self) -> Result<BTreeMap<String, (String, i64)>> {
        let all = self.everything().await?;
        let planned = all.into_iter().filter(|(id, _)| {
            let (kind, name) = id.split_once(' ').unwrap_or_default();
            // Every namespace has these.
            PLANNED.contains(&kind) && !matches!(name, "kube-root-ca.crt" | "default" | "operator")
        });
        let meta = |object: &Value| {
            let meta = &object["metadata"];
            (meta["uid"].as_str().unwrap_or_default().to_owned(), meta["generation"].as_i64().unwrap_or(0))
        };
        Ok(planned.map(|(id, object)| (id, meta(&object))).collect())
    }

    /// Returns an object as stored on the server.
    pub(crate) async fn object(&self, kind: &str, name: &str) -> Result<Value> {
        Ok(serde_json::to_value(self.of_kind(kind).get(name).await?)?)
    }

    /// Merges a patch into an object, as a user does.
    pub(crate) async fn change(&self, kind: &str, name: &str, change: Value) -> Result<Value> {
        let params = PatchParams { field_manager: Some("a-user".into()), ..PatchParams::default() };
        Ok(serde_json::to_value(self.of_kind(kind).patch(name, &params, &Patch::Merge(change)).await?)?)
    }

    /// Deletes an object, as a user does.
    pub(crate) async fn delete(&self, kind: &str, name: &str) -> Result<()> {
        self.of_kind(kind).delete(name, &kube::api::DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until there is no such object.
    pub(crate) async fn gone(&self, kind: &str, name: &str) -> Result<()> {
        let objects = self.of_kind(kind);
        eventually(format!("{kind} {name} is gone"), || async {
            match objects.get_opt(name).await {
                Ok(None) => Ok(()),
                Ok(Some(object)) => Err(format!(
                    "it is there, held by {:?}: {:?}",
                    object.metadata.finalizers, object.data["status"]
                )),
                Err(error) => Err(error.to_string()),
            }
        })
        .await?;
        Ok(())
    }

    /// Returns the events about an owner: type, reason and note of each, in the order of their names.
    pub(crate) async fn events_of(&self, owner: &str) -> Result<Vec<(String, String, String)>> {
        let all = self.of_kind("Event").list(&ListParams::default()).await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(all
            .iter()
            .filter(|event| event.data["involvedObject"]["name"] == owner)
            .map(|event| {
                (text(&event.data["type"]), text(&event.data["reason"]), text(&event.data["message"]))
            })
            .collect())
    }

    /// Triggers a reconcile of an owner, and waits until it has ended and nothing is left to do.
    pub(crate) async fn look_again(&self, operator: &Operator, kind: &str, name: &str) -> Result<()> {
        let before = operator.reconciles();
        let nudge = json!({"metadata": {"annotations": {"test.windlass.dev/nudge": before.to_string()}}});
        self.change(kind, name, nudge).await?;
        operator.looked_after(before).await
    }
}

impl Operator {
    /// Returns the number of reconciles of all controllers.
    pub(crate) fn reconciles(&self) -> f64 {
        self.sum("controller_runtime_reconcile_total")
    }

    /// Waits until the operator has reconciled more often than that, and rests.
    pub(crate) async fn looked_after(&self, before: f64) -> Result<()> {
        eventually("the operator has looked, and rests", || async {
            let (reconciles, busy) = (self.reconciles(), self.busy());
            if reconciles > before && busy == 0.0 {
                return Ok(());
            }
            Err(format!("{reconciles} reconciles, {before} before; {busy} are under way or due"))
        })
        .await?;
        Ok(())
    }

    /// Returns the number of keys that are queued or being reconciled.
    fn busy(&self) -> f64 {
        self.sum("workqueue_depth") + self.sum("controller_runtime_active_workers")
    }

    /// Returns the sum of a metric over all of its labels.
    pub(crate) fn sum(&self, start: &str) -> f64 {
        let text = self.metrics();
        let lines = text.lines().filter(|line| line.starts_with(start));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }
}
