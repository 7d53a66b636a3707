//! Tests the effect of settings on created objects. Other tests cover workers (with the programs), webhooks
//! (with the manifests) and database settings (with the databases).

use std::time::Duration;

use anyhow::{Context as _, Result};
use harbor_operator::api::{Core, Harbor, NotarySigner};
use harbor_operator::settings::HarborSettings;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde_json::json;
use windlass_testenv::{TestEnv, or_not_run};

use crate::world::{World, harbor};

const HOUR: u64 = 3600;

/// Returns the validity of the certificate in a Secret in whole hours, and the algorithm of its key.
async fn certificate(world: &World, name: &str) -> Result<(u64, String)> {
    let secret: Secret = world.see(name, "there", |_| true).await?;
    let data = secret.data.with_context(|| format!("{name} is empty"))?;
    let text = data
        .get("tls.crt")
        .or_else(|| data.get("ca.crt"))
        .with_context(|| format!("{name}: {:?}", data.keys()))?;
    let (_, pem) = x509_parser::pem::parse_x509_pem(&text.0)?;
    let parsed = pem.parse_x509()?;
    let validity = parsed.validity();
    let seconds = validity.not_after.timestamp() - validity.not_before.timestamp();
    Ok((u64::try_from(seconds)? / HOUR, parsed.public_key().algorithm.algorithm.to_id_string()))
}

#[tokio::test]
async fn every_setting_has_an_effect_on_the_objects() -> Result<()> {
    const RSA: &str = "1.2.840.113549.1.1.1";
    const ECDSA: &str = "1.2.840.10045.2.1";
    let env = or_not_run!(TestEnv::shared().await);
    let settings = HarborSettings::default().with([
        ("classname", "blue"),
        ("network-policies", "true"),
        ("registry-encryption-cost", "5"),
        ("github-token", "general"),
        ("trivy-github-credentials", "of-trivy"),
        ("internal-tls-certificate-authority-duration", "800h"),
        ("internal-tls-duration", "100h"),
        ("notary-signer-certificate-authority-duration", "900h"),
        ("notaryserver-certificate-duration", "110h"),
        ("notaryserver-certificate-algorithm", "ecdsa"),
        ("notarysigner-certificate-duration", "120h"),
        ("notarysigner-certificate-algorithm", "rsa"),
        ("image-source-repository", "mirror.example.com/x"),
        ("image-source-tag-suffix", "-s"),
        ("notarysigner-controller-disabled", "true"),
    ])?;
    assert_eq!(settings.internal_certificate_duration, Duration::from_secs(100 * HOUR));
    let world = World::with(env, "settings", settings).await?;
    let operator = world.operator().await?;
    let mut other = harbor();
    other["metadata"]["name"] = json!("other");
    world.put::<Harbor>(other).await?;
    let mut blue = harbor();
    blue["metadata"]["annotations"] = json!({"goharbor.io/harbor-class": "blue"});
    blue["spec"]["version"] = json!("2.6.2");
    blue["spec"]["trivy"] = json!({"storage": {}});
    blue["spec"]["notary"] = json!({});
    world.put::<Harbor>(blue).await?;

    // Validity begins a little before the certificate is made: whole hours are what was asked for.
    let ends = |hours: u64, found: u64| found == hours || found + 1 == hours;
    for (name, hours, algorithm) in [
        ("internal-tls-authority", 800, ECDSA),
        ("internal-tls-core", 100, ECDSA),
        ("notarysigner-authority", 900, ""),
        ("notarysigner-authentication", 120, RSA),
        ("notaryserver-authentication", 110, ECDSA),
    ] {
        let (found, of) = certificate(&world, &format!("sample-harbor-{name}")).await?;
        assert!(ends(hours, found), "{name}: {found}h");
        assert!(algorithm.is_empty() || of == algorithm, "{name}: {of}");
    }
    let users: Secret = world.see("sample-harbor-registry-basicauth", "there", |_| true).await?;
    let htpasswd = String::from_utf8(users.data.unwrap()["htpasswd"].0.clone())?;
    assert!(htpasswd.contains("$05$"), "{htpasswd}");
    let token: Secret = world.see("sample-harbor-trivy-github", "there", |_| true).await?;
    assert_eq!(token.data.unwrap()["github-token"].0, b"of-trivy");
    world.see::<NetworkPolicy>("sample-harbor-core-ingress", "there", |_| true).await?;
    let core: Core = world.see("sample-harbor", "there", |_| true).await?;
    assert_eq!(core.spec.component.image.as_deref(), Some("mirror.example.com/x/harbor-core:v2.6.2-s"));

    // The controller of Notary's signer is turned off: its object is there, and nobody has looked at it.
    let signer: NotarySigner = world.see("sample-harbor", "there", |_| true).await?;
    assert!(signer.status.is_none(), "{:?}", signer.status);
    assert!(world.namespace.api::<Deployment>().get_opt("sample-harbor-notarysigner").await?.is_none());
    // And so it is with the Harbor of another class.
    let other: Harbor = world.get("other").await?;
    assert!(other.status.is_none() && world.namespace.api::<Core>().get_opt("other-harbor").await?.is_none());
    world.end(operator).await
}
