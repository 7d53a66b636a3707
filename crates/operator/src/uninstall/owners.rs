//! The objects of the operator's own kinds: users' objects, with their finalizers.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;
use windlass::names::{FINALIZER, UNDO_FINALIZER};
use windlass_runtime::cache::Selection;
use windlass_runtime::client::{Client, ClientError, Patch};
use windlass_runtime::object::finalizers;
use windlass_runtime::resource::ResourceType;

use super::{failed, key};
use crate::failure::Failure;
use crate::operator::Operator;

/// The kinds of an operator, and the namespaces that an installation watches.
pub(super) struct Owners {
    kinds: Vec<(String, ResourceType)>,
    selection: Selection,
}

/// An object of one of the operator's kinds.
pub(super) struct Owner {
    resource: ResourceType,
    meta: ObjectMeta,
}

#[derive(Deserialize)]
struct Listed {
    metadata: ObjectMeta,
}

impl Owners {
    /// Returns the kinds of an operator. Without a Deployment that says which namespaces are watched, all
    /// namespaces are looked at.
    pub(super) fn of(operator: &Operator, deployment: Option<&Deployment>, namespace: &str) -> Self {
        let kinds = operator.definitions().iter().filter_map(kind).collect();
        let selection = match deployment.and_then(|deployment| watched(deployment, namespace)) {
            Some(namespaces) => Selection::all().in_namespaces(namespaces),
            None => Selection::all(),
        };
        Self { kinds, selection }
    }

    /// Lists the objects of all kinds that are installed.
    pub(super) async fn list(&self, client: &Client) -> Result<Vec<Owner>, Failure> {
        let mut owners = Vec::new();
        for (_, resource) in &self.kinds {
            for meta in self.metas(client, resource).await? {
                owners.push(Owner { resource: resource.clone(), meta });
            }
        }
        Ok(owners)
    }

    /// Returns the number of objects of each kind, with the name of its definition.
    pub(super) async fn count(&self, client: &Client) -> Result<Vec<(String, usize)>, Failure> {
        let mut counts = Vec::new();
        for (definition, resource) in &self.kinds {
            counts.push((definition.clone(), self.metas(client, resource).await?.len()));
        }
        Ok(counts)
    }

    async fn metas(&self, client: &Client, resource: &ResourceType) -> Result<Vec<ObjectMeta>, Failure> {
        match client.objects_of::<Listed>(resource.clone()).list(&self.selection).await {
            Ok(listed) => Ok(listed.into_iter().map(|object| object.metadata).collect()),
            // The kind is not installed.
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            Err(error) => Err(failed(&error)),
        }
    }
}

impl Owner {
    /// Returns the kind, the namespace and the name.
    pub(super) fn title(&self) -> String {
        let name = self.meta.name.as_deref().unwrap_or_default();
        format!("{} {}", self.resource.kind, key(&self.resource, self.meta.namespace.as_deref(), name))
    }

    /// Returns whether the operator has effects outside of the cluster for the object.
    pub(super) fn has_effects(&self) -> bool {
        self.has(UNDO_FINALIZER)
    }

    /// Returns whether the object cannot be deleted without the operator.
    pub(super) fn is_held(&self) -> bool {
        self.has(FINALIZER) || self.has_effects()
    }

    fn has(&self, name: &str) -> bool {
        self.meta.finalizers.as_ref().is_some_and(|all| finalizers::contains(all, name))
    }

    /// Removes the finalizer of the operator.
    pub(super) async fn release(&self, client: &Client, manager: &str) -> Result<(), ClientError> {
        let Some(patch) = finalizers::removal(&self.meta, FINALIZER) else { return Ok(()) };
        let name = self.meta.name.as_deref().unwrap_or_default();
        let key = key(&self.resource, self.meta.namespace.as_deref(), name);
        let objects = client.objects_of::<Value>(self.resource.clone());
        objects.patch(&key, &Patch::Json(patch), manager).await.map(drop)
    }
}

/// Returns a kind in the version in which it is stored: reading that needs no conversion webhook.
fn kind(definition: &CustomResourceDefinition) -> Option<(String, ResourceType)> {
    let spec = &definition.spec;
    let stored = spec.versions.iter().find(|version| version.storage)?;
    let resource = ResourceType {
        group: spec.group.clone().into(),
        version: stored.name.clone().into(),
        kind: spec.names.kind.clone().into(),
        plural: spec.names.plural.clone().into(),
        namespaced: spec.scope == "Namespaced",
    };
    Some((definition.metadata.name.clone()?, resource))
}

/// Returns the namespaces that a Deployment watches; `None` means all.
fn watched(deployment: &Deployment, own: &str) -> Option<Vec<String>> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    let mut variables = pod.containers.iter().flat_map(|container| container.env.iter().flatten());
    let variable = variables.find(|variable| variable.name == "WATCH_NAMESPACE")?;
    match &variable.value {
        Some(names) => {
            let names: Vec<String> =
                names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
            (!names.is_empty()).then_some(names)
        }
        // From the Pod's own namespace.
        None => Some(vec![own.to_owned()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment(env: &Value) -> Deployment {
        let container = json!({"name": "operator", "env": env});
        let template = json!({"spec": {"containers": [container]}});
        serde_json::from_value(json!({"spec": {"selector": {}, "template": template}})).unwrap()
    }

    #[test]
    fn the_watched_namespaces_are_those_of_the_deployment() {
        let of = |env: Value| watched(&deployment(&env), "home");
        assert_eq!(of(json!([])), None);
        assert_eq!(of(json!([{"name": "WATCH_NAMESPACE", "value": ""}])), None);
        let names = of(json!([{"name": "WATCH_NAMESPACE", "value": "a,b"}]));
        assert_eq!(names, Some(vec!["a".to_owned(), "b".to_owned()]));
        let field = json!({"fieldRef": {"fieldPath": "metadata.namespace"}});
        let own = of(json!([{"name": "WATCH_NAMESPACE", "valueFrom": field}]));
        assert_eq!(own, Some(vec!["home".to_owned()]));
    }
}
