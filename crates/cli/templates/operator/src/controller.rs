//! The controller of {{kind}}: it creates a Deployment of the same name, and reports the available replicas
//! in the status.
//!
//! A reconcile receives a key and compares the present state with the desired one. It reads from the cache,
//! which costs no request, and writes only if something differs.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Resource as _;
use serde_json::{Value, json};
use windlass_operator::{BoxError, Setup};
use windlass_runtime::access::Access;
use windlass_runtime::cache::{Full, Reader, Shape as _};
use windlass_runtime::client::{Apply, Client};
use windlass_runtime::controller::{Controller, Error, Reconcile, Requeue};
use windlass_runtime::events::{EventType, Recorder, Regarding};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::object::owner::Owner;

use crate::api::{{{kind}}, {{kind}}Status};

/// Field manager of every server-side apply. Never change it: objects in clusters carry this name.
const MANAGER: &str = "{{name}}";

/// Label of the pods of a {{kind}}; the value is the name of the {{kind}}.
pub const LABEL: &str = "{{group}}/{{singular}}";

/// Creates and updates the Deployment of every {{kind}}.
#[derive(Clone)]
pub struct {{kind}}Controller {
    client: Client,
    recorder: Recorder,
    owners: Reader<Full<{{kind}}>>,
    deployments: Reader<Full<Deployment>>,
}

/// Adds the controller to the operator, and declares the permissions for its writes.
pub fn set_up(setup: &mut Setup<'_>) -> Result<(), BoxError> {
    let scope = setup.scope();
    let reconciler = {{kind}}Controller {
        client: setup.client().clone(),
        recorder: setup.recorder()?,
        owners: setup.cache().reader(&scope),
        deployments: setup.cache().reader(&scope),
    };
    let owners = reconciler.owners.clone();
    // A change of the Deployment of the same name triggers a reconcile, also if it has another owner.
    let namesake =
        move |live: &Full<Deployment>| owners.get(&live.meta().key).map(|owner| owner.meta().key.clone());
    let controller = Controller::for_(&reconciler.owners).watches(&reconciler.deployments, namesake);
    let controller = controller.workers(setup.workers()).build(reconciler)?;
    setup.needs(Access::none().owns::<{{kind}}>().status::<{{kind}}>().applies::<Deployment>());
    Ok(setup.controller(controller)?)
}

impl Reconcile for {{kind}}Controller {
    async fn reconcile(&self, key: ObjectKey) -> Result<Requeue, Error> {
        // Deleted, or being deleted: the garbage collector deletes the Deployment too.
        let Some(owner) = self.owners.get(&key).filter(|owner| !owner.meta().deleting) else {
            return Ok(Requeue::OnChange);
        };
        let live = self.deployments.get(&key);
        let ours = |live: &Full<Deployment>| {
            live.meta().controller().is_some_and(|controller| controller.uid == owner.meta().uid)
        };
        if live.as_ref().is_some_and(|live| !ours(live)) {
            let note = format!("Deployment {:?} exists and belongs to somebody else", key.name());
            tracing::warn!(note);
            self.recorder.event(&Regarding::of(owner.object()), EventType::Warning, "NameTaken", "Apply", &note);
            // No retry: the watch of Deployments calls again when the name is free.
            return Ok(Requeue::OnChange);
        }
        if !live.as_ref().is_some_and(|live| is_as_wanted(live, &owner)) {
            let mut wanted = manifest(&owner);
            wanted["metadata"]["ownerReferences"] =
                json!([Owner::of(owner.object())?.controller_reference(key.namespace())?]);
            match &live {
                // Only the Deployment in the cache, and no later one of the same name.
                Some(live) => wanted["metadata"]["uid"] = json!(live.meta().uid),
                // No object has this version: the apply succeeds only if there is no Deployment of the name.
                None => wanted["metadata"]["resourceVersion"] = "1".into(),
            }
            self.client.objects::<Deployment>().apply(&key, &wanted, &Apply::by(MANAGER).force()).await?;
            tracing::info!(replicas = owner.spec.replicas, image = owner.spec.image, "applied the Deployment");
        }
        self.report(&owner, &key).await?;
        Ok(Requeue::OnChange)
    }
}

impl {{kind}}Controller {
    /// Writes the status if it has changed. The cache already contains this process's own writes.
    async fn report(&self, owner: &Full<{{kind}}>, key: &ObjectKey) -> Result<(), Error> {
        let live = self.deployments.get(key);
        let available = live.and_then(|live| live.status.as_ref()?.available_replicas).unwrap_or(0);
        let status = {{kind}}Status { available_replicas: available };
        if owner.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let manifest = json!({
            "apiVersion": {{kind}}::api_version(&()), "kind": {{kind}}::kind(&()),
            "metadata": {"name": owner.meta().name(), "uid": owner.meta().uid},
            "status": status,
        });
        self.client.objects::<{{kind}}>().apply_status(key, &manifest, &Apply::by(MANAGER).force()).await?;
        Ok(())
    }
}

/// Returns the desired Deployment.
fn manifest(owner: &{{kind}}) -> Value {
    let name = &owner.metadata.name;
    let labels = json!({LABEL: name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": owner.spec.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": owner.spec.image}]},
            },
        },
    })
}

/// Returns true if every field that this controller writes has its value. Fields of others do not count.
fn is_as_wanted(live: &Deployment, owner: &{{kind}}) -> bool {
    let Some(spec) = &live.spec else { return false };
    let containers = spec.template.spec.iter().flat_map(|pod| &pod.containers);
    let image = containers.filter(|container| container.name == "main").find_map(|main| main.image.as_deref());
    let label = spec.template.metadata.iter().flat_map(|meta| &meta.labels).find_map(|labels| labels.get(LABEL));
    spec.replicas == Some(owner.spec.replicas)
        && image == Some(&owner.spec.image)
        && label == owner.metadata.name.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{{kind}}Spec;

    #[test]
    fn a_deployment_as_written_is_as_wanted_and_a_changed_one_is_not() {
        let mut owner = {{kind}}::new("web", {{kind}}Spec { image: "nginx:1.29".into(), replicas: 2 });
        let live: Deployment = serde_json::from_value(manifest(&owner)).unwrap();
        assert!(is_as_wanted(&live, &owner));
        owner.spec.image = "nginx:1.30".into();
        assert!(!is_as_wanted(&live, &owner));
    }
}
