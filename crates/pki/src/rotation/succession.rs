//! An authority in one place, and certificates of it in others, each beside a copy of the bundle.
//!
//! When two thirds of its life are over, the next authority is made and trusted beside it. After an overlap it begins to issue, and all
//! certificates are issued anew. After another overlap the old one is trusted no more. Readers are pods that are replaced when the
//! object that they read changes, so an overlap must be longer than twice the time that this takes.
//!
//! ```text
//! authority 1  |====issues==============|--previous--|
//! authority 2                 |--next---|====issues==========…
//!                              overlap     overlap
//! ```
//!
//! The authority and its certificates are written one after the other, and the writer may stop in between for any time. Therefore no step
//! is taken by the clock alone: the certificates [in use](InUse) show how far the previous step has come. A certificate is issued
//! anew when its bundle gains an authority, so that its own date tells since when its readers can know that authority.
//!
//! ```
//! use std::time::Duration;
//! use jiff::Timestamp;
//! use windlass_pki::rotation::{InUse, Succession};
//! use windlass_pki::{Algorithm, AuthorityRecipe, Certificate, LeafRecipe, PkiError, PrivateKey};
//!
//! # fn main() -> Result<(), PkiError> {
//! const DAY: Duration = Duration::from_hours(24);
//! let now: Timestamp = "2026-11-18T00:00:00Z".parse().unwrap_or_default();
//! let recipe = AuthorityRecipe::new("shop", 365 * DAY);
//! let (authority, due) = Succession::tend(None, &[], &recipe, now)?;
//!
//! let server = LeafRecipe::new().names(["shop.svc"]).server();
//! let key = || PrivateKey::generate(Algorithm::EcdsaP256);
//! let (leaf, leaf_due) = authority.tend_leaf(None, &server, 90 * DAY, key, now)?;
//! assert_eq!(leaf_due, now + 60 * DAY);
//! assert!(leaf.bundle.trusts(&Certificate::from_pem(leaf.pair.certificate())?, now));
//!
//! // When it is due, the next authority joins it; the certificates in use are looked at before any further step.
//! let (authority, _) = Succession::tend(Some(&authority), &[InUse::of(&leaf)], &recipe, due)?;
//! assert_eq!(authority.bundle().certificates().len(), 2);
//! # Ok(())
//! # }
//! ```

use std::time::Duration;

use jiff::Timestamp;

use crate::authority::AuthorityRecipe;
use crate::bundle::Bundle;
use crate::error::PkiError;
use crate::key::PrivateKey;
use crate::leaf::LeafRecipe;
use crate::pair::Pair;
use crate::reading::Certificate;
use crate::time::after;

/// The longest time for which two authorities are trusted before the newer one issues.
const LONGEST_OVERLAP: Duration = Duration::from_hours(24);

/// Returns the time between two steps of a rotation: a tenth of the authority's lifetime, and at most 24 hours.
pub fn overlap(lifetime: Duration) -> Duration {
    LONGEST_OVERLAP.min(lifetime / 10)
}

/// An authority, the one that follows it, and the one that it followed.
///
/// Fields hold what is stored, readable or not: an unreadable certificate or key counts as absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Succession {
    /// The authority that issues.
    pub current: Pair,
    /// The authority that will issue after an overlap, and is trusted already.
    pub next: Option<Pair>,
    /// The authority that issued before, and is trusted for an overlap.
    pub previous: Option<Previous>,
}

/// An authority that issues no more and is still trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Previous {
    /// Its certificate in PEM.
    pub certificate: String,
    /// The moment since when another authority issues in its place.
    pub replaced: Timestamp,
}

/// A certificate with the bundle that is stored beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The certificate and its key.
    pub pair: Pair,
    /// The authorities that readers of this certificate trust.
    pub bundle: Bundle,
}

/// A certificate of the authority as it is stored now, for the decision about the authority's next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InUse {
    certificate: Option<Certificate>,
    bundle: Bundle,
}

