//! Certificates: of cert-manager where that is asked for, and our own, which are renewed.

use std::time::Duration;

use anyhow::Result;
use harbor_operator::api::{Harbor, JobService, Registry};
use harbor_operator::harbor::certmanager::Certificate;
use harbor_operator::settings::HarborSettings;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::{CustomResourceExt as _, ResourceExt as _};
use serde_json::json;
use windlass_pki::{AuthorityRecipe, Certificate as Readable};
use windlass_testenv::{Options, TestEnv, or_not_run};

use crate::world::{World, harbor, open, status_and_message};

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
            let (_, message) = status_and_message(harbor, "Ready");
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
async fn certificates_are_renewed_before_they_expire_and_their_pods_are_replaced() -> Result<()> {
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

    // A lost certificate protects no data: it is issued again.
    world.delete::<Secret>(name).await?;
    world.see(name, "there again", |secret: &Secret| secret.uid() != first.uid()).await?;
    world.see::<JobService>("sample-harbor", "there", |_| true).await?;
    world.end(operator).await
}

/// Returns the certificate in a Secret.
fn certificate(secret: &Secret) -> Readable {
    let pem = &secret.data.as_ref().unwrap()["tls.crt"].0;
    Readable::from_pem(&String::from_utf8_lossy(pem)).unwrap()
}

#[tokio::test]
async fn seam_m4_an_internal_authority_from_the_future_counts_as_absent() -> Result<()> {
    const AUTHORITY: &str = "sample-harbor-internal-tls-authority";
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "future").await?;
    let operator = world.operator().await?;
    world.put::<Harbor>(harbor()).await?;
    world.ready().await?;
    operator.stop().await?;

    // As the operator would have made it while its clock was 61 days ahead.
    let day = Duration::from_hours(24);
    let (ahead, due) = (Timestamp::now() + day * 61, Timestamp::now() + day * 300);
    let (certificate_ahead, key) = AuthorityRecipe::new("ahead", day * 365).make(ahead)?.into_parts();
    let mut secret: Secret = world.get(AUTHORITY).await?;
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    let data = [("tls.crt", &certificate_ahead), ("tls.key", &key), ("ca.crt", &certificate_ahead)];
    secret.data = Some(data.map(|(name, text)| (name.to_owned(), bytes(text))).into());
    let meta = &mut secret.metadata;
    let annotations = meta.annotations.get_or_insert_default();
    annotations.insert("windlass.dev/made-at".into(), ahead.to_string());
    annotations.insert("windlass.dev/due".into(), due.to_string());
    (meta.managed_fields, meta.resource_version, meta.uid, meta.creation_timestamp) =
        (None, None, None, None);
    let params = kube::api::PatchParams::apply("harbor.goharbor.io").force();
    let secrets = world.namespace.api::<Secret>();
    let written = secrets.patch(AUTHORITY, &params, &kube::api::Patch::Apply(&secret)).await?;
    assert!(!certificate(&written).is_valid_at(Timestamp::now()));

    let operator = world.operator().await?;
    let valid = |secret: &Secret| certificate(secret).is_valid_at(Timestamp::now());
    let authority = world.see(AUTHORITY, "valid now", valid).await?;
    let value = |secret: &Secret, key: &str| {
        String::from_utf8_lossy(&secret.data.as_ref().unwrap()[key].0).trim().to_owned()
    };
    let trusted = value(&authority, "tls.crt");
    for name in ["sample-harbor-internal-tls-core", "sample-harbor-internal-tls-registry"] {
        world
            .see(name, "valid, and trusting the new authority", |secret: &Secret| {
                valid(secret) && value(secret, "ca.crt").contains(&trusted)
            })
            .await?;
    }
    world.ready().await?;
    world.end(operator).await
}
