//! What is to be done about the certificates, and when: decisions without I/O.
//!
//! [`plan`] looks at what is stored and says the one next thing to do. Repeated until it says [`Action::Wait`], it brings
//! any state, however old, into order.
//!
//! ```text
//! authority 1  |====signs=============|--trusted until its last leaf ends--|
//! authority 2            |-announced-settles-|====signs=============…
//! leaves       |===1===|            |=======2a======|
//!                  |=======1b======|
//! ```

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

const DAY: Duration = Duration::from_hours(24);

/// How long things live, and how early they are renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How long an authority lives.
    pub authority_lifetime: Duration,
    /// How long before its end the next one is made. Longer than a leaf lives, so that the change never hurries.
    pub authority_renewal: Duration,
    /// How long a serving certificate lives.
    pub leaf_lifetime: Duration,
    /// How long before its end the next one is issued.
    pub leaf_renewal: Duration,
    /// How long an authority is in all configurations before it issues its first certificate. API servers do not
    /// acknowledge what they have seen: this is the time that they are given.
    pub settle: Duration,
}

impl Default for Policy {
    /// Authorities of two years, renewed half a year early; certificates of 90 days, renewed 30 days early; 10 minutes
    /// to settle.
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

/// What is stored: the facts that matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// All authorities that are trusted, oldest first.
    pub authorities: Vec<Authority>,
    /// The serving certificate, if it can be used at all.
    pub leaf: Option<Leaf>,
}

/// An authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority {
    /// When it was made.
    pub made: Timestamp,
    /// When it ends.
    pub ends: Timestamp,
    /// Whether its key is there.
    pub signs: bool,
    /// Since when it is in all configurations, as far as the leader knows.
    pub announced: Option<Timestamp>,
    /// When the last certificate that it issued ends.
    pub last_leaf: Option<Timestamp>,
}

/// A serving certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Which authority issued it; `None` if none that is trusted.
    pub issuer: Option<usize>,
    /// When it ends.
    pub ends: Timestamp,
    /// Whether it has all the names that it should have.
    pub named: bool,
}

/// The next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing that is stored can be used: make an authority, and let it issue at once.
    Begin,
    /// Make the next authority, to be trusted and not yet used.
    AddAuthority,
    /// Let this authority issue a serving certificate.
    Issue {
        /// Which.
        by: usize,
    },
    /// No longer trust this authority.
    Forget {
        /// Which.
        authority: usize,
    },
    /// All is well until then.
    Wait {
        /// When to look again.
        until: Timestamp,
    },
}

/// The next thing to do.
pub fn plan(now: Timestamp, stored: &Stored, policy: &Policy) -> Action {
    let Stored { authorities, leaf } = stored;
    let Some(signer) = signer(now, stored, policy) else { return Action::Begin };
    if leaf_is_due(now, leaf.as_ref(), signer, authorities[signer].ends, policy) {
        return Action::Issue { by: signer };
    }
    let newest = authorities.len() - 1;
    let renew_at = before(authorities[newest].ends, policy.authority_renewal);
    if !authorities[newest].signs || renew_at <= now {
        return Action::AddAuthority;
    }
    let retired = |index: &usize| leaf.is_none_or(|leaf| leaf.issuer != Some(*index));
    let retired: Vec<_> = (0..signer).filter(retired).collect();
    let leaves =
        |index: usize| authorities[index].last_leaf.map_or(now, |last| last.min(authorities[index].ends));
    if let Some(&authority) = retired.iter().find(|index| leaves(**index) <= now) {
        return Action::Forget { authority };
    }
    let leaf_at = leaf.map_or(now, |leaf| before(leaf.ends, policy.leaf_renewal));
    // A leaf that its authority cannot better is due again when there is another authority.
    let leaf_at = Some(leaf_at).filter(|at| *at > now);
    let settles = authorities[signer + 1..].iter().map(|authority| settled(authority, policy));
    let until = settles.chain(retired.into_iter().map(leaves)).chain(leaf_at).fold(renew_at, Timestamp::min);
    Action::Wait { until }
}

/// The authority to issue by: the newest that has settled, else the one in use, else the one that was known the longest.
fn signer(now: Timestamp, stored: &Stored, policy: &Policy) -> Option<usize> {
    let usable = |index: &usize| stored.authorities[*index].signs && now < stored.authorities[*index].ends;
    let all = 0..stored.authorities.len();
    let in_use = || stored.leaf.and_then(|leaf| leaf.issuer).filter(usable);
    all.clone()
        .rev()
        .filter(usable)
        .find(|index| settled(&stored.authorities[*index], policy) <= now)
        .or_else(in_use)
        .or_else(|| all.clone().find(usable))
}

