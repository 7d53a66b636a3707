//! TLS from PEM texts. HTTP/1.1 only on both sides, rustls with ring, no client certificates.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::error::ProxyError;

const ALPN: &[u8] = b"http/1.1";

/// The side that clients connect to.
pub(super) fn acceptor(certificate_pem: &[u8], key_pem: &[u8]) -> Result<TlsAcceptor, ProxyError> {
    let chain = certificates("the serving certificate", certificate_pem)?;
    let key = PrivateKeyDer::from_pem_slice(key_pem)
        .map_err(|error| ProxyError::Pem { what: "the serving key", reason: error.to_string() })?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The side that connects to the API server.
pub(super) fn connector(ca_pem: &[u8]) -> Result<TlsConnector, ProxyError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("the API server's authority", ca_pem)? {
        roots.add(certificate)?;
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn certificates(what: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ProxyError> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| ProxyError::Pem { what, reason: error.to_string() })?;
    if found.is_empty() {
        return Err(ProxyError::Pem { what, reason: "it holds no certificate".to_owned() });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::tests::certificates::Certificates;

    #[test]
    fn an_error_in_a_pem_text_is_reported_without_its_content() {
        let good = Certificates::generate();
        let errors = [
            acceptor(b"", good.key_pem.as_bytes()).err(),
            acceptor(good.certificate_pem.as_bytes(), b"").err(),
            connector(b"no certificate here").err(),
        ];
        let errors = errors.map(|error| error.map(|error| error.to_string()).unwrap_or_default());
        assert_eq!(errors[0], "the proxy cannot read the serving certificate: it holds no certificate");
        assert!(errors[1].starts_with("the proxy cannot read the serving key: "), "{}", errors[1]);
        assert_eq!(errors[2], "the proxy cannot read the API server's authority: it holds no certificate");
    }

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let (one, other) = (Certificates::generate(), Certificates::generate());
        let result = acceptor(one.certificate_pem.as_bytes(), other.key_pem.as_bytes());
        assert!(matches!(result, Err(ProxyError::Tls(_))));
    }
}
