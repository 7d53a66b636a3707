//! Objects of the namespace: created, changed, waited for and deleted as users do.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::ResourceQuota;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::World;
use crate::error::Result;
use crate::eventually::eventually;

/// The ResourceQuota that keeps pods from being started.
const NO_PODS: &str = "none";

/// A kind whose objects live in namespaces.
pub trait Namespaced:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Serialize + Debug
{
}

impl<K> Namespaced for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Serialize
        + Debug
{
}

impl World {
    /// Creates an object as a user writes it.
    pub async fn put<K: Namespaced>(&self, object: Value) -> kube::Result<K> {
        let object = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
        self.namespace.api().create(&PostParams::default(), &object).await
    }

    /// Reads an object.
    pub async fn get<K: Namespaced>(&self, name: &str) -> kube::Result<K> {
        self.namespace.api::<K>().get(name).await
    }

    /// Changes an object as a user does, by a merge patch.
    pub async fn change<K: Namespaced>(&self, name: &str, patch: Value) -> kube::Result<K> {
        self.namespace.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
    }

    /// Changes an object of the operator as somebody else does, by a strategic merge patch: lists are merged
    /// by their keys.
    pub async fn meddle<K: Namespaced>(&self, name: &str, patch: Value) -> kube::Result<K> {
        self.namespace.api::<K>().patch(name, &PatchParams::default(), &Patch::Strategic(patch)).await
    }

    /// Deletes an object, and does not wait until it is gone.
    pub async fn delete<K: Namespaced>(&self, name: &str) -> kube::Result<()> {
        self.namespace.api::<K>().delete(name, &DeleteParams::default()).await.map(drop)
    }

    /// Waits until an object exists and is as it should be, and returns it.
    pub async fn see<K: Namespaced>(&self, name: &str, what: &str, is: impl Fn(&K) -> bool) -> Result<K> {
        let api = self.namespace.api::<K>();
        eventually(format!("{} {name}: {what}", K::kind(&())), || async {
            match api.get_opt(name).await {
                Ok(Some(found)) if is(&found) => Ok(found),
                Ok(found) => Err(json!(found).to_string()),
                Err(error) => Err(error.to_string()),
            }
        })
        .await
    }

    /// Waits until there is no such object.
    pub async fn gone<K: Namespaced>(&self, name: &str) -> Result<()> {
        let api = self.namespace.api::<K>();
        eventually(format!("{} {name} to go", K::kind(&())), || async {
            match api.get_opt(name).await {
                Ok(None) => Ok(()),
                Ok(Some(found)) => Err(json!(found.meta()).to_string()),
                Err(error) => Err(error.to_string()),
            }
        })
        .await
    }

    /// Waits until a condition in the status of an object has this value for the present generation, with a
    /// message that contains `words`. Returns its reason and message.
    pub async fn condition<K: Namespaced>(
        &self,
        name: &str,
        kind: &str,
        value: &str,
        words: &str,
    ) -> Result<(String, String)> {
        let api = self.namespace.api::<K>();
        eventually(format!("{} {name} is {kind}={value} {words}", K::kind(&())), || async {
            let object = api.get(name).await.map_err(|error| error.to_string())?;
            let object = serde_json::to_value(object).map_err(|error| error.to_string())?;
            let found = condition(&object["status"], kind);
            let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
            let present = found["observedGeneration"] == object["metadata"]["generation"];
            if present && found["status"] == value && text("message").contains(words) {
                Ok((text("reason"), text("message")))
            } else {
                Err(format!("{:?}", object["status"]))
            }
        })
        .await
    }

    /// Objects of a kind that is known by its name only.
    pub fn objects(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.env.client(), self.namespace.name(), &resource)
    }

    /// All events about objects of this name.
    pub async fn events(&self, about: &str) -> kube::Result<Vec<Event>> {
        let mut events = self.namespace.api::<Event>().list(&ListParams::default()).await?.items;
        events.retain(|event| {
            event.regarding.as_ref().and_then(|regarding| regarding.name.as_deref()) == Some(about)
        });
        Ok(events)
    }

    /// Keeps new pods from being started in this namespace until [`allow_pods`](Self::allow_pods); those that
    /// run go on.
    pub async fn forbid_pods(&self) -> Result<()> {
        let quotas = self.namespace.api::<ResourceQuota>();
        let mut none = ResourceQuota::default();
        none.metadata.name = Some(NO_PODS.to_owned());
        let hard =
            [("pods".to_owned(), k8s_openapi::apimachinery::pkg::api::resource::Quantity("0".to_owned()))];
        none.spec.get_or_insert_default().hard = Some(hard.into());
        quotas
            .create(&PostParams::default(), &none)
            .await
            .map_err(crate::Error::api(format!("creating ResourceQuota {}", none.name_any())))?;
        self.see(NO_PODS, "in force", |quota: &ResourceQuota| {
            quota.status.as_ref().is_some_and(|status| status.used.is_some())
        })
        .await
        .map(drop)
    }

    /// Lets pods be started again.
    pub async fn allow_pods(&self) -> kube::Result<()> {
        self.delete::<ResourceQuota>(NO_PODS).await
    }
}

/// The condition of this type in a status; `Null` if there is none.
pub fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let all = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_found_by_its_type() {
        let status = json!({"conditions": [{"type": "Ready", "status": "True"}, {"type": "Failed", "status": "False"}]});
        assert_eq!(condition(&status, "Failed")["status"], "False");
        assert!(condition(&status, "Progressing").is_null());
        assert!(condition(&Value::Null, "Ready").is_null());
    }
}
