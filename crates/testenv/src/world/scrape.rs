//! Scrapes of metrics over TLS, as Prometheus does them.

use std::fmt;

use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

use super::install;
use crate::env::TestEnv;
use crate::error::{Error, Result};
use crate::eventually::eventually;

/// A reader of the metrics of an installed operator.
///
/// It trusts only the CA in the Secret `<operator>-metrics`, and expects the name of the Service
/// `<operator>-metrics`.
pub struct Scraper<'a> {
    env: &'a TestEnv,
    namespace: &'a str,
    operator: &'a str,
}

impl fmt::Debug for Scraper<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scraper").field("operator", &self.operator).finish_non_exhaustive()
    }
}

impl<'a> Scraper<'a> {
    /// Creates a reader for the operator of this name in this namespace.
    pub fn new(env: &'a TestEnv, namespace: &'a str, operator: &'a str) -> Self {
        Self { env, namespace, operator }
    }

    /// Creates a service account beside the operator, and returns its token.
    pub async fn account(&self, name: &str) -> Result<String> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.env.client(), self.namespace);
        let mut account = ServiceAccount::default();
        account.metadata.name = Some(name.to_owned());
        let created = accounts.create(&PostParams::default(), &account).await;
        created.map_err(Error::api(format!("creating ServiceAccount {name}")))?;
        install::account_token(self.env, self.namespace, name).await
    }

    /// Grants the ClusterRole `<operator>.<namespace>.metrics-reader` to a service account, and waits until
    /// the API server knows it.
    pub async fn grant(&self, account: &str) -> Result<()> {
        let role = format!("{}.{}.metrics-reader", self.operator, self.namespace);
        let user = format!("system:serviceaccount:{}:{account}", self.namespace);
        let binding: ClusterRoleBinding = typed(json!({
            "metadata": {"name": format!("{role}.{account}")},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": self.namespace}],
        }))?;
        let bindings: Api<ClusterRoleBinding> = Api::all(self.env.client());
        let created = bindings.create(&PostParams::default(), &binding).await;
        created.map_err(Error::api(format!("granting {role}")))?;
        let review: k8s_openapi::api::authorization::v1::SubjectAccessReview = typed(json!({
            "spec": {"user": user, "nonResourceAttributes": {"path": "/metrics", "verb": "get"}},
        }))?;
        let reviews = Api::all(self.env.client());
        eventually(format!("{role} to be granted"), || async {
            let answer = reviews.create(&PostParams::default(), &review).await;
            let status = answer.map_err(|error| error.to_string())?.status.unwrap_or_default();
            if status.allowed { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await
    }

    /// Reads the metrics at this URL (`https://127.0.0.1:8443/metrics`); returns the HTTP status and the
    /// text. Waits until the operator has its certificate.
    pub async fn scrape(&self, url: &str, token: Option<&str>) -> Result<(u16, String)> {
        let secrets: Api<Secret> = Api::namespaced(self.env.client(), self.namespace);
        let name = format!("{}-metrics", self.operator);
        let (server, path) = url.rsplit_once('/').unwrap_or((url, ""));
        eventually(format!("an answer of {url}"), || async {
            let text = |error: &dyn std::error::Error| error.to_string();
            let secret = json!(secrets.get(&name).await.map_err(|error| text(&error))?);
            let config = json!({
                "apiVersion": "v1", "kind": "Config", "current-context": "metrics",
                "clusters": [{"name": "c", "cluster": {
                    "server": server,
                    "certificate-authority-data": secret["data"]["ca.crt"],
                    "tls-server-name": format!("{name}.{}.svc", self.namespace),
                }}],
                "users": [{"name": "u", "user": {"token": token}}],
                "contexts": [{"name": "metrics", "context": {"cluster": "c", "user": "u"}}],
            });
            let config = Kubeconfig::from_yaml(&config.to_string()).map_err(|error| text(&error))?;
            let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
            let config = config.map_err(|error| text(&error))?;
            let client = kube::Client::try_from(config).map_err(|error| text(&error))?;
            let request = http::Request::get(format!("/{path}")).body(Vec::new());
            match client.request_text(request.map_err(|error| text(&error))?).await {
                Ok(text) => Ok((200, text)),
                Err(kube::Error::Api(status)) => Ok((status.code, status.message)),
                Err(error) => Err(format!("{error:?}")),
            }
        })
        .await
    }
}

fn typed<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> Result<T> {
    serde_json::from_value(value).map_err(|error| Error::Manifest(error.to_string()))
}
