//! An operator with webhooks that the API server of the test environment calls.
//!
//! No Service leads out of that control plane: the configurations are those of the manifests with other
//! addresses.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use windlass_operator::manifests::{Install, Manifests};
use windlass_operator::{Operator, Settings};
use windlass_runtime::manager::Stop;
use windlass_testenv::torture::OperatorRun;
use windlass_testenv::world::rights;

/// Runs an operator with its webhooks in the namespace of a run, until it is killed. The configurations go
/// with the namespace. The API server asks the webhooks a moment later.
pub async fn run_with_webhooks(operator: &Operator, run: &OperatorRun) -> Result<()> {
    let namespace = run.namespace();
    let settings = Settings {
        own_namespace: Some(namespace.to_owned()),
        webhooks: Some(([127, 0, 0, 1], 0).into()),
        webhook_names: ["127.0.0.1".to_owned()].into(),
        ..Settings::default().in_namespaces([namespace])
    };
    let process = operator.assemble(run.config(), &settings)?;
    let address = process.webhooks().context("the operator has no webhooks")?;
    register(&run.client()?, operator, namespace, address).await?;
    let (_stopper, stop) = Stop::pair();
    process.run_until(stop).await?;
    Ok(())
}

/// Creates the webhook configurations of an installation in a namespace, with this address.
async fn register(
    client: &kube::Client,
    operator: &Operator,
    namespace: &str,
    address: SocketAddr,
) -> Result<()> {
    let manifests = Manifests::of(operator, &Install::of(operator).namespace(namespace).namespaced())?;
    let home = Api::<Namespace>::all(client.clone()).get(namespace).await?;
    let owner = json!({"apiVersion": "v1", "kind": "Namespace", "name": namespace, "uid": home.metadata.uid});
    for mut object in rights::file(manifests.files(), "webhooks.yaml")? {
        object["metadata"]["ownerReferences"] = json!([owner]);
        for hook in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
            let path = hook["clientConfig"]["service"]["path"].as_str().context("no path")?;
            hook["clientConfig"] = json!({"url": format!("https://{address}{path}")});
        }
        let params = PostParams::default();
        match object["kind"].as_str() {
            Some("MutatingWebhookConfiguration") => {
                let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
                mutating.create(&params, &serde_json::from_value(object)?).await?;
            }
            Some("ValidatingWebhookConfiguration") => {
                let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
                validating.create(&params, &serde_json::from_value(object)?).await?;
            }
            _ => {}
        }
    }
    Ok(())
}
