//! An authority in one place, and certificates of it in others, each beside a copy of the bundle.
//!
//! When two thirds of its life are over, the next authority is made and trusted beside it. After an overlap
//! it begins to issue, and all certificates are issued anew. After another overlap the old one is trusted no
//! more. Readers are pods that are replaced when the object that they read changes, so an overlap must be
//! longer than twice the time that this takes.
//!
//! ```text
//! authority 1  |====issues==============|--previous--|
//! authority 2                 |--next---|====issues==========…
//!                              overlap     overlap
//! ```
//!
//! The authority and its certificates are written one after the other, and the writer may stop in between for
//! any time. Therefore no step is taken by the clock alone: the certificates [in use](InUse) show how far the
//! previous step has come. A certificate is issued anew when its bundle gains an authority, so that its own
//! date tells since when its readers can know that authority.
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
//! // When it is due, the next authority joins it. The certificates in use are looked at before any
//! // further step.
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
use crate::time::{after, before};

/// The longest time for which two authorities are trusted before the newer one issues.
const LONGEST_OVERLAP: Duration = Duration::from_hours(24);

/// Returns the time between two steps of a rotation: a tenth of the authority's lifetime, and at most 24
/// hours.
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
    /// The certificate in PEM, or those of several authorities.
    pub certificate: String,
    /// The moment since when another authority issues in its place. In the future if the other one had to be
    /// made at once: until then it issues only where there is no certificate that anybody trusts.
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
    /// A certificate and the bundle beside it, in PEM. An unreadable certificate is used by nobody and holds
    /// nothing up.
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
    /// An authority that has ended, is not valid yet or cannot be read is replaced at once. Others that are
    /// known and have not ended stay trusted, also those that are not valid yet: it may be the present clock
    /// that is wrong.
    pub fn tend(
        present: Option<&Self>,
        leaves: &[InUse],
        recipe: &AuthorityRecipe,
        now: Timestamp,
    ) -> Result<(Self, Timestamp), PkiError> {
        let overlap = overlap(recipe.lifetime());
        let usable = present.filter(|present| signing(&present.current, now).is_some());
        let mut known = Bundle::default();
        let mut tended = if let Some(present) = usable {
            present.clone()
        } else {
            let issued = present.map(|present| Self { next: None, ..present.clone() }.bundle());
            known = issued.unwrap_or_default().only(|authority| authority.ends() > now);
            Self { current: recipe.make(now)?, next: None, previous: None }
        };
        tended.next = tended.next.filter(|next| signing(next, now).is_some());
        tended.trust(&known, leaves, after(now, overlap), now);
        let certificate = Certificate::from_pem(tended.current.certificate())?;
        let mut waits = Vec::new();
        if let Some(replaced) = tended.previous.as_ref().map(|previous| previous.replaced) {
            let rolled = rolled(leaves, overlap, now, |leaf| leaf.is_issued_by(&certificate), |_| true);
            let until = after(replaced, overlap).max(rolled);
            if until <= now {
                tended.previous = None;
            }
            // Half of the way is looked at too: certificates that get to know the authority later than that
            // are met by a later moment.
            let half = before(replaced, overlap / 2);
            waits.extend([half].into_iter().filter(|_| !leaves.is_empty()).chain([replaced, until]));
        }
        if let Some(next) = tended.next.take() {
            let only = Bundle::of([next.certificate()]);
            let announced = Certificate::from_pem(next.certificate())?.made();
            let rolled = rolled(leaves, overlap, now, |_| true, |bundle| bundle.holds_all_of(&only));
            let until = after(announced, overlap).max(rolled);
            if until <= now && tended.previous.is_none() {
                let old = std::mem::replace(&mut tended.current, next);
                tended.previous = Some(Previous { certificate: old.into_parts().0, replaced: now });
                waits.push(after(now, overlap));
            } else {
                tended.next = Some(next);
                waits.push(until);
            }
        }
        if tended.next.is_none() && tended.previous.is_none() {
            waits.push(certificate.two_thirds());
            if certificate.two_thirds() <= now {
                tended.next = Some(recipe.make(now)?);
                waits.push(after(now, overlap));
            }
        }
        let due = waits.into_iter().filter(|until| *until > now).min();
        Ok((tended, due.unwrap_or_else(|| after(now, overlap))))
    }

    /// Goes on trusting authorities that are known and not among ours any more, and those that issued
    /// certificates in use. The current authority replaces certificates of theirs from `settled` on, if it is
    /// not known everywhere yet.
    fn trust(&mut self, known: &Bundle, leaves: &[InUse], settled: Timestamp, now: Timestamp) {
        let own = self.bundle().certificates();
        let served: Vec<_> = leaves.iter().filter_map(|leaf| leaf.certificate.as_ref()).collect();
        let is_in_use = |authority: &Certificate| {
            authority.ends() > now && served.iter().any(|leaf| leaf.is_issued_by(authority))
        };
        let in_use = Bundle::of(leaves.iter().map(|leaf| leaf.bundle.as_str())).only(is_in_use);
        let more = Bundle::of([known.as_str(), in_use.as_str()]).without(&own);
        if !more.as_str().is_empty() {
            let previous = self.previous.take().map(|previous| previous.certificate).unwrap_or_default();
            let certificate = previous + more.as_str();
            self.previous = Some(Previous { certificate, replaced: settled });
        }
        let current = Bundle::of([self.current.certificate()]);
        let is_unknown =
            leaves.iter().any(|leaf| leaf.certificate.is_some() && !leaf.bundle.holds_all_of(&current));
        if let Some(previous) = &mut self.previous {
            // A moment that is too far in the future was noted by a clock that was ahead.
            previous.replaced = if is_unknown { settled } else { previous.replaced.min(settled) };
        }
    }

    /// Returns a certificate as it is to be now, and the moment at which to tend it again.
    ///
    /// The present one is kept if it is valid and not due, has the first of the recipe's names, its key can
    /// be read, the current authority issued it, and its bundle lacks no authority. A certificate that lacks
    /// further names (another operator's) gets them when it is issued anew anyway. One of another authority
    /// that is trusted is kept until the current authority [replaces](Previous::replaced) the other: readers
    /// do not know an authority yet that had to be made at once.
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
        let replaced = self.previous.as_ref().map_or(now, |previous| previous.replaced);
        let good_until = |leaf: &Leaf| {
            PrivateKey::from_pem(leaf.pair.key()).ok()?;
            let certificate = Certificate::from_pem(leaf.pair.certificate()).ok()?;
            let first = recipe.alternative_names().first()?;
            let until = if certificate.is_issued_by(&issuer) {
                leaf.bundle.holds_all_of(&bundle).then_some(certificate.two_thirds())
            } else {
                // Also one that is due: nobody could issue another that all readers trust.
                bundle.trusts(&certificate, now).then_some(replaced.min(certificate.ends()))
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

/// Returns the moment from which a step is known to have reached all readers: half an overlap after the last
/// certificate was issued, and as much after now if a certificate or bundle shows that the step has not come
/// to it.
///
/// Half, because certificates are written a little after their authority: with a whole overlap, every step
/// would find them a little too young, and each further write of an authority replaces all pods.
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
