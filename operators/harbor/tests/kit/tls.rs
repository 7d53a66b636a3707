//! An authority for one test, and a server's certificate of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// Files of a server's certificate, named as Secrets of type `kubernetes.io/tls` name them.
#[derive(Debug)]
pub(crate) struct Tls {
    pub(crate) dir: PathBuf,
    pub(crate) authority: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    authority_der: Vec<u8>,
}

impl Tls {
    /// Writes a new authority's certificate, and one for `localhost` and 127.0.0.1.
    pub(crate) fn new(dir: &Path) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Each has a name of its own: with one name for two, a client would find the wrong key rather than no
        // authority.
        params.distinguished_name.push(rcgen::DnType::CommonName, format!("authority of {}", dir.display()));
        let authority_key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&authority_key).unwrap();
        let issuer = Issuer::new(params, authority_key);
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        let tls = Self {
            dir: dir.to_owned(),
            authority: dir.join("ca.crt"),
            certificate: dir.join("tls.crt"),
            key: dir.join("tls.key"),
            authority_der: authority.der().to_vec(),
        };
        fs::write(&tls.authority, authority.pem()).unwrap();
        fs::write(&tls.certificate, certificate.pem()).unwrap();
        fs::write(&tls.key, key.serialize_pem()).unwrap();
        tls
    }

    /// A client that trusts this authority alone.
    pub(crate) fn client(&self) -> Arc<rustls::ClientConfig> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.authority_der.clone().into()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Arc::new(config)
    }
}
