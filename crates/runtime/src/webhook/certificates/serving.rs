//! The certificate in use.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::watch;
use windlass_pki::Certificate;

/// The certificate in use. Clones are the same one; connections opened after a change get the new one.
#[derive(Clone, Default)]
pub struct Serving {
    current: Arc<ArcSwapOption<CertifiedKey>>,
    /// The number of changes.
    changes: Arc<watch::Sender<u64>>,
}

/// A certificate and key that cannot be served. Never contains them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPair {
    /// There is no certificate in the PEM text.
    #[error("the certificate file is not PEM or contains no certificate")]
    Certificate,
    /// There is no key in the PEM text.
    #[error("the key file is not PEM or contains no key")]
    Key,
    /// The type of the key is not supported.
    #[error("the key type is not supported; use RSA, ECDSA P-256, P-384 or Ed25519")]
    KeyKind,
    /// The key does not belong to the certificate.
    #[error("the key does not belong to the certificate")]
    Mismatch,
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").field("available", &self.current.load().is_some()).finish_non_exhaustive()
    }
}

impl Serving {
    /// Creates it without a certificate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves this pair from now on. An invalid pair, or the pair in use, changes nothing.
    pub fn replace(&self, certificate_pem: &[u8], key_pem: &[u8]) -> Result<bool, BadPair> {
        let pair = pair(certificate_pem, key_pem)?;
        if self.current.load().as_ref().is_some_and(|served| served.cert == pair.cert) {
            return Ok(false);
        }
        self.current.store(Some(Arc::new(pair)));
        self.changes.send_modify(|count| *count += 1);
        Ok(true)
    }

    /// Waits until there is a certificate. Cancel safe.
    pub async fn available(&self) {
        // Cannot fail: the sender is a field of this struct.
        let _ = self.changes.subscribe().wait_for(|count| *count > 0).await;
    }

    /// The expiry time; `None` if there is no certificate, or it has no expiry time.
    pub fn ends(&self) -> Option<Timestamp> {
        let served = self.current.load_full()?;
        Certificate::from_der(served.cert.first()?).ok().map(|certificate| certificate.ends())
    }

    /// The number of replacements, including the first, now and in the future.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

fn pair(certificate_pem: &[u8], key_pem: &[u8]) -> Result<CertifiedKey, BadPair> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate_pem)
        .collect::<Result<_, _>>()
        .map_err(|_| BadPair::Certificate)?;
    if chain.is_empty() {
        return Err(BadPair::Certificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|_| BadPair::Key)?;
    let key = ring::sign::any_supported_type(&key).map_err(|_| BadPair::KeyKind)?;
    let pair = CertifiedKey::new(chain, key);
    match pair.keys_match() {
        Ok(()) => Ok(pair),
        Err(rustls::Error::InvalidCertificate(_)) => Err(BadPair::Certificate),
        Err(_) => Err(BadPair::Mismatch),
    }
}

impl ResolvesServerCert for Serving {
    // The server name is ignored: API servers that call by IP address send none.
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.load_full()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issued() -> (String, String) {
        let pair = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
        (pair.cert.pem(), pair.signing_key.serialize_pem())
    }

    #[tokio::test]
    async fn a_bad_pair_leaves_the_served_one_and_the_same_pair_changes_nothing() {
        let serving = Serving::new();
        let ((certificate, key), (other, other_key)) = (issued(), issued());
        let replace = |certificate: &str, key: &str| serving.replace(certificate.as_bytes(), key.as_bytes());
        assert_eq!(replace(&certificate, &other_key), Err(BadPair::Mismatch));
        assert_eq!(replace("", &key), Err(BadPair::Certificate));
        assert_eq!(replace(&certificate, "key"), Err(BadPair::Key));
        assert_eq!((*serving.changes().borrow(), serving.ends()), (0, None));
        assert_eq!(replace(&certificate, &key), Ok(true));
        serving.available().await;
        // rcgen's default for certificates without an explicit expiry time.
        assert_eq!(serving.ends().unwrap().to_string(), "4096-01-01T00:00:00Z");
        assert_eq!(replace(&certificate, &key), Ok(false));
        assert_eq!(replace(&other, &key), Err(BadPair::Mismatch));
        assert_eq!(*serving.changes().borrow(), 1);
        assert_eq!(replace(&other, &other_key), Ok(true));
        assert_eq!(*serving.changes().borrow(), 2);
    }
}
