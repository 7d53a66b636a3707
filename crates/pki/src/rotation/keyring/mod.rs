//! Authorities and one serving certificate in one place, with verifiers that receive the bundle to trust.
//!
//! ```
//! use jiff::Timestamp;
//! use windlass_pki::rotation::{Keyring, Policy};
//! use windlass_pki::{Bundle, Certificate, LeafRecipe};
//!
//! # fn main() -> Result<(), windlass_pki::PkiError> {
//! let recipe = LeafRecipe::new().names(["hooks.shop.svc"]).server();
//! let now: Timestamp = "2026-11-18T00:00:00Z".parse().unwrap_or_default();
//!
//! let mut keyring = Keyring::default();
//! let tended = keyring.tend("shop hooks", &recipe, &Policy::default(), now)?;
//! assert!(tended.changed, "store it, and serve its leaf");
//!
//! // When the bundle is in all configurations, the wait before its newest authority issues begins.
//! assert!(keyring.announce(now), "store it again");
//! let tended = keyring.tend("shop hooks", &recipe, &Policy::default(), now)?;
//! assert!(!tended.changed && tended.until > now, "nothing to do until then");
//! # Ok(())
//! # }
//! ```

pub mod plan;

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;

pub use self::plan::Policy;
use self::plan::{Action, Stored};
use crate::authority::AuthorityRecipe;
use crate::bundle::Bundle;
use crate::error::PkiError;
use crate::key::{Algorithm, PrivateKey};
use crate::leaf::LeafRecipe;
use crate::pair::Pair;
use crate::reading::Certificate;

/// An authority of a [`Keyring`], and the facts about it that its certificate does not state. `Debug` prints
/// no key.
#[derive(Clone, PartialEq, Eq)]
pub struct Trusted {
    /// The certificate in PEM.
    pub certificate: String,
    /// The private key in PEM. Absent once a newer authority has issued: it is not needed again.
    pub key: Option<String>,
    /// The moment since when it is in all configurations.
    pub announced: Option<Timestamp>,
    /// The end of the last certificate that it issued.
    pub last_leaf: Option<Timestamp>,
}

impl fmt::Debug for Trusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trusted")
            .field("signs", &self.key.is_some())
            .field("announced", &self.announced)
            .field("last_leaf", &self.last_leaf)
            .finish_non_exhaustive()
    }
}

/// Authorities and the serving certificate that one of them issued. `Debug` prints no key.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Keyring {
    authorities: Vec<Trusted>,
    leaf: Option<Pair>,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring")
            .field("authorities", &self.authorities.len())
            .field("leaf", &self.leaf.is_some())
            .finish()
    }
}

/// The result of [`Keyring::tend`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tended {
    /// The moment at which to tend it again.
    pub until: Timestamp,
    /// The keyring changed and has to be stored.
    pub changed: bool,
}

impl Keyring {
    /// The authorities of a keyring as they were stored, from the oldest to the newest. Their certificates
    /// must be readable.
    pub fn new(authorities: Vec<Trusted>) -> Result<Self, PkiError> {
        for authority in &authorities {
            Certificate::from_pem(&authority.certificate)?;
        }
        Ok(Self { authorities, leaf: None })
    }

    /// The same with this serving certificate. One that cannot be read counts as absent.
    #[must_use]
    pub fn with_leaf(self, leaf: Pair) -> Self {
        Self { leaf: Some(leaf), ..self }
    }

    /// All trusted authorities, from the oldest to the newest.
    pub fn authorities(&self) -> &[Trusted] {
        &self.authorities
    }

    /// The serving certificate and its key.
    pub fn leaf(&self) -> Option<&Pair> {
        self.leaf.as_ref()
    }

    /// The certificates of all trusted authorities, the newest first.
    pub fn bundle(&self) -> Bundle {
        Bundle::of(self.authorities.iter().rev().map(|authority| authority.certificate.as_str()))
    }

    /// Notes that all authorities are in all configurations. Returns true if that is news, and the keyring
    /// has to be stored.
    ///
    /// A note with a time in the future is the note of a clock that was ahead, and is replaced.
    pub fn announce(&mut self, now: Timestamp) -> bool {
        let mut news = false;
        for authority in &mut self.authorities {
            if authority.announced.is_none_or(|announced| announced > now) {
                authority.announced = Some(now);
                news = true;
            }
        }
        news
    }

