//! What a cluster needs for an operator, applied: all that its manifests hold, but for the Deployment, whose place a process on this
//! machine takes.

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::Value;
use windlass_operator::Operator;
use windlass_operator::manifests::{Install, Manifests};
use windlass_testenv::eventually;

use crate::console::Console;
use crate::failure::Failure;

/// Applies the manifests, and returns the namespace that the operator lives in.
pub(super) async fn install(
    client: &Client,
    operator: &Operator,
    webhooks: u16,
    console: &Console,
) -> Result<String, Failure> {
    let manifests = Manifests::of(operator, &Install::of(operator))
        .map_err(|error| Failure::Running(error.to_string()))?;
    let mut namespace = String::new();
    for mut object in documents(&manifests.stream())? {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match &*kind {
            // A process on this machine takes their place.
            "Deployment" | "Service" => continue,
            "Namespace" => namespace.clone_from(&name),
            _ => {}
        }
        call_this_machine(&mut object, webhooks);
        apply(client, &object)
            .await
            .map_err(|error| Failure::Running(format!("{kind} {name} cannot be applied: {error}")))?;
        console.line(&format!("applied {kind} {name}"));
    }
    Ok(namespace)
}

/// Webhooks, also those that convert, name a Service that is not there: let them name this machine.
fn call_this_machine(object: &mut Value, port: u16) {
    for hook in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        hook.get_mut("clientConfig").into_iter().for_each(|client| at_this_machine(client, port));
    }
    if let Some(client) = object.pointer_mut("/spec/conversion/webhook/clientConfig") {
        at_this_machine(client, port);
    }
}

fn at_this_machine(client: &mut Value, port: u16) {
    let Some(client) = client.as_object_mut() else { return };
    if let Some(service) = client.remove("service") {
        let path = service["path"].as_str().unwrap_or_default();
        client.insert("url".into(), format!("https://127.0.0.1:{port}{path}").into());
    }
}

/// Applies the sample object, as soon as the API server serves its kind and reaches its webhooks.
pub(super) async fn sample(client: &Client, sample: &str, console: &Console) -> Result<(), Failure> {
    for object in documents(sample)? {
        let applied = eventually("the sample to be accepted", || async {
            apply(client, &object).await.map_err(|error| error.to_string())
        });
        applied.await?;
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        console.line(&format!("applied {} {}", text("/kind"), text("/metadata/name")));
    }
    Ok(())
}

pub(super) fn documents(text: &str) -> Result<Vec<Value>, Failure> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|error| Failure::Running(format!("a manifest of ours cannot be read: {error}")))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

async fn apply(client: &Client, object: &Value) -> Result<(), kube::Error> {
    let object: DynamicObject = serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
    let name = object.metadata.name.clone().unwrap_or_default();
    let api = api_of(client, &object);
    api.patch(&name, &PatchParams::apply("windlass-up").force(), &Patch::Apply(&object)).await?;
    Ok(())
}

fn api_of(client: &Client, object: &DynamicObject) -> Api<DynamicObject> {
    let (api_version, kind) =
        object.types.as_ref().map_or(("v1", ""), |types| (&types.api_version, &types.kind));
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    // A sample names no namespace; what is cluster-scoped has none to name.
    let cluster_scoped = matches!(
        kind,
        "Namespace"
            | "CustomResourceDefinition"
            | "ClusterRole"
            | "ClusterRoleBinding"
            | "MutatingWebhookConfiguration"
            | "ValidatingWebhookConfiguration"
    );
    match object.metadata.namespace.as_deref() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None if cluster_scoped => Api::all_with(client.clone(), &resource),
        None => Api::namespaced_with(client.clone(), "default", &resource),
    }
}
