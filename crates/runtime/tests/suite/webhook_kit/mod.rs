//! Helpers of the webhook tests: a replica of an operator, its configuration, and a client.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)] // each test uses a part; a test fails by panicking

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use http::Request;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::Api;
use kube::client::Body;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use windlass_runtime::client::{Client, ClientOptions};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::manager::{Manager, ManagerError, Readiness, Stage, Stop, Stopper};
use windlass_runtime::metrics::Metrics;
use windlass_runtime::serve::Listener;
use windlass_runtime::webhook::certificates::Policy;
use windlass_runtime::webhook::{Certificates, Serving, Target, WebhookServer, Webhooks};
use windlass_testenv::{TestNamespace, eventually};

/// One process of an operator with webhooks.
pub(crate) struct Replica {
    pub(crate) address: SocketAddr,
    pub(crate) serving: Serving,
    pub(crate) metrics: Metrics,
    readiness: Readiness,
    stopper: Stopper,
    running: JoinHandle<Result<(), ManagerError>>,
}

/// Options of a replica.
pub(crate) struct Plan {
    pub(crate) policy: Policy,
    /// The injection targets, if the replica is the leader.
    pub(crate) leads: Option<Vec<Target>>,
    pub(crate) connection_age: std::time::Duration,
    pub(crate) linger: std::time::Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            leads: None,
            connection_age: std::time::Duration::from_mins(5),
            linger: std::time::Duration::ZERO,
        }
    }
}

pub(crate) const SECRET: &str = "webhooks";

pub(crate) fn client(namespace: &TestNamespace) -> Client {
    Client::from_kube(namespace.env().client(), ClientOptions::default()).unwrap()
}

pub(crate) fn secret_key(namespace: &TestNamespace) -> ObjectKey {
    ObjectKey::namespaced(namespace.name(), SECRET)
}

impl Replica {
    pub(crate) fn start(namespace: &TestNamespace, webhooks: Webhooks, plan: Plan) -> Self {
        let client = client(namespace);
        let listener = Listener::bind(([127, 0, 0, 1], 0)).unwrap();
        let address = listener.address();
        let certificates =
            Certificates::in_secret(&client, secret_key(namespace), ["127.0.0.1"]).policy(plan.policy);
        let mut manager = Manager::new();
        let server = WebhookServer::new(listener, webhooks, certificates.serving(), manager.metrics())
            .connection_age(plan.connection_age)
            .linger(plan.linger);
        manager.add(Stage::Webhooks, certificates.runnable()).unwrap();
        manager.add(Stage::Webhooks, server.into_runnable()).unwrap();
        if let Some(targets) = plan.leads {
            manager.add(Stage::Controllers, certificates.injector(targets).into_runnable()).unwrap();
        }
        let (stopper, stop) = Stop::pair();
        let (metrics, readiness) = (manager.metrics().clone(), manager.readiness().clone());
        let serving = certificates.serving().clone();
        Self { address, serving, metrics, readiness, stopper, running: tokio::spawn(manager.run_until(stop)) }
    }

    pub(crate) async fn ready(&self) -> Result<()> {
        eventually("the replica to be ready", || async {
            let report = self.readiness.report();
            if report.is_ready() { Ok(()) } else { Err(report.to_string()) }
        })
        .await?;
        Ok(())
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// Requests the stop, and waits until readiness reports it.
    pub(crate) async fn stopping(&self) -> Result<()> {
        self.stopper.request();
        eventually("the replica to be stopping", || async {
            let report = self.readiness.report();
            if report.is_ready() { Err(report.to_string()) } else { Ok(()) }
        })
        .await?;
        Ok(())
    }

    pub(crate) async fn stop(self) -> Result<()> {
        self.stopper.request();
        Ok(self.running.await??)
    }

    /// Returns a client that trusts the CA bundle of the Secret.
    pub(crate) async fn raw(&self, namespace: &TestNamespace) -> Result<Raw> {
        let secret = namespace.api::<Secret>().get(SECRET).await?;
        let bundle = secret.data.unwrap()["ca.crt"].0.clone();
        Raw::new(self.address, &bundle)
    }
}

/// A raw HTTPS client of a replica.
pub(crate) struct Raw(kube::Client);

impl Raw {
    pub(crate) fn new(address: SocketAddr, bundle: &[u8]) -> Result<Self> {
        let mut config = kube::Config::new(format!("https://{address}").parse()?);
        let roots = CertificateDer::pem_slice_iter(bundle).map(|der| der.map(|der| der.to_vec()));
        config.root_cert = Some(roots.collect::<Result<_, _>>()?);
        config.default_retry = false;
        Ok(Self(kube::Client::try_from(config)?))
    }