impl InUse {
    /// A certificate and the bundle beside it, in PEM. An unreadable certificate is used by nobody and holds nothing up.
    pub fn new(certificate: &str, bundle: &str) -> Self {
        Self { certificate: Certificate::from_pem(certificate).ok(), bundle: Bundle::of([bundle]) }
    }

    /// The same for a certificate that this crate has made.
    pub fn of(leaf: &Leaf) -> Self {
        Self::new(leaf.pair.certificate(), leaf.bundle.as_str())
    }
}

impl Succession {
    /// The authorities to trust: the next, the current and the previous one.
    pub fn bundle(&self) -> Bundle {
        let next = self.next.iter().map(Pair::certificate);
        let previous = self.previous.iter().map(|previous| &*previous.certificate);
        Bundle::of(next.chain([self.current.certificate()]).chain(previous))
    }

    /// Returns the authority as it is to be now, and the moment at which to tend it again.
    ///
    /// An authority that has ended, is not valid yet or cannot be read is replaced at once, since no verifier accepts its certificates.
    pub fn tend(
        present: Option<&Self>,
        leaves: &[InUse],
        recipe: &AuthorityRecipe,
        now: Timestamp,
    ) -> Result<(Self, Timestamp), PkiError> {
        let overlap = overlap(recipe.lifetime());
        let usable = present.and_then(|present| Some((present, signing(&present.current, now)?)));
        let Some((present, mut certificate)) = usable else {
            return Self::begin(present, recipe, now);
        };
        let Self { mut current, next, mut previous } = present.clone();
        let mut next = next.filter(|next| signing(next, now).is_some());
        // A moment in the future was noted by a clock that was ahead.
        if let Some(previous) = &mut previous {
            previous.replaced = previous.replaced.min(now);
        }
        let mut due = None;
        let mut wait = |until: Timestamp| {
            due = Some(due.map_or(until, |due: Timestamp| due.min(until)));
        };
        if let Some(replaced) = previous.as_ref().map(|previous| previous.replaced) {
            let rolled = rolled(leaves, overlap, now, |leaf| leaf.is_issued_by(&certificate), |_| true);
            match after(replaced, overlap).max(rolled) {
                until if until <= now => previous = None,
                until => wait(until),
            }
        }
        if let Some(pair) = next.take() {
            let announced = signing(&pair, now).map_or(now, |next| next.made());
            let only = Bundle::of([pair.certificate()]);
            let rolled = rolled(leaves, overlap, now, |_| true, |bundle| bundle.holds_all_of(&only));
            match after(announced, overlap).max(rolled) {
                until if until <= now && previous.is_none() => {
                    certificate = Certificate::from_pem(pair.certificate())?;
                    let old = std::mem::replace(&mut current, pair);
                    previous = Some(Previous { certificate: old.into_parts().0, replaced: now });
                    wait(after(now, overlap));
                }
                until => {
                    if until > now {
                        wait(until);
                    }
                    next = Some(pair);
                }
            }
        }
        if next.is_none() && previous.is_none() {
            if certificate.two_thirds() <= now {
                next = Some(recipe.make(now)?);
                wait(after(now, overlap));
            } else {
                wait(certificate.two_thirds());
            }
        }
        Ok((Self { current, next, previous }, due.unwrap_or_else(|| after(now, overlap))))
    }

    /// A new authority. All others that are there and have not ended stay trusted until all have rolled, also those that are not valid
    /// yet: it may be the present clock that is wrong.
    fn begin(
        present: Option<&Self>,
        recipe: &AuthorityRecipe,
        now: Timestamp,
    ) -> Result<(Self, Timestamp), PkiError> {
        let known = present.map(|present| {
            let previous = present.previous.as_ref().map(|previous| &*previous.certificate);
            Bundle::of([present.current.certificate()].into_iter().chain(previous))
        });
        let alive = known.unwrap_or_default().only(|authority| authority.ends() > now).into_pem();
        let previous = (!alive.is_empty()).then_some(Previous { certificate: alive, replaced: now });
        let current = recipe.make(now)?;
        let due = match &previous {
            Some(_) => after(now, overlap(recipe.lifetime())),
            None => Certificate::from_pem(current.certificate())?.two_thirds(),
        };
        Ok((Self { current, next: None, previous }, due))
    }

