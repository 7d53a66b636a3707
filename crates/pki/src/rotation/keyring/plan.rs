//! The decisions of a [`Keyring`](super::Keyring), without I/O and without certificates.
//!
//! [`plan`] looks at the stored facts and returns the one next thing to do. Repeated until it returns
//! [`Action::Wait`], it brings any state into order, however old it is.
//!
//! ```text
//! authority 1  |====signs=============|--trusted until its last leaf ends--|
//! authority 2            |-announced-settles-|====signs=============…
//! leaves       |===1===|            |=======2a======|
//!                  |=======1b======|
//! ```
//!
//! A certificate whose life has not begun is the work of a clock that was ahead. Such an authority neither
//! signs nor keeps the next one from being made, and such a leaf is replaced at once. The authority stays
//! trusted until the one that replaces it has settled, in case it is the present clock that is wrong.

use std::time::Duration;

use jiff::Timestamp;

use crate::time::{BACKDATE, after, before};

const DAY: Duration = Duration::from_hours(24);

/// Lifetimes, and how early certificates are renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The lifetime of an authority.
    pub authority_lifetime: Duration,
    /// The time before its end at which the next authority is made. Longer than a leaf lives, so that the
    /// change never hurries.
    pub authority_renewal: Duration,
    /// The lifetime of a serving certificate.
    pub leaf_lifetime: Duration,
    /// The time before its end at which the next serving certificate is issued.
    pub leaf_renewal: Duration,
    /// The time for which an authority is in all configurations before it issues its first certificate. API
    /// servers do not acknowledge what they have seen: this is the time that they are given.
    pub settle: Duration,
}

impl Default for Policy {
    /// Authorities of two years, renewed half a year early; certificates of 90 days, renewed 30 days early;
    /// 10 minutes to settle.
    fn default() -> Self {
        Self {
            authority_lifetime: 730 * DAY,
            authority_renewal: 180 * DAY,
            leaf_lifetime: 90 * DAY,
            leaf_renewal: 30 * DAY,
            settle: Duration::from_mins(10),
        }
    }
}

/// The stored facts that matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// All authorities that are trusted, oldest first.
    pub authorities: Vec<Authority>,
    /// The serving certificate, if it can be used at all.
    pub leaf: Option<Leaf>,
}

/// One authority of the keyring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The moment at which it was made. Its life begins [`BACKDATE`] earlier.
    pub made: Timestamp,
    /// The end of its life.
    pub ends: Timestamp,
    /// The key of the authority is there.
    pub signs: bool,
    /// The moment since when it is in all configurations, as far as the leader knows.
    pub announced: Option<Timestamp>,
    /// The end of the last certificate that it issued.
    pub last_leaf: Option<Timestamp>,
}

impl Authority {
    fn has_begun(&self, now: Timestamp) -> bool {
        before(self.made, BACKDATE) <= now
    }

    fn is_usable(&self, now: Timestamp) -> bool {
        self.signs && self.has_begun(now) && now < self.ends
    }

    /// The moment from which it may issue. One that nobody announces (somebody else keeps the configurations)
    /// is taken to be known in the middle of the time that is left for the change.
    fn settled(&self, policy: &Policy) -> Timestamp {
        match self.announced {
            Some(announced) => after(announced, policy.settle),
            None => after(self.made, (policy.authority_renewal / 2).max(policy.settle)),
        }
    }
}

/// A serving certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The authority that issued it; `None` if it is none that is trusted.
    pub issuer: Option<usize>,
    /// The beginning of its life.
    pub begins: Timestamp,
    /// The end of its life.
    pub ends: Timestamp,
    /// The leaf has all the names that it should have.
    pub named: bool,
}

/// The next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing stored can be used: create an authority that issues at once.
    Begin,
    /// Make the next authority, to be trusted and not yet used.
    AddAuthority,
    /// Let an authority issue a serving certificate.
    Issue {
        /// The index of the authority.
        by: usize,
    },
    /// No longer trust an authority.
    Forget {
        /// The index of the authority.
        authority: usize,
    },
    /// No work is due before this time.
    Wait {
        /// The moment at which to plan again.
        until: Timestamp,
    },
}

