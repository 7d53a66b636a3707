//! Installs an operator: applies all its manifests except the Deployment, which a process on this machine
//! replaces.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use serde_json::Value;
use windlass_operator::Operator;
use windlass_operator::manifests::{Install, Manifests};
use windlass_testenv::eventually;

use crate::console::Console;
use crate::failure::{Failure, chain};

/// Applies the manifests, and returns the namespace of the operator.
pub(super) async fn install(
    client: &Client,
    operator: &Operator,
    webhooks: u16,
    console: &Console,
) -> Result<String, Failure> {
    let mut namespace = String::new();
    for mut object in manifests(operator)? {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match &*kind {
            // A process on this machine replaces them.
            "Deployment" | "Service" => continue,
            "Namespace" => namespace.clone_from(&name),
            _ => {}
        }
        redirect_webhooks(&mut object, webhooks);
        apply(client, &object)
            .await
            .map_err(|error| Failure::Running(format!("cannot apply {kind} {name}: {error}")))?;
        console.line(&format!("applied {kind} {name}"));
    }
    Ok(namespace)
}

/// Replaces the Service in webhook configurations, also those for conversion, by the address of this machine.
fn redirect_webhooks(object: &mut Value, port: u16) {
    for hook in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        hook.get_mut("clientConfig").into_iter().for_each(|client| set_url(client, port));
    }
    if let Some(client) = object.pointer_mut("/spec/conversion/webhook/clientConfig") {
        set_url(client, port);
    }
}

fn set_url(client: &mut Value, port: u16) {
    let Some(client) = client.as_object_mut() else { return };
    if let Some(service) = client.remove("service") {
        let path = service["path"].as_str().unwrap_or_default();
        client.insert("url".into(), format!("https://127.0.0.1:{port}{path}").into());
    }
}

/// Returns true if the API server calls the operator: for admission or for conversion.
pub(super) fn has_webhooks(operator: &Operator) -> Result<bool, Failure> {
    let calls = |object: &Value| {
        object.get("webhooks").is_some() || object.pointer("/spec/conversion/webhook").is_some()
    };
    Ok(manifests(operator)?.iter().any(calls))
}

/// Returns an error if the operator runs in the cluster already, or if the user may not install it. Nothing
/// is written.
pub(super) async fn may_install(client: &Client, operator: &Operator) -> Result<(), Failure> {
    let everything = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                group: Some("*".into()),
                resource: Some("*".into()),
                verb: Some("*".into()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let failed =
        |error: kube::Error| Failure::Running(format!("cannot check the cluster: {}", chain(&error)));
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &everything).await.map_err(failed)?;
    if !review.status.is_some_and(|status| status.allowed) {
        return Err(Failure::Running(
            "the user of this context may not install an operator, which takes the rights of cluster-admin. Nothing \
             was changed"
                .to_owned(),
        ));
    }
    for object in manifests(operator)?.iter().filter(|object| object["kind"] == "Deployment") {
        let object: DynamicObject = serde_json::from_value(object.clone())
            .map_err(|error| Failure::Running(format!("cannot read a built-in manifest: {error}")))?;
        let name = object.metadata.name.clone().unwrap_or_default();
        if api_of(client, &object).get_opt(&name).await.map_err(failed)?.is_some() {
            return Err(Failure::Running(format!(
                "the operator {name} is installed in this cluster already (namespace {}), and a second one would fight \
                 with it. Nothing was changed",
                object.metadata.namespace.unwrap_or_default()
            )));
        }
    }
    Ok(())
}

/// Returns the objects of an installation.
fn manifests(operator: &Operator) -> Result<Vec<Value>, Failure> {
    let manifests = Manifests::of(operator, &Install::of(operator))
        .map_err(|error| Failure::Running(error.to_string()))?;
    documents(&manifests.stream())
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
        .map_err(|error| Failure::Running(format!("cannot read a built-in manifest: {error}")))?;
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
    // A sample has no namespace; a cluster-scoped object cannot have one.
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