    /// Returns a certificate as it is to be now, and the moment at which to tend it again.
    ///
    /// The present one is kept if it is valid and not due, has the first of the recipe's names, its key can be read, the current
    /// authority issued it, and its bundle lacks no authority. A certificate that lacks further names (another operator's) gets them
    /// when it is issued anew anyway. One of another authority that is trusted is kept for the first overlap of the current authority's life:
    /// readers do not know an authority yet that replaced a broken one.
    pub fn tend_leaf<E: From<PkiError>>(
        &self,
        present: Option<&Leaf>,
        recipe: &LeafRecipe,
        lifetime: Duration,
        key: impl FnOnce() -> Result<PrivateKey, E>,
        now: Timestamp,
    ) -> Result<(Leaf, Timestamp), E> {
        let bundle = self.bundle();
        let issuer = Certificate::from_pem(self.current.certificate())?;
        let issuer_lifetime = Duration::try_from(issuer.made().duration_until(issuer.ends()));
        let settled = after(issuer.made(), overlap(issuer_lifetime.unwrap_or_default()));
        let good_until = |leaf: &Leaf| {
            PrivateKey::from_pem(leaf.pair.key()).ok()?;
            let certificate = Certificate::from_pem(leaf.pair.certificate()).ok()?;
            let first = recipe.alternative_names().first()?;
            let until = if !certificate.is_issued_by(&issuer) {
                bundle.trusts(&certificate, now).then_some(settled.min(certificate.two_thirds()))
            } else {
                leaf.bundle.holds_all_of(&bundle).then_some(certificate.two_thirds())
            };
            until.filter(|until| *until > now && certificate.has_name(first) && certificate.is_valid_at(now))
        };
        if let Some((leaf, until)) = present.and_then(|leaf| Some((leaf, good_until(leaf)?))) {
            return Ok((Leaf { pair: leaf.pair.clone(), bundle }, until));
        }
        let pair = recipe.issue(&self.current, key()?, lifetime, now)?;
        let due = Certificate::from_pem(pair.certificate())?.two_thirds();
        Ok((Leaf { pair, bundle }, due))
    }
}

/// The certificate of a pair that can sign now.
fn signing(pair: &Pair, now: Timestamp) -> Option<Certificate> {
    PrivateKey::from_pem(pair.key()).ok()?;
    Certificate::from_pem(pair.certificate()).ok().filter(|certificate| certificate.is_valid_at(now))
}

/// Returns the moment from which a step is known to have reached all readers: half an overlap after the last certificate was issued, and
/// as much after now if a certificate or bundle shows that the step has not come to it.
///
/// Half, because certificates are written a little after their authority: with a whole overlap, every step would find them a
/// little too young, and each further write of an authority replaces all pods.
fn rolled(
    leaves: &[InUse],
    overlap: Duration,
    now: Timestamp,
    is_right: impl Fn(&Certificate) -> bool,
    knows: impl Fn(&Bundle) -> bool,
) -> Timestamp {
    let read = leaves.iter().filter_map(|leaf| Some((leaf.certificate.as_ref()?, &leaf.bundle)));
    let since = read.map(|(certificate, bundle)| {
        let has_come = is_right(certificate) && knows(bundle);
        if has_come { after(certificate.made().min(now), overlap / 2) } else { after(now, overlap) }
    });
    since.max().unwrap_or(now)
}

#[cfg(test)]
mod tests;