    pub(crate) async fn post(
        &self,
        path: &str,
        content_type: &str,
        body: impl Into<Vec<u8>>,
    ) -> Result<(u16, Value)> {
        use http_body_util::BodyExt as _;
        let request =
            Request::post(path).header("content-type", content_type).body(Body::from(body.into()))?;
        let answer = self.0.send(request).await?;
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await?.to_bytes();
        Ok((code, serde_json::from_slice(&body).unwrap_or_default()))
    }

    pub(crate) async fn json(&self, path: &str, body: &Value) -> Result<(u16, Value)> {
        self.post(path, "application/json", body.to_string()).await
    }
}

/// Returns a webhook of a configuration, for ConfigMaps of one namespace.
pub(crate) fn hook(namespace: &TestNamespace, name: &str, url: &str, policy: &str) -> Value {
    json!({
        "name": format!("{name}.example.com"), "clientConfig": {"url": url}, "failurePolicy": policy,
        "namespaceSelector": namespace.selector(), "sideEffects": "None", "admissionReviewVersions": ["v1", "v1beta1"],
        "timeoutSeconds": 10,
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
            "operations": ["CREATE", "UPDATE", "DELETE"]}],
    })
}

/// Creates a configuration that is deleted with the namespace.
pub(crate) async fn configure(
    namespace: &TestNamespace,
    kind: &str,
    name: &str,
    hooks: &[Value],
) -> Result<String> {
    let owner = Api::<Namespace>::all(namespace.env().client()).get(namespace.name()).await?;
    let name = format!("{}-{name}", namespace.name());
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": name, "ownerReferences": [
            {"apiVersion": "v1", "kind": "Namespace", "name": namespace.name(), "uid": owner.metadata.uid}]},
        "webhooks": hooks,
    });
    let path = format!("/apis/admissionregistration.k8s.io/v1/{}s", kind.to_lowercase());
    let request = Request::post(path).header("content-type", "application/json");
    namespace.env().client().request::<Value>(request.body(configuration.to_string().into_bytes())?).await?;
    Ok(name)
}

pub(crate) async fn validating(
    namespace: &TestNamespace,
    name: &str,
) -> Result<ValidatingWebhookConfiguration> {
    Ok(Api::all(namespace.env().client()).get(name).await?)
}

/// Returns the bundles of a validating configuration, webhook by webhook.
pub(crate) async fn bundles(namespace: &TestNamespace, name: &str) -> Result<Vec<Option<Vec<u8>>>> {
    let hooks = validating(namespace, name).await?.webhooks.unwrap_or_default();
    Ok(hooks.into_iter().map(|hook| hook.client_config.ca_bundle.map(|bundle| bundle.0)).collect())
}

pub(crate) async fn until_injected(namespace: &TestNamespace, name: &str) -> Result<()> {
    eventually("the authorities to be injected", || async {
        let bundles = bundles(namespace, name).await.map_err(|error| error.to_string())?;
        if bundles.iter().all(Option::is_some) { Ok(()) } else { Err(format!("{} bundles", bundles.len())) }
    })
    .await?;
    Ok(())
}

pub(crate) fn map(name: &str, data: &Value) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": data})).unwrap()
}

/// Returns the status of an API error.
pub(crate) fn status<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> (u16, String) {
    match result.unwrap_err() {
        kube::Error::Api(status) => (status.code, status.message.clone()),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn secret(namespace: &TestNamespace) -> Result<Secret> {
    namespace.api::<Secret>().get(SECRET).await.context("the Secret")
}
