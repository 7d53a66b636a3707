//! TLS to PostgreSQL, as far as its modes go.

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

/// What a client of this mode is satisfied with. Without TLS it is not asked.
pub(super) fn config(mode: SslMode, authorities: &[Confidential]) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let authority = || -> Result<_, Error> {
        Ok(WebPkiServerVerifier::builder_with_provider(Arc::new(roots(authorities)?), Arc::clone(&provider))
            .build()?)
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

/// The authorities of this machine, as Core's image has its own, and those of the user.
fn roots(authorities: &[Confidential]) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for authority in authorities {
        for certificate in CertificateDer::pem_slice_iter(authority.expose().as_bytes()) {
            roots.add(certificate?)?;
        }
    }
    Ok(roots)
}

/// A verifier that does not mind the name, nor, without an authority, anything else: `require` promises that nobody listens, not who
/// it is.
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