/// When an authority may issue. One that nobody announces (the configurations are somebody else's affair) is taken to be known
/// in the middle of the time that is left for the change.
fn settled(authority: &Authority, policy: &Policy) -> Timestamp {
    match authority.announced {
        Some(announced) => after(announced, policy.settle),
        None => after(authority.made, (policy.authority_renewal / 2).max(policy.settle)),
    }
}

fn leaf_is_due(
    now: Timestamp,
    leaf: Option<&Leaf>,
    signer: usize,
    signer_ends: Timestamp,
    policy: &Policy,
) -> bool {
    let Some(leaf) = leaf else { return true };
    if !leaf.named || leaf.ends <= now || leaf.issuer != Some(signer) {
        return true;
    }
    // A certificate does not outlive its authority: one that would gain nothing is not issued, or it would be for ever.
    before(leaf.ends, policy.leaf_renewal) <= now && leaf_ends(now, signer_ends, policy) > leaf.ends
}

/// When a certificate issued now would end.
pub(super) fn leaf_ends(now: Timestamp, authority_ends: Timestamp, policy: &Policy) -> Timestamp {
    after(now, policy.leaf_lifetime).min(authority_ends)
}

pub(super) fn after(time: Timestamp, duration: Duration) -> Timestamp {
    SignedDuration::try_from(duration)
        .ok()
        .and_then(|duration| time.checked_add(duration).ok())
        .unwrap_or(Timestamp::MAX)
}

