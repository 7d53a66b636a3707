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
    Leaf { issuer: Some(issuer), begins: day(0), ends: day(ends), named: true }
}

#[test]
#[allow(clippy::too_many_lines)] // a table
fn the_next_action_follows_from_what_is_stored() {
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
        (
            "a certificate that is not valid yet",
            day(1),
            vec![authority(0)],
            Some(Leaf { begins: day(2), ..leaf(0, 92) }),
            Action::Issue { by: 0 },
        ),
        (
            "an authority that is not valid yet",
            day(1),
            vec![authority(50)],
            Some(Leaf { begins: day(50), ..leaf(0, 140) }),
            Action::Begin,
        ),
        (
            "an authority that is not valid yet is no reason to go without the next one",
            day(560),
            vec![authority(0), authority(600)],
            Some(leaf(0, 640)),
            Action::AddAuthority,
        ),
        (
            "an authority that is not valid yet is trusted while the one in its place settles",
            day(1),
            vec![authority(50), announced(1, day(1))],
            Some(leaf(1, 91)),
            Action::Wait { until: minutes(1, 10) },
        ),
        (
            "and no longer than that",
            minutes(1, 10),
            vec![authority(50), announced(1, day(1))],
            Some(leaf(1, 91)),
            Action::Forget { authority: 0 },
        ),
    ];
    for (what, now, authorities, leaf, expected) in cases {
        assert_eq!(plan(now, &Stored { authorities, leaf }, &Policy::default()), expected, "{what}");
    }
}

/// Applies the plan's actions to the facts.
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
            let begins = before(now, BACKDATE);
            stored.leaf = Some(Leaf { issuer: Some(by), begins, ends, named: true });
        }
    }
}

proptest! {
    /// Years of life with a leader that announces sooner or later, and sleeps of any length: the plan always
    /// comes to rest, an authority is announced and settled before it is used while another could be, and no
    /// authority is forgotten while a certificate of it lives.
    #[test]
    fn a_keyring_is_safe_through_any_sequence_of_events(steps in prop::collection::vec((0u64..100, any::<bool>(), any::<bool>()), 1..120)) {
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
                        prop_assert!(stored.authorities[by].settled(&policy) <= now, "{old:?}");
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
