//! Manifests on a cluster, as its administrator applies them, and the account that they make.

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::error::{Error, Result};

/// Applies a document as it is written, strictly: the server's own reader of YAML reads it.
pub async fn apply(client: &kube::Client, document: &str) -> Result<Value> {
    let object: Value =
        serde_saphyr::from_str(document).map_err(|error| Error::Manifest(error.to_string()))?;
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let lacks = |what: &str| Error::Manifest(format!("no {what} in {document}"));
    let api_version = word(&object["apiVersion"]).ok_or_else(|| lacks("apiVersion"))?;
    let kind = word(&object["kind"]).ok_or_else(|| lacks("kind"))?.to_lowercase();
    let name = word(&object["metadata"]["name"]).ok_or_else(|| lacks("name"))?;
    let root = if api_version == "v1" { "api" } else { "apis" };
    let namespace = word(&object["metadata"]["namespace"]);
    let place = namespace.map(|name| format!("namespaces/{name}/")).unwrap_or_default();
    let plural = if kind.ends_with('s') { format!("{kind}es") } else { format!("{kind}s") };
    let path = format!(
        "/{root}/{api_version}/{place}{plural}/{name}?fieldManager=user&force=true&fieldValidation=Strict"
    );
    let request = http::Request::patch(&path)
        .header("content-type", "application/apply-patch+yaml")
        .body(document.as_bytes().to_vec())
        .map_err(|error| Error::Manifest(error.to_string()))?;
    client.request(request).await.map_err(Error::api(format!("{path}\n{document}")))
}

/// A token of this account.
pub async fn account_token(env: &TestEnv, namespace: &str, account: &str) -> Result<String> {
    let request = TokenRequest {
        spec: Some(TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() }),
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(env.client(), namespace);
    let action = format!("requesting a token for {account}");
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await;
    let answer = answer.map_err(Error::api(action.clone()))?;
    let token = answer.status.and_then(|status| status.token);
    token.ok_or(Error::Api { action, message: "the answer has no token".to_owned() })
}

/// A kubeconfig with a token of this account.
pub async fn account_config(env: &TestEnv, namespace: &str, account: &str) -> Result<String> {
    let token = account_token(env, namespace, account).await?;
    let facts = env.facts("a certificate authority")?;
    let cluster = json!({"server": facts.server, "certificate-authority": facts.pki.join("ca.crt")});
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "account",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "account", "context": {"cluster": "c", "user": "u"}}],
    });
    Ok(config.to_string())
}
