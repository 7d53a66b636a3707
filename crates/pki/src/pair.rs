//! A certificate with its key.

use std::fmt;

/// A certificate and its private key, both in PEM. `Debug` prints no key.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    certificate: String,
    key: String,
}

impl Pair {
    /// A pair as it is stored. Nothing is checked here; what cannot be read counts as absent where it is
    /// used.
    pub fn new(certificate: impl Into<String>, key: impl Into<String>) -> Self {
        Self { certificate: certificate.into(), key: key.into() }
    }

    /// The certificate in PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The private key in PEM.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The certificate and the key in PEM.
    pub fn into_parts(self) -> (String, String) {
        (self.certificate, self.key)
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").finish_non_exhaustive()
    }
}
