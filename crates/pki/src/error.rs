//! Errors of this crate.

/// A certificate that cannot be made or read. Names no content of a certificate or key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PkiError {
    /// The certificate cannot be made, for example because a name is not valid in a certificate.
    #[error("a certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
    /// The text is not a certificate in PEM.
    #[error("the text is not a certificate in PEM")]
    NotACertificate,
    /// The text is not a private key in PEM, or a key of an algorithm that is not supported.
    #[error(
        "the text is not a private key in PEM that can be used; RSA, ECDSA P-256, P-384 and Ed25519 can be"
    )]
    NotAKey,
    /// The authority's key is needed and is not stored.
    #[error("the authority has no key to sign with")]
    NoSigningKey,
}