/// Returns the next thing to do.
pub fn plan(now: Timestamp, stored: &Stored, policy: &Policy) -> Action {
    let Stored { authorities, leaf } = stored;
    let Some(signer) = signer(now, stored, policy) else { return Action::Begin };
    if leaf_is_due(now, leaf.as_ref(), signer, authorities[signer].ends, policy) {
        return Action::Issue { by: signer };
    }
    let begun = authorities.iter().rev().find(|authority| authority.has_begun(now));
    let newest = begun.unwrap_or(&authorities[signer]);
    let renew_at = before(newest.ends, policy.authority_renewal);
    if !newest.signs || renew_at <= now {
        return Action::AddAuthority;
    }
    let issuer = leaf.and_then(|leaf| leaf.issuer);
    let others = authorities.iter().enumerate().filter(|(index, _)| issuer != Some(*index));
    let forgets: Vec<_> = others
        .filter_map(|(index, other)| {
            forget_at(now, index, other, signer, stored, policy).map(|at| (index, at))
        })
        .collect();
    if let Some((authority, _)) = forgets.iter().find(|(_, at)| *at <= now) {
        return Action::Forget { authority: *authority };
    }
    let leaf_at = leaf.map_or(now, |leaf| before(leaf.ends, policy.leaf_renewal));
    // A leaf that its authority cannot better is due again when there is another authority.
    let leaf_at = Some(leaf_at).filter(|at| *at > now);
    let successors = authorities[signer + 1..].iter().filter(|authority| authority.is_usable(now));
    let settles = successors.map(|authority| authority.settled(policy));
    let forgets = forgets.iter().map(|(_, at)| *at);
    Action::Wait { until: settles.chain(forgets).chain(leaf_at).fold(renew_at, Timestamp::min) }
}

/// Returns the moment from which an authority that is not in use is trusted no more; `None` if it is still to
/// be used.
fn forget_at(
    now: Timestamp,
    index: usize,
    authority: &Authority,
    signer: usize,
    stored: &Stored,
    policy: &Policy,
) -> Option<Timestamp> {
    if !authority.has_begun(now) {
        return Some(stored.authorities[signer].settled(policy));
    }
    let is_over = index < signer || authority.ends <= now;
    is_over.then(|| authority.last_leaf.map_or(now, |last| last.min(authority.ends)))
}

/// Returns the authority to issue by: the newest that has settled, else the one in use, else the one that was
/// known the longest.
fn signer(now: Timestamp, stored: &Stored, policy: &Policy) -> Option<usize> {
    let usable = |index: &usize| stored.authorities[*index].is_usable(now);
    let all = 0..stored.authorities.len();
    let in_use = || stored.leaf.and_then(|leaf| leaf.issuer).filter(usable);
    all.clone()
        .rev()
        .filter(usable)
        .find(|index| stored.authorities[*index].settled(policy) <= now)
        .or_else(in_use)
        .or_else(|| all.clone().find(usable))
}

fn leaf_is_due(
    now: Timestamp,
    leaf: Option<&Leaf>,
    signer: usize,
    signer_ends: Timestamp,
    policy: &Policy,
) -> bool {
    let Some(leaf) = leaf else { return true };
    if !leaf.named || now < leaf.begins || leaf.ends <= now || leaf.issuer != Some(signer) {
        return true;
    }
    // A certificate does not outlive its authority: one that would gain nothing is not issued, or it would be
    // for ever.
    before(leaf.ends, policy.leaf_renewal) <= now && leaf_ends(now, signer_ends, policy) > leaf.ends
}

/// The end of a certificate that is issued now.
fn leaf_ends(now: Timestamp, authority_ends: Timestamp, policy: &Policy) -> Timestamp {
    after(now, policy.leaf_lifetime).min(authority_ends)
}

#[cfg(test)]
mod tests;