pub(super) fn before(time: Timestamp, duration: Duration) -> Timestamp {
    SignedDuration::try_from(duration)
        .ok()
        .and_then(|duration| time.checked_sub(duration).ok())
        .unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Days after the beginning.
    fn day(days: i64) -> Timestamp {
        Timestamp::from_second(days * 86_400).unwrap()
    }

    fn minutes(days: i64, minutes: i64) -> Timestamp {
        Timestamp::from_second(days * 86_400 + minutes * 60).unwrap()
    }

    fn authority(made: i64) -> Authority {
        Authority {
            made: day(made),
            ends: day(made + 730),
            signs: true,
            announced: Some(day(made)),
            last_leaf: Some(day(made + 90)),
        }
    }

    fn leaf(issuer: usize, ends: i64) -> Leaf {
        Leaf { issuer: Some(issuer), ends: day(ends), named: true }
    }

    #[test]
    fn the_next_thing_to_do() {
        let unannounced = |made| Authority { announced: None, last_leaf: None, ..authority(made) };
        let announced = |made, at| Authority { announced: Some(at), ..unannounced(made) };
        let cases = [
            ("nothing is stored", day(0), vec![], None, Action::Begin),
            ("all authorities have ended", day(731), vec![authority(0)], Some(leaf(0, 740)), Action::Begin),
            (
                "no authority can sign",
                day(1),
                vec![Authority { signs: false, ..authority(0) }],
                Some(leaf(0, 90)),
                Action::Begin,
            ),
            ("no certificate", day(0), vec![authority(0)], None, Action::Issue { by: 0 }),
            ("just begun", day(0), vec![unannounced(0)], Some(leaf(0, 90)), Action::Wait { until: day(60) }),
            ("not due", day(59), vec![authority(0)], Some(leaf(0, 90)), Action::Wait { until: day(60) }),
            ("due", day(60), vec![authority(0)], Some(leaf(0, 90)), Action::Issue { by: 0 }),
            ("expired", day(91), vec![authority(0)], Some(leaf(0, 90)), Action::Issue { by: 0 }),
            (
                "a name is missing",
                day(1),
                vec![authority(0)],
                Some(Leaf { named: false, ..leaf(0, 90) }),
                Action::Issue { by: 0 },
            ),
            (
                "of an authority that nobody trusts",
                day(1),
                vec![authority(0)],
                Some(Leaf { issuer: None, ..leaf(0, 90) }),
                Action::Issue { by: 0 },
            ),
            ("the authority is due", day(550), vec![authority(0)], Some(leaf(0, 620)), Action::AddAuthority),
            (
                "the next authority is not announced: the old one is used",
                day(555),
                vec![authority(0), unannounced(550)],
                Some(leaf(0, 580)),
                Action::Issue { by: 0 },
            ),
            (
                "not announced: looked at again when it may be used all the same",
                day(560),
                vec![authority(0), unannounced(550)],
                Some(leaf(0, 690)),
                Action::Wait { until: day(640) },
            ),
            (
                "never announced: used in the middle of the time left",
                day(640),
                vec![authority(0), unannounced(550)],
                Some(leaf(0, 690)),
                Action::Issue { by: 1 },
            ),
            (
                "announced, not settled",
                minutes(551, 9),
                vec![authority(0), announced(550, day(551))],
                Some(leaf(0, 620)),
                Action::Wait { until: minutes(551, 10) },
            ),
            (
                "settled: its first certificate",
                minutes(551, 10),
                vec![authority(0), announced(550, day(551))],
                Some(leaf(0, 620)),
                Action::Issue { by: 1 },
            ),
            (
                "the old authority is trusted while a certificate of it lives",
                day(560),
                vec![Authority { last_leaf: Some(day(601)), ..authority(0) }, authority(550)],
                Some(leaf(1, 640)),
                Action::Wait { until: day(601) },
            ),
            (
                "and no longer",
                day(601),
                vec![Authority { last_leaf: Some(day(601)), ..authority(0) }, authority(550)],
                Some(leaf(1, 640)),
                Action::Forget { authority: 0 },
            ),
            (
                "slept through everything but the next authority's life",
                day(1000),
                vec![authority(0), unannounced(550)],
                Some(leaf(0, 620)),
                Action::Issue { by: 1 },
            ),
            (
                "a certificate that ends with its authority is not issued for ever",
                day(720),
                vec![authority(0), announced(720, day(720))],
                Some(leaf(0, 730)),
                Action::Wait { until: minutes(720, 10) },
            ),
        ];
        for (what, now, authorities, leaf, expected) in cases {
            assert_eq!(plan(now, &Stored { authorities, leaf }, &Policy::default()), expected, "{what}");
        }
    }

    /// What the plan's actions do to the facts.
    fn act(now: Timestamp, stored: &mut Stored, policy: &Policy, action: Action) {
        let new = Authority {
            made: now,
            ends: after(now, policy.authority_lifetime),
            signs: true,
            announced: None,
            last_leaf: None,
        };
        match action {
            Action::Wait { .. } => {}
            Action::AddAuthority => stored.authorities.push(new),
            Action::Forget { authority } => {
                stored.authorities.remove(authority);
                if let Some(issuer) = stored.leaf.as_mut().and_then(|leaf| leaf.issuer.as_mut()) {
                    assert_ne!(*issuer, authority, "an authority in use was forgotten");
                    *issuer -= usize::from(*issuer > authority);
                }
            }
            Action::Begin => {
                stored.authorities.push(new);
                let by = stored.authorities.len() - 1;
                act(now, stored, policy, Action::Issue { by });
            }
            Action::Issue { by } => {
                let ends = leaf_ends(now, stored.authorities[by].ends, policy);
                stored.authorities[by].last_leaf = Some(ends);
                stored.leaf = Some(Leaf { issuer: Some(by), ends, named: true });
            }
        }
    }

    proptest! {
        /// Years of life with a leader that announces sooner or later, and sleeps of any length: the plan always comes to
        /// rest, an authority is announced and settled before it is used while another could be, and no authority is
        /// forgotten while a certificate of it lives.
        #[test]
        fn any_life_is_a_safe_one(steps in prop::collection::vec((0u64..100, any::<bool>(), any::<bool>()), 1..120)) {
            let policy = Policy::default();
            let mut now = day(0);
            let mut stored = Stored::default();
            let mut issued: Vec<(Timestamp, Timestamp)> = Vec::new(); // authority's birth, leaf's end
            for (days, to_the_minute, leader) in steps {
                for round in 0.. {
                    prop_assert!(round < 20, "no rest: {stored:?} at {now}");
                    let action = plan(now, &stored, &policy);
                    if let Action::Issue { by } = action {
                        let old = stored.leaf.and_then(|leaf| leaf.issuer).map(|index| stored.authorities[index]);
                        if let Some(old) = old.filter(|old| old.made != stored.authorities[by].made && now < old.ends) {
                            prop_assert!(settled(&stored.authorities[by], &policy) <= now, "{old:?}");
                        }
                    }
                    act(now, &mut stored, &policy, action);
                    if let Action::Issue { .. } | Action::Begin = action {
                        let leaf = stored.leaf.unwrap();
                        issued.push((stored.authorities[leaf.issuer.unwrap()].made, leaf.ends));
                    }
                    if let Action::Wait { until } = action {
                        prop_assert!(until > now, "waits for the past: {stored:?} at {now}");
                        break;
                    }
                }
                let leaf = stored.leaf.unwrap();
                prop_assert!(leaf.ends > now && leaf.issuer.is_some());
                for (made, ends) in &issued {
                    let trusted = stored.authorities.iter().any(|authority| authority.made == *made);
                    prop_assert!(trusted || *ends <= now, "a living certificate is no longer trusted");
                }
                prop_assert!(stored.authorities.len() <= 3, "{stored:?}");
                if leader {
                    stored.authorities.iter_mut().for_each(|authority| { authority.announced.get_or_insert(now); });
                }
                now = if to_the_minute { after(now, Duration::from_mins(days)) } else { after(now, DAY * u32::try_from(days).unwrap()) };
            }
        }
    }
}
