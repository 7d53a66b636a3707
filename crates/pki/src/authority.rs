//! Certificate authorities: recipes, creation, and signing.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{BasicConstraints, DnType, IsCa, KeyUsagePurpose};

use crate::error::PkiError;
use crate::key::{Algorithm, PrivateKey};
use crate::pair::Pair;
use crate::params::params;
use crate::time::{BACKDATE, after, before};

/// A recipe for authorities that sign themselves and issue leaf certificates only.
///
/// ```
/// use std::time::Duration;
/// use windlass_pki::{AuthorityRecipe, Certificate};
///
/// # fn main() -> Result<(), windlass_pki::PkiError> {
/// let now = jiff::Timestamp::UNIX_EPOCH + Duration::from_hours(24);
/// let recipe = AuthorityRecipe::new("shop", Duration::from_hours(24 * 365));
/// let (one, two) = (recipe.make(now)?, recipe.make(now)?);
/// // Each authority has a name of its own, so that a leaf tells by which one it was issued.
/// let (one, two) = (Certificate::from_pem(one.certificate())?, Certificate::from_pem(two.certificate())?);
/// assert_ne!(one.common_name(), two.common_name());
/// assert!(one.common_name().is_some_and(|name| name.starts_with("shop ")));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorityRecipe {
    name: String,
    lifetime: Duration,
    digits: usize,
}

impl AuthorityRecipe {
    /// Authorities that live this long. The common name is `name` and eight hexadecimal digits of a digest of
    /// the key; a common name has at most 64 characters.
    pub fn new(name: impl Into<String>, lifetime: Duration) -> Self {
        Self { name: name.into(), lifetime, digits: 8 }
    }

    /// The same with this number of digits after the name.
    #[must_use]
    pub fn digits(self, digits: usize) -> Self {
        Self { digits, ..self }
    }

    /// The lifetime of an authority.
    pub fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// Makes an authority with a new ECDSA P-256 key.
    pub fn make(&self, now: Timestamp) -> Result<Pair, PkiError> {
        let key = PrivateKey::generate(Algorithm::EcdsaP256)?;
        let mut params = params(before(now, BACKDATE), after(now, self.lifetime), Vec::new())?;
        let digest = key.digest();
        let id: String = digest.chars().take(self.digits).collect();
        params.distinguished_name.push(DnType::CommonName, format!("{} {id}", self.name));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Ok(Pair::new(params.self_signed(key.signer())?.pem(), key.to_pem()))
    }
}