    /// Does all that the [plan](plan::plan) wants now. New authorities are called by this name and a digest;
    /// certificates are issued for the names of the recipe and those that the present certificate has.
    pub fn tend(
        &mut self,
        name: &str,
        recipe: &LeafRecipe,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Tended, PkiError> {
        let mut changed = false;
        loop {
            match plan::plan(now, &self.stored(recipe), policy) {
                Action::Wait { until } => return Ok(Tended { until, changed }),
                Action::Begin => {
                    self.add_authority(name, policy, now)?;
                    self.issue(self.authorities.len() - 1, recipe, policy, now)?;
                }
                Action::AddAuthority => self.add_authority(name, policy, now)?,
                Action::Issue { by } => self.issue(by, recipe, policy, now)?,
                Action::Forget { authority } => {
                    self.authorities.remove(authority);
                }
            }
            changed = true;
        }
    }

    /// The facts that matter to the [plan](plan::plan).
    fn stored(&self, recipe: &LeafRecipe) -> Stored {
        let read: Vec<_> =
            self.authorities.iter().map(|stored| Certificate::from_pem(&stored.certificate).ok()).collect();
        let authorities = self.authorities.iter().zip(&read).map(|(stored, certificate)| plan::Authority {
            made: certificate.as_ref().map_or(Timestamp::MIN, Certificate::made),
            ends: certificate.as_ref().map_or(Timestamp::MIN, Certificate::ends),
            signs: stored.key.is_some(),
            announced: stored.announced,
            last_leaf: stored.last_leaf,
        });
        let leaf = self.leaf_certificate().map(|leaf| plan::Leaf {
            issuer: read.iter().position(|authority| {
                authority.as_ref().is_some_and(|authority| leaf.is_issued_by(authority))
            }),
            begins: leaf.begins(),
            ends: leaf.ends(),
            named: recipe.alternative_names().iter().all(|name| leaf.has_name(name)),
        });
        Stored { authorities: authorities.collect(), leaf }
    }

    fn leaf_certificate(&self) -> Option<Certificate> {
        Certificate::from_pem(self.leaf.as_ref()?.certificate()).ok()
    }

    fn add_authority(&mut self, name: &str, policy: &Policy, now: Timestamp) -> Result<(), PkiError> {
        let made = AuthorityRecipe::new(name, policy.authority_lifetime).digits(12).make(now)?;
        let (certificate, key) = made.into_parts();
        self.authorities.push(Trusted { certificate, key: Some(key), announced: None, last_leaf: None });
        Ok(())
    }

    fn issue(
        &mut self,
        by: usize,
        recipe: &LeafRecipe,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<(), PkiError> {
        // Names that it had stay: replicas of two releases that want different names would issue against each
        // other.
        let wanted: BTreeSet<_> = recipe.alternative_names().iter().cloned().collect();
        let had = self.leaf_certificate();
        let more = had.iter().flat_map(Certificate::names).filter(|name| !wanted.contains(*name));
        let recipe = recipe.clone().names(more);
        let authority = self.authorities.get_mut(by).ok_or(PkiError::NoSigningKey)?;
        let key = authority.key.clone().ok_or(PkiError::NoSigningKey)?;
        let pair = Pair::new(authority.certificate.clone(), key);
        let key = PrivateKey::generate(Algorithm::EcdsaP256)?;
        let leaf = recipe.issue(&pair, key, policy.leaf_lifetime, now)?;
        let ends = Certificate::from_pem(leaf.certificate())?.ends();
        authority.last_leaf = authority.last_leaf.max(Some(ends));
        self.leaf = Some(leaf);
        for older in &mut self.authorities[..by] {
            older.key = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{believed, day};

    fn recipe(names: &[&str]) -> LeafRecipe {
        LeafRecipe::new().names(names.iter().copied()).server()
    }

    fn tended(keyring: &Keyring, now: Timestamp, wanted: &[&str]) -> (Keyring, Timestamp, bool) {
        let mut keyring = keyring.clone();
        let tended = keyring.tend("hooks", &recipe(wanted), &Policy::default(), now).unwrap();
        (keyring, tended.until, tended.changed)
    }

    fn count(keyring: &Keyring) -> usize {
        keyring.bundle().certificates().len()
    }

    fn leaf(keyring: &Keyring) -> Certificate {
        keyring.leaf_certificate().unwrap()
    }

    fn is_accepted(keyring: &Keyring, now: Timestamp) -> bool {
        believed(keyring.bundle().as_str(), keyring.leaf().unwrap().certificate(), "a.b.svc", now)
            && keyring.bundle().trusts(&leaf(keyring), now)
    }

    #[test]
    fn an_empty_keyring_gets_an_authority_and_a_certificate_with_these_names_and_times() {
        let (keyring, until, changed) = tended(&Keyring::default(), day(0), &["a.b.svc", "127.0.0.1", "::1"]);
        assert!(changed);
        assert_eq!(until, day(60));
        assert_eq!(leaf(&keyring).names(), &["a.b.svc", "127.0.0.1", "::1"].map(str::to_owned).into());
        assert_eq!((leaf(&keyring).made(), leaf(&keyring).ends()), (day(0), day(90)));
        let authority = keyring.bundle().certificates().remove(0);
        assert_eq!((authority.made(), authority.ends()), (day(0), day(730)));
        let name = authority.common_name().unwrap();
        assert!(name.starts_with("hooks ") && name.len() == 6 + 12, "{name}");
        assert!(is_accepted(&keyring, day(0)));
        assert!(!tended(&keyring, day(59), &["a.b.svc"]).2);
    }

    #[test]
    fn a_life_of_three_authorities_with_the_old_one_trusted_until_its_last_certificate_has_ended() {
        let wanted = ["a.b.svc"];
        let (mut keyring, mut until, _) = tended(&Keyring::default(), day(0), &wanted);
        let (mut sizes, mut authorities) = (BTreeSet::new(), BTreeSet::new());
        while until < day(1500) {
            let now = until;
            (keyring, _, _) = tended(&keyring, now, &wanted);
            keyring.announce(now);
            (_, until, _) = tended(&keyring, now, &wanted);
            sizes.insert(count(&keyring));
            assert!(is_accepted(&keyring, now));
            let bundle = keyring.bundle().certificates();
            let issuer = bundle.into_iter().find(|authority| leaf(&keyring).is_issued_by(authority)).unwrap();
            authorities.insert(issuer.common_name().map(str::to_owned));
        }
        assert_eq!(sizes, [1, 2].into());
        assert_eq!(authorities.len(), 3);
    }

    #[test]
    fn a_retired_authority_keeps_no_key() {
        let wanted = ["a.b.svc"];
        let (mut keyring, _, _) = tended(&Keyring::default(), day(0), &wanted);
        (keyring, _, _) = tended(&keyring, day(550), &wanted);
        assert_eq!(count(&keyring), 2);
        assert!(keyring.announce(day(550)) && !keyring.announce(day(551)));
        (keyring, _, _) = tended(&keyring, day(551), &wanted);
        assert_eq!(keyring.authorities.iter().map(|a| a.key.is_some()).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn names_are_added_and_replicas_that_want_others_do_not_issue_against_each_other() {
        let (keyring, _, _) = tended(&Keyring::default(), day(0), &["old.b.svc"]);
        let (keyring, _, changed) = tended(&keyring, day(1), &["new.b.svc"]);
        assert!(changed);
        for wanted in ["old.b.svc", "new.b.svc"] {
            assert!(!tended(&keyring, day(1), &[wanted]).2, "{wanted}");
        }
        assert_eq!(count(&keyring), 1);
    }

    #[test]
    fn neither_a_keyring_nor_an_authority_prints_a_key() {
        let (keyring, _, _) = tended(&Keyring::default(), day(0), &["a.b.svc"]);
        assert_eq!(format!("{keyring:?}"), "Keyring { authorities: 1, leaf: true }");
        assert!(!format!("{:?} {:?}", keyring.authorities, keyring.leaf).contains("BEGIN"));
    }

    #[test]
    fn an_unreadable_authority_is_an_error_and_an_unreadable_leaf_is_replaced() {
        let (keyring, _, _) = tended(&Keyring::default(), day(0), &["a.b.svc"]);
        let broken = Trusted { certificate: "x".into(), ..keyring.authorities[0].clone() };
        assert!(matches!(Keyring::new(vec![broken]), Err(PkiError::NotACertificate)));
        let keyring = Keyring::new(keyring.authorities).unwrap().with_leaf(Pair::new("x", "y"));
        let (keyring, _, changed) = tended(&keyring, day(0), &["a.b.svc"]);
        assert!(changed && count(&keyring) == 1 && is_accepted(&keyring, day(0)));
    }
}
