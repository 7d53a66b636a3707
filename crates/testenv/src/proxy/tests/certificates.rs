//! Certificates for 127.0.0.1, made for the test.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};

#[derive(Clone)]
pub(crate) struct Certificates {
    pub(crate) ca_pem: String,
    pub(crate) ca_der: Vec<u8>,
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
}

impl Certificates {
    pub(crate) fn generate() -> Self {
        let mut authority = params("windlass test authority", Vec::new());
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = params("windlass test server", vec!["127.0.0.1".to_owned()]);
        Self {
            ca_pem: authority.pem(),
            ca_der: authority.der().to_vec(),
            certificate_pem: leaf.signed_by(&key, &authority).unwrap().pem(),
            key_pem: key.serialize_pem(),
        }
    }
}

fn params(name: &str, alternative_names: Vec<String>) -> CertificateParams {
    let mut params = CertificateParams::new(alternative_names).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2120, 1, 1);
    params
}
