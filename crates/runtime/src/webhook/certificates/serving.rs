//! The certificate that is served now.

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

/// The certificate that is served now. Clones are the same one; connections made after a change get the new one.
#[derive(Clone, Default)]
pub struct Serving {
    current: Arc<ArcSwapOption<CertifiedKey>>,
    /// How often it was changed.
    changes: Arc<watch::Sender<u64>>,
}

/// A certificate and key that cannot be served. Says nothing of their content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPair {
    /// There is no certificate in the PEM text.
    #[error("the certificate is not PEM or holds none")]
    Certificate,
    /// There is no key in the PEM text.
    #[error("the key is not PEM or holds none")]
    Key,
    /// The key is of a kind that is not supported.
    #[error("the key is of a kind that cannot be used; RSA, ECDSA P-256, P-384 and Ed25519 can")]
    KeyKind,
    /// The key is not the certificate's.
    #[error("the key is not the certificate's")]
    Mismatch,
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").field("available", &self.current.load().is_some()).finish_non_exhaustive()
    }
}

impl Serving {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves this pair from now on. One that cannot be served changes nothing; nor does the one that is served already.
    pub fn replace(&self, certificate_pem: &[u8], key_pem: &[u8]) -> Result<bool, BadPair> {
        let pair = pair(certificate_pem, key_pem)?;
        if self.current.load().as_ref().is_some_and(|served| served.cert == pair.cert) {
            return Ok(false);
        }
        self.current.store(Some(Arc::new(pair)));
        self.changes.send_modify(|count| *count += 1);
        Ok(true)
    }

    /// Waits until there is one. Cancel safe.
    pub async fn available(&self) {
        // The sender is ours, so it is there.
        let _ = self.changes.subscribe().wait_for(|count| *count > 0).await;
    }

    /// When it ends; `None` if there is none, or it does not say.
    pub fn ends(&self) -> Option<Timestamp> {
        let served = self.current.load_full()?;
        Certificate::from_der(served.cert.first()?).ok().map(|certificate| certificate.ends())
    }

    /// How often it was replaced, the first time included; now and from now on.
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
    // Whatever name is asked for: API servers that call by IP ask for none.
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
        // What rcgen gives to certificates whose end nobody set.
        assert_eq!(serving.ends().unwrap().to_string(), "4096-01-01T00:00:00Z");
        assert_eq!(replace(&certificate, &key), Ok(false));
        assert_eq!(replace(&other, &key), Err(BadPair::Mismatch));
        assert_eq!(*serving.changes().borrow(), 1);
        assert_eq!(replace(&other, &other_key), Ok(true));
        assert_eq!(*serving.changes().borrow(), 2);
    }
}
