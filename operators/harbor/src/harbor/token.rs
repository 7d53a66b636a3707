//! The key that Core signs tokens with.
//!
//! Built in, unless the spec names an issuer of cert-manager's. Either way it is RSA in PKCS#1, the only form that Core reads.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use windlass::live::Live;
use windlass::{Plan, PlanError, Planned, Predecessor, Readiness, readiness};
use windlass_pki::{LeafRecipe, PrivateKey};

use crate::api::harbor_components::IssuerRef;
use crate::config::token_key;

use super::certmanager::{self, Certificate, CertificateSpec, IssuerReference};
use super::names::{Names, common_name, metadata};
use super::pki;

/// The end of the name of its Secret.
pub const SUFFIX: &str = "core-tokencert";
/// How long the certificate around a built-in key lives. Nobody checks it: tokens are verified by the key alone.
const LIFETIME: Duration = Duration::from_hours(24 * 365 * 30);

/// The Secret of the key, or the Certificate that makes it.
pub fn plan(names: &Names, issuer: Option<&IssuerRef>, plan: &mut Plan) -> Planned {
    let (own, name) = (names.clone(), names.with(SUFFIX));
    if let Some(issuer) = issuer {
        return plan.add(certificate(names, issuer)).ready_when(issued);
    }
    let planned = plan.create_once(&name, move |_| secret(&own, Timestamp::now()));
    // Where an issuer was named before, its key stays, and nobody replaces it any more.
    planned.takes_over(Predecessor::written_by::<Certificate>(name))
}

/// A certificate without a status is one that cert-manager has not seen.
fn issued(live: &Live) -> Readiness {
    match live.status.condition("Ready") {
        Some(_) => readiness::by_conditions(live),
        None => Readiness::waiting("cert-manager has not seen it yet"),
    }
}

fn certificate(names: &Names, issuer: &IssuerRef) -> Certificate {
    let name = names.with(SUFFIX);
    Certificate {
        metadata: metadata(names, name.clone()),
        spec: CertificateSpec {
            common_name: common_name(&name),
            secret_name: name,
            duration: "2160h0m0s".to_owned(),
            usages: vec!["signing".to_owned()],
            private_key: certmanager::PrivateKey {
                algorithm: "RSA".into(),
                encoding: "PKCS1".into(),
                size: 4096,
            },
            issuer_ref: IssuerReference {
                group: issuer.group().to_owned(),
                kind: issuer.kind().to_owned(),
                name: issuer.name.clone(),
            },
            other: serde_json::Map::new(),
        },
    }
}

fn secret(names: &Names, now: Timestamp) -> Result<Secret, PlanError> {
    let name = names.with(SUFFIX);
    let pem = token_key::generate()?;
    let key = PrivateKey::from_pem(pem.expose())?;
    let recipe = LeafRecipe::new().common_name(common_name(&name));
    let (certificate, _) = recipe.self_signed(key, LIFETIME, now)?.into_parts();
    let all = [
        (pki::CERTIFICATE, certificate.clone().into_bytes()),
        (pki::KEY, pem.into_bytes()),
        (pki::BUNDLE, certificate.into_bytes()),
    ];
    Ok(Secret {
        metadata: metadata(names, name),
        data: Some(all.into_iter().map(|(key, bytes)| (key.to_owned(), ByteString(bytes))).collect()),
        type_: Some("kubernetes.io/tls".to_owned()),
        ..Secret::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rsa::pkcs1::DecodeRsaPrivateKey as _;

    use crate::harbor::blueprint::samples::harbor;

    #[test]
    fn a_built_in_key_is_in_the_form_that_core_reads_and_fits_its_certificate() {
        let names = Names::of(&harbor("2.15.2", false));
        let secret = super::secret(&names, Timestamp::from_second(1_800_000_000).unwrap()).unwrap();
        assert_eq!(secret.type_.as_deref(), Some("kubernetes.io/tls"));
        let data = secret.data.unwrap();
        let text = |key: &str| String::from_utf8(data[key].0.clone()).unwrap();
        assert!(text("tls.key").starts_with("-----BEGIN RSA PRIVATE KEY-----"));
        assert!(token_key::is_usable(&text("tls.key")));
        let (_, pem) = x509_parser::pem::parse_x509_pem(text("tls.crt").as_bytes()).unwrap();
        let certificate = pem.parse_x509().unwrap();
        let key = rsa::RsaPrivateKey::from_pkcs1_pem(&text("tls.key")).unwrap();
        let public = rsa::pkcs1::EncodeRsaPublicKey::to_pkcs1_der(&key.to_public_key()).unwrap();
        assert_eq!(&*certificate.public_key().subject_public_key.data, public.as_bytes());
    }

    #[test]
    fn an_issuer_is_asked_for_a_key_of_that_form() {
        let names = Names::of(&harbor("2.6.2", false));
        let issuer = IssuerRef { group: None, kind: Some("ClusterIssuer".into()), name: "ca".into() };
        let certificate = certificate(&names, &issuer);
        assert_eq!(certificate.spec.private_key.encoding, "PKCS1");
        assert_eq!(certificate.spec.secret_name, "sample-harbor-core-tokencert");
        assert_eq!(certificate.spec.issuer_ref.kind, "ClusterIssuer");
    }
}
