//! TLS modes of connections to PostgreSQL.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use windlass_runtime::controller::Error;

use crate::config::Confidential;
use crate::config::database::SslMode;

/// Returns the TLS configuration of a mode. Not called for connections without TLS.
pub(super) fn config(mode: SslMode, authorities: &[Confidential]) -> Result<ClientConfig, Error> {
    config_trusting(mode, rustls_native_certs::load_native_certs().certs, authorities)
}

/// The same, with the certificate authorities of the machine as an argument.
fn config_trusting(
    mode: SslMode,
    of_machine: Vec<CertificateDer<'static>>,
    authorities: &[Confidential],
) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let authority = || -> Result<_, Error> {
        let roots = roots(of_machine, authorities)?;
        if roots.is_empty() {
            return Err(Error::terminal(format!(
                "sslmode {mode} verifies the certificate of the server, and no certificate authority is \
                 known: the image of the operator has none; name the Secret with the authority of the server \
                 (ca.crt) in database.certificateRef"
            )));
        }
        Ok(WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build()?)
    };
    let verifier: Arc<dyn ServerCertVerifier> = match mode {
        SslMode::VerifyFull => authority()?,
        SslMode::VerifyCa => Arc::new(Lenient { authority: Some(authority()?), provider }),
        SslMode::Disable | SslMode::Allow | SslMode::Prefer | SslMode::Require => {
            Arc::new(Lenient { authority: None, provider })
        }
    };
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Returns the certificate authorities of this machine and those of the user.
fn roots(
    of_machine: Vec<CertificateDer<'static>>,
    authorities: &[Confidential],
) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(of_machine);
    for authority in authorities {
        for certificate in CertificateDer::pem_slice_iter(authority.expose().as_bytes()) {
            roots.add(certificate?)?;
        }
    }
    Ok(roots)
}

/// A verifier that does not check the host name and, without a certificate authority, does not check the
/// certificate either: `require` encrypts but does not authenticate.
#[derive(Debug)]
struct Lenient {
    authority: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        match authority.verify_server_cert(certificate, intermediates, name, stapled, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_d3_verification_without_any_authority_is_refused_in_words() {
        for mode in [SslMode::VerifyCa, SslMode::VerifyFull] {
            let error = config_trusting(mode, Vec::new(), &[]).unwrap_err().to_string();
            for part in [mode.as_str(), "no certificate authority is known", "database.certificateRef"] {
                assert!(error.contains(part), "{part} in {error}");
            }
        }
        for mode in [SslMode::Prefer, SslMode::Require] {
            config_trusting(mode, Vec::new(), &[]).unwrap();
        }
    }
}
