//! Certificates: of cert-manager where that is asked for, and our own, which are renewed.

use std::time::Duration;

use anyhow::Result;
use harbor_operator::api::{Harbor, JobService, Registry};
use harbor_operator::harbor::certmanager::Certificate;
use harbor_operator::settings::HarborSettings;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::{CustomResourceExt as _, ResourceExt as _};
use serde_json::json;
use windlass_testenv::{Options, TestEnv, or_not_run};

use crate::world::{World, harbor, open, said};

#[tokio::test]
async fn an_issuer_without_cert_manager_is_waited_for_and_then_used() -> Result<()> {
    // A kind is the whole control plane's: a control plane of its own, where it is not installed yet.
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    let world = World::new(TestEnv::clone(&env), "issuer").await?;
    let operator = world.operator().await?;
    let mut with = harbor();
    with["spec"]["core"] = json!({"tokenIssuer": {"name": "ca"}});
    world.put::<Harbor>(with).await?;
    world
        .see("sample", "waiting for cert-manager", |harbor: &Harbor| {
            let (_, message) = said(harbor, "Ready");
            message.contains("certificates.cert-manager.io")
        })
        .await?;
    // What does not need it goes on.
    world.get::<Registry>("sample-harbor").await?;
    world.env.install_crds(&[open(&Certificate::crd())]).await?;
    let name = "sample-harbor-core-tokencert";
    world.see::<Certificate>(name, "asked for", |asked| asked.spec.issuer_ref.name == "ca").await?;
    let data = json!({"tls.crt": "certificate", "tls.key": "key", "ca.crt": "authority"});
    let issued = json!({"metadata": {"name": name}, "type": "kubernetes.io/tls", "stringData": data});
    world.put::<Secret>(issued).await?;
    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let certificates = world.namespace.api::<Certificate>();
    let patch = kube::api::Patch::Merge(&status);
    let params = kube::api::PatchParams::default();
    certificates.patch(name, &params, &patch).await?;
    world.ready().await?;
    world.end(operator).await
}

#[tokio::test]
async fn certificates_are_made_anew_before_they_end_and_pods_roll_with_them() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let options = HarborSettings {
        registry_encryption_cost: 4,
        internal_authority_duration: Duration::from_mins(10),
        internal_certificate_duration: Duration::from_secs(30),
        ..HarborSettings::default()
    };
    let world = World::with(env, "renewal", options).await?;
    let operator = world.operator().await?;
    world.put::<Harbor>(harbor()).await?;
    world.ready().await?;
    let name = "sample-harbor-internal-tls-jobservice";
    let first: Secret = world.get(name).await?;
    let before: Deployment = world.get("sample-harbor-jobservice").await?;
    let next = world.see(name, "made anew", |secret: &Secret| secret.data != first.data).await?;
    let content = |secret: &Secret, key: &str| secret.data.as_ref().unwrap()[key].clone();
    assert_eq!(next.uid(), first.uid(), "the Secret is the same");
    assert_eq!(content(&next, "ca.crt"), content(&first, "ca.crt"), "of the same authority");
    assert_ne!(content(&next, "tls.key"), content(&first, "tls.key"));
    let template = |deployment: &Deployment| json!(deployment.spec)["template"].clone();
    world
        .see("sample-harbor-jobservice", "rolled", |rolled: &Deployment| {
            template(rolled) != template(&before)
        })
        .await?;

    // A certificate that is lost protects nothing: it is simply made anew.
    world.delete::<Secret>(name).await?;
    world.see(name, "there again", |secret: &Secret| secret.uid() != first.uid()).await?;
    world.see::<JobService>("sample-harbor", "there", |_| true).await?;
    world.end(operator).await
}
