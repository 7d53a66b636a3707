//! Tests an installation beside cluster-wide leftovers of the first operator: its conversion, and its
//! webhooks.

use anyhow::Result;
use harbor_operator::takeover::webhooks;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_operator::manifests::{Install, Manifests};
use windlass_runtime::client::{Client, ClientOptions};
use windlass_testenv::world::{install, rights};
use windlass_testenv::{Options, TestEnv, or_not_run};

/// Client configuration of the first operator's webhooks, whose server is gone.
fn gone() -> Value {
    json!({"namespace": "harbor-operator-ns", "name": "webhook-service", "path": "/convert", "port": 443})
}

#[tokio::test]
async fn the_old_conversion_is_replaced_at_once_and_old_webhooks_are_named() -> Result<()> {
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    let operator = harbor_operator::operator();
    env.install_crds(operator.definitions()).await?;
    let kinds: Api<CustomResourceDefinition> = Api::all(env.client());
    let conversion = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": gone()}}});
    let by =
        PatchParams { field_manager: Some("kubectl-client-side-apply".into()), ..PatchParams::default() };
    for kind in operator.definitions() {
        let name = kind.metadata.name.as_deref().unwrap();
        kinds.patch(name, &by, &Patch::Merge(json!({"spec": {"conversion": conversion}}))).await?;
    }
    let pods = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}]);
    let webhook = json!({"name": "mimg.kb.io", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
        "clientConfig": {"service": {"namespace": "harbor-operator-ns", "name": "webhook-service", "path": "/mutate-image-path"}}, "rules": pods,
        "namespaceSelector": {"matchLabels": {"harbor-day2-webhook-configuration": "enabled"}}});
    let configuration: MutatingWebhookConfiguration = serde_json::from_value(
        json!({"metadata": {"name": "harbor-operator-mutating-webhook-configuration"}, "webhooks": [webhook]}),
    )?;
    Api::all(env.client()).create(&PostParams::default(), &configuration).await?;

    let manifests = Manifests::of(&operator, &Install::of(&operator))?;
    for kind in rights::file(manifests.files(), "crds.yaml")? {
        install::apply(&env.client(), &kind.to_string()).await?;
        let found = kinds.get(kind["metadata"]["name"].as_str().unwrap()).await?;
        let service = json!(found.spec.conversion)["webhook"]["clientConfig"]["service"].clone();
        assert_eq!(service, kind["spec"]["conversion"]["webhook"]["clientConfig"]["service"]);
        assert_ne!(service["name"], gone()["name"]);
    }

    let client = Client::new(env.config().clone(), ClientOptions::default())?;
    let messages = webhooks::left_over(&client).await?;
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(
        messages[0].contains("kubectl delete mutatingwebhookconfiguration harbor-operator-mutating"),
        "{messages:?}"
    );
    Ok(())
}
