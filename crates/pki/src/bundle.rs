//! The authorities that a verifier trusts.

use jiff::Timestamp;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use crate::reading::Certificate;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// The certificates of authorities that a verifier trusts, in one text of PEM: a `ca.crt` or a `caBundle`.
///
/// ```
/// use std::time::Duration;
/// use windlass_pki::{AuthorityRecipe, Bundle};
///
/// # fn main() -> Result<(), windlass_pki::PkiError> {
/// let recipe = AuthorityRecipe::new("shop", Duration::from_hours(24));
/// let now = jiff::Timestamp::UNIX_EPOCH + Duration::from_hours(1);
/// let (new, old) = (recipe.make(now)?, recipe.make(now)?);
/// let bundle = Bundle::of([new.certificate(), old.certificate()]);
/// assert_eq!(bundle.certificates().len(), 2);
/// assert!(bundle.holds_all_of(&Bundle::of([old.certificate()])));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundle(String);

impl Bundle {
    /// A bundle of these certificates in PEM, in this order.
    pub fn of<'a>(certificates: impl IntoIterator<Item = &'a str>) -> Self {
        Self(certificates.into_iter().collect())
    }

    /// The bundle in PEM.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bundle in PEM.
    pub fn into_pem(self) -> String {
        self.0
    }

    /// All certificates that can be read.
    pub fn certificates(&self) -> Vec<Certificate> {
        let all = CertificateDer::pem_slice_iter(self.0.as_bytes()).filter_map(Result::ok);
        all.filter_map(|der| Certificate::from_der(&der).ok()).collect()
    }

    /// The certificates of this bundle that can be read and are to be kept, with their text unchanged.
    #[must_use]
    pub(crate) fn only(&self, mut keep: impl FnMut(&Certificate) -> bool) -> Self {
        let blocks = self.0.split_inclusive(END).filter(|block| block.contains(BEGIN));
        let kept = blocks.filter(|block| Certificate::from_pem(block).is_ok_and(|read| keep(&read)));
        Self(kept.flat_map(|block| [block.trim(), "\n"]).collect())
    }

    /// This bundle without these certificates, and each of the others once.
    #[must_use]
    pub(crate) fn without(&self, certificates: &[Certificate]) -> Self {
        let mut seen = certificates.to_vec();
        self.only(|certificate| {
            let is_new = !seen.contains(certificate);
            if is_new {
                seen.push(certificate.clone());
            }
            is_new
        })
    }

    /// Returns true if every certificate of the other bundle is in this one.
    pub fn holds_all_of(&self, other: &Self) -> bool {
        let own = self.certificates();
        other.certificates().iter().all(|certificate| own.contains(certificate))
    }

    /// Returns true if a verifier with this bundle trusts the certificate now: both the certificate and the
    /// authority that issued it are valid. Signatures are not verified; this is for decisions about
    /// certificates of one's own.
    pub fn trusts(&self, leaf: &Certificate, now: Timestamp) -> bool {
        let issued = |authority: &Certificate| leaf.is_issued_by(authority) && authority.is_valid_at(now);
        leaf.is_valid_at(now) && self.certificates().iter().any(issued)
    }
}
