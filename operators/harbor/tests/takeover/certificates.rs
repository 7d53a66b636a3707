//! Certificates as cert-manager makes them: RSA, with keys in PKCS#1, for the short name only.

use harbor_operator::config::token_key;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256,
};
use rsa::pkcs1::DecodeRsaPrivateKey as _;
use rsa::pkcs8::EncodePrivateKey as _;

/// Certificate and key in a Secret of type `kubernetes.io/tls`.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) authority: String,
}

/// An authority that signed itself.
pub(crate) struct Authority {
    pub(crate) pair: Pair,
    /// One for all: to make one takes long.
    leaf: String,
}

fn signer(pem: &str) -> KeyPair {
    let key = rsa::RsaPrivateKey::from_pkcs1_pem(pem).unwrap();
    let key = key.to_pkcs8_pem(rsa::pkcs8::LineEnding::LF).unwrap();
    KeyPair::from_pkcs8_pem_and_sign_algo(&key, &PKCS_RSA_SHA256).unwrap()
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let key = token_key::generate().unwrap().expose().to_owned();
        let mut params = params(Vec::new(), name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&signer(&key)).unwrap().pem();
        let leaf = token_key::generate().unwrap().expose().to_owned();
        Self { pair: Pair { authority: certificate.clone(), certificate, key }, leaf }
    }

    pub(crate) fn issue(&self, host: &str) -> Pair {
        let mut params = params(vec![host.to_owned()], host);
        params.use_authority_key_identifier_extension = true;
        let issuer = Issuer::from_ca_cert_pem(&self.pair.certificate, signer(&self.pair.key)).unwrap();
        let certificate = params.signed_by(&signer(&self.leaf), &issuer).unwrap().pem();
        Pair { certificate, key: self.leaf.clone(), authority: self.pair.certificate.clone() }
    }
}

fn params(hosts: Vec<String>, name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let now = jiff::Timestamp::now().as_second();
    let at = |days: i64| {
        let seconds = u64::try_from(now + days * 86_400).unwrap();
        rcgen::date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(seconds)
    };
    (params.not_before, params.not_after) = (at(-10), at(80));
    params
}
