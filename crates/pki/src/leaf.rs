//! Certificates for servers and clients.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyUsagePurpose};

use crate::error::PkiError;
use crate::key::PrivateKey;
use crate::pair::Pair;
use crate::params::params;
use crate::reading::Certificate;
use crate::time::{BACKDATE, after, before};

/// A recipe for certificates of a server or a client.
///
/// ```
/// use std::time::Duration;
/// use windlass_pki::{Algorithm, AuthorityRecipe, Certificate, LeafRecipe, PrivateKey};
///
/// # fn main() -> Result<(), windlass_pki::PkiError> {
/// const DAY: Duration = Duration::from_hours(24);
/// let now = jiff::Timestamp::UNIX_EPOCH + DAY;
/// let authority = AuthorityRecipe::new("db", 365 * DAY).make(now)?;
///
/// let node = LeafRecipe::new().common_name("node").names(["db-0.db", "127.0.0.1"]).server().client();
/// let node = node.issue(&authority, PrivateKey::generate(Algorithm::EcdsaP256)?, 90 * DAY, now)?;
/// let user = LeafRecipe::new().common_name("root").client();
/// let user = user.issue(&authority, PrivateKey::generate(Algorithm::Ed25519)?, 90 * DAY, now)?;
///
/// assert!(Certificate::from_pem(node.certificate())?.has_name("127.0.0.1"));
/// assert_eq!(Certificate::from_pem(user.certificate())?.common_name(), Some("root"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeafRecipe {
    common_name: Option<String>,
    names: Vec<String>,
    server: bool,
    client: bool,
    key_encipherment: bool,
}

impl LeafRecipe {
    /// A certificate without names, for no purpose yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the common name, of at most 64 characters. CockroachDB reads the name of a user from it.
    #[must_use]
    pub fn common_name(self, name: impl Into<String>) -> Self {
        Self { common_name: Some(name.into()), ..self }
    }

    /// Adds subject alternative names: DNS names, or IP addresses in text.
    #[must_use]
    pub fn names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.names.extend(names.into_iter().map(Into::into));
        self
    }

    /// The certificate is for a server.
    #[must_use]
    pub fn server(self) -> Self {
        Self { server: true, ..self }
    }

    /// The certificate is for a client.
    #[must_use]
    pub fn client(self) -> Self {
        Self { client: true, ..self }
    }

    /// The key may also be used for key encipherment, which RSA needs in TLS 1.2.
    #[must_use]
    pub fn key_encipherment(self) -> Self {
        Self { key_encipherment: true, ..self }
    }

    /// The subject alternative names.
    pub fn alternative_names(&self) -> &[String] {
        &self.names
    }

    /// Issues a certificate for this key. It neither begins before its authority nor outlives it.
    pub fn issue(
        &self,
        authority: &Pair,
        key: PrivateKey,
        lifetime: Duration,
        now: Timestamp,
    ) -> Result<Pair, PkiError> {
        let issuer = Certificate::from_pem(authority.certificate())?;
        let begins = before(now, BACKDATE).max(issuer.begins());
        let mut params = self.params(begins, after(now, lifetime).min(issuer.ends()))?;
        params.use_authority_key_identifier_extension = true;
        let signer = PrivateKey::from_pem(authority.key())?;
        let issuer = Issuer::from_ca_cert_pem(authority.certificate(), signer.signer())?;
        Ok(Pair::new(params.signed_by(key.signer(), &issuer)?.pem(), key.to_pem()))
    }

    /// A certificate that is signed by its own key and is no authority: for software that wants a certificate
    /// around a key and trusts the key itself.
    pub fn self_signed(&self, key: PrivateKey, lifetime: Duration, now: Timestamp) -> Result<Pair, PkiError> {
        let mut params = self.params(before(now, BACKDATE), after(now, lifetime))?;
        params.is_ca = IsCa::ExplicitNoCa;
        Ok(Pair::new(params.self_signed(key.signer())?.pem(), key.to_pem()))
    }

    fn params(&self, begins: Timestamp, ends: Timestamp) -> Result<CertificateParams, PkiError> {
        let mut params = params(begins, ends, self.names.clone())?;
        if let Some(name) = &self.common_name {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        params.key_usages.push(KeyUsagePurpose::DigitalSignature);
        if self.key_encipherment {
            params.key_usages.push(KeyUsagePurpose::KeyEncipherment);
        }
        if self.server {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        if self.client {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        }
        Ok(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::AuthorityRecipe;
    use crate::bundle::Bundle;
    use crate::key::Algorithm;
    use crate::testing::{DAY, believed, day};

    fn key() -> PrivateKey {
        PrivateKey::generate(Algorithm::EcdsaP256).unwrap()
    }

    #[test]
    fn a_certificate_verifies_as_a_chain_for_each_of_its_names_and_no_other() {
        let authority = AuthorityRecipe::new("shop", 365 * DAY).make(day(0)).unwrap();
        let recipe = LeafRecipe::new().names(["a", "a.b.svc", "127.0.0.1", "::1"]).server();
        let leaf = recipe.issue(&authority, key(), 90 * DAY, day(0)).unwrap();
        let bundle = Bundle::of([authority.certificate()]);
        for name in ["a", "a.b.svc", "127.0.0.1", "::1"] {
            assert!(believed(bundle.as_str(), leaf.certificate(), name, day(1)), "{name}");
        }
        assert!(!believed(bundle.as_str(), leaf.certificate(), "b", day(1)));
        assert!(!believed(bundle.as_str(), leaf.certificate(), "a", day(91)));
        assert!(!believed(bundle.as_str(), leaf.certificate(), "a", day(-1)));
        let other = AuthorityRecipe::new("shop", 365 * DAY).make(day(0)).unwrap();
        assert!(!believed(other.certificate(), leaf.certificate(), "a", day(1)));
    }

    #[test]
    fn a_certificate_lives_within_the_life_of_its_authority() {
        let authority = AuthorityRecipe::new("shop", 30 * DAY).make(day(0)).unwrap();
        let issuer = Certificate::from_pem(authority.certificate()).unwrap();
        // The clock went back a little after the authority was made.
        let leaf = LeafRecipe::new().issue(&authority, key(), 90 * DAY, before(day(0), BACKDATE)).unwrap();
        let leaf = Certificate::from_pem(leaf.certificate()).unwrap();
        assert_eq!((leaf.begins(), leaf.ends()), (issuer.begins(), issuer.ends()));
    }

    #[test]
    fn a_certificate_around_a_key_is_no_authority() {
        let made = LeafRecipe::new().common_name("token").self_signed(key(), DAY, day(0)).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(made.certificate().as_bytes()).unwrap();
        assert!(!pem.parse_x509().unwrap().is_ca());
        let read = Certificate::from_pem(made.certificate()).unwrap();
        assert_eq!((read.common_name(), read.made(), read.ends()), (Some("token"), day(0), day(1)));
    }
}
