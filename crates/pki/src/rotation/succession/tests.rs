use std::collections::BTreeSet;

use super::*;
use crate::key::Algorithm;
use crate::testing::{DAY, believed, day};

fn ca() -> AuthorityRecipe {
    AuthorityRecipe::new("sample-harbor", 365 * DAY)
}

fn recipe() -> LeafRecipe {
    LeafRecipe::new().names(["a-core", "a-core.ns", "a-core.ns.svc"]).server().client()
}

fn tend(present: Option<&Succession>, leaves: &[&Leaf], now: Timestamp) -> (Succession, Timestamp) {
    let leaves: Vec<_> = leaves.iter().copied().map(InUse::of).collect();
    Succession::tend(present, &leaves, &ca(), now).unwrap()
}

fn tend_leaf(authority: &Succession, present: Option<&Leaf>, now: Timestamp) -> (Leaf, Timestamp) {
    let key = || PrivateKey::generate(Algorithm::EcdsaP256);
    authority.tend_leaf::<PkiError>(present, &recipe(), 90 * DAY, key, now).unwrap()
}

fn accepts(verifier: &Leaf, server: &Leaf, now: Timestamp) -> bool {
    let certificate = Certificate::from_pem(server.pair.certificate()).unwrap();
    believed(verifier.bundle.as_str(), server.pair.certificate(), "a-core", now)
        && verifier.bundle.trusts(&certificate, now)
}

#[test]
fn a_certificate_is_kept_until_it_is_due_or_for_other_names() {
    let (authority, due) = tend(None, &[], day(0));
    assert_eq!(due, day(0) + DAY * 365 * 2 / 3);
    let (first, due) = tend_leaf(&authority, None, day(0));
    assert_eq!(due, day(60));
    assert!(accepts(&first, &first, day(1)));
    assert!(tend_leaf(&authority, Some(&first), day(59)).0 == first);
    assert!(tend_leaf(&authority, Some(&first), day(60)).0 != first);
    let other = LeafRecipe::new().names(["b"]);
    let key = || PrivateKey::generate(Algorithm::EcdsaP256);
    let renamed = authority.tend_leaf::<PkiError>(Some(&first), &other, DAY, key, day(1)).unwrap().0;
    assert!(renamed.pair != first.pair);
    let broken = Leaf { pair: Pair::new(first.pair.certificate(), "x"), ..first.clone() };
    assert!(tend_leaf(&authority, Some(&broken), day(1)).0 != first);
}

#[test]
fn every_component_trusts_every_other_through_the_lives_of_three_authorities() {
    let (mut authority, mut due) = tend(None, &[], day(0));
    let (mut shown, mut leaf_due) = tend_leaf(&authority, None, day(0));
    let (mut authorities, mut most, mut steps) = (BTreeSet::new(), 0, 0);
    for at in (0..900).map(day) {
        // Pods that were replaced at the last change, and those that are replaced now.
        let before = shown.clone();
        let changed = at >= due;
        if changed {
            steps += 1;
            (authority, due) = tend(Some(&authority), &[&shown], at);
            assert!(due > at);
        }
        if changed || at >= leaf_due {
            (shown, leaf_due) = tend_leaf(&authority, Some(&shown), at);
            assert!(leaf_due > at);
        }
        for (trusts, shows) in [(&before, &shown), (&shown, &before), (&shown, &shown)] {
            assert!(accepts(trusts, shows, at), "at {at}");
        }
        authorities.insert(authority.current.certificate().to_owned());
        most = most.max(shown.bundle.certificates().len());
    }
    assert_eq!((authorities.len(), steps), (4, 9), "three steps for each change of authority");
    assert_eq!(most, 2, "two are trusted while one follows the other");
    assert_eq!(shown.bundle.certificates().len(), 1);
}

#[test]
fn an_authority_that_has_ended_or_is_damaged_is_replaced_at_once() {
    let (first, _) = tend(None, &[], day(0));
    let (later, _) = tend(Some(&first), &[], day(400));
    assert!(later.current != first.current && later.previous.is_none());
    let broken = Succession { current: Pair::new(first.current.certificate(), "x"), ..first.clone() };
    let (mended, due) = tend(Some(&broken), &[], day(1));
    assert!(mended.current != first.current);
    assert_eq!((mended.bundle().certificates().len(), due), (2, day(2)));
    assert_eq!(mended.previous.unwrap().certificate, first.current.certificate());
}

#[test]
fn a_certificate_of_a_broken_authority_is_served_until_the_new_one_is_known() {
    let (first, _) = tend(None, &[], day(0));
    let (old, _) = tend_leaf(&first, None, day(0));
    let broken = Succession { current: Pair::new(first.current.certificate(), "x"), ..first };
    let (mended, half) = tend(Some(&broken), &[&old], day(1));
    assert_eq!(half, day(1) + DAY / 2);
    let (kept, due) = tend_leaf(&mended, Some(&old), day(1));
    assert_eq!((&kept.pair, due), (&old.pair, day(2)));
    // Somebody who still does not know it half-way is given a whole overlap again.
    let (later, _) = tend(Some(&mended), &[&kept, &old], half);
    assert_eq!(later.previous.unwrap().replaced, half + DAY);
    let (same, due) = tend(Some(&mended), &[&kept], half);
    assert_eq!((&same, due), (&mended, day(2)));
    let (new, _) = tend_leaf(&mended, Some(&kept), day(2));
    for (trusts, shows) in [(&old, &kept), (&kept, &kept), (&kept, &new), (&new, &kept)] {
        assert!(accepts(trusts, shows, day(2)));
    }
}

#[test]
fn an_authority_that_is_not_valid_yet_counts_as_absent() {
    let (ahead, _) = tend(None, &[], day(100));
    let (leaf, _) = tend_leaf(&ahead, None, day(100));
    assert!(!leaf.bundle.trusts(&Certificate::from_pem(leaf.pair.certificate()).unwrap(), day(0)));
    let (back, due) = tend(Some(&ahead), &[&leaf], day(0));
    assert!(back.current != ahead.current && due == day(0) + DAY / 2);
    let (leaf, _) = tend_leaf(&back, Some(&leaf), day(0));
    assert!(accepts(&leaf, &leaf, day(0)));
    let (settled, _) = tend(Some(&back), &[&leaf], day(2));
    assert_eq!(settled.bundle().certificates().len(), 1);
}

#[test]
fn a_next_authority_that_is_not_valid_yet_is_made_anew() {
    let (authority, due) = tend(None, &[], day(0));
    let (ahead, _) = tend(Some(&authority), &[], due + 50 * DAY);
    let (back, _) = tend(Some(&ahead), &[], due + DAY);
    assert!(back.current == authority.current && back.next.is_some() && back.next != ahead.next);
    let (before, again) = tend(Some(&ahead), &[], due - DAY);
    assert_eq!((before.next, again), (None, due));
}

#[test]
fn a_certificate_that_is_not_valid_yet_is_issued_anew_by_the_same_authority() {
    let (authority, _) = tend(None, &[], day(0));
    let (ahead, _) = tend_leaf(&authority, None, day(20));
    let (back, due) = tend_leaf(&authority, Some(&ahead), day(1));
    assert_eq!(due, day(61));
    assert!(accepts(&ahead, &back, day(1)) && !accepts(&back, &ahead, day(1)));
}

#[test]
fn the_end_of_an_overlap_that_was_noted_by_a_clock_that_was_ahead_is_not_waited_for() {
    let (mut authority, _) = tend(None, &[], day(0));
    let old = ca().make(day(0)).unwrap();
    let previous = Previous { certificate: old.certificate().into(), replaced: day(50) };
    authority.previous = Some(previous);
    let (noted, due) = tend(Some(&authority), &[], day(10));
    assert_eq!((noted.previous.as_ref().unwrap().replaced, due), (day(11), day(11)));
    assert_eq!(tend(Some(&noted), &[], day(12)).0.previous, None);
}

/// Two certificates, and a process that stops after the authority was written and comes back after the
/// overlap.
#[test]
fn no_step_is_taken_before_the_last_one_has_come_to_all_certificates() {
    let (authority, due) = tend(None, &[], day(0));
    let (one, _) = tend_leaf(&authority, None, day(200));
    let (two, _) = tend_leaf(&authority, None, day(200));
    // The next authority is announced, and only one of the two gets to know it.
    let (announced, _) = tend(Some(&authority), &[&one, &two], due);
    let (one, _) = tend_leaf(&announced, Some(&one), due);
    let back = due + 3 * DAY;
    let (waiting, until) = tend(Some(&announced), &[&one, &two], back);
    assert_eq!((&waiting, until), (&announced, back + DAY), "the other one does not know it");
    let (two, _) = tend_leaf(&waiting, Some(&two), back + DAY - Duration::from_mins(1));
    let (waiting, until) = tend(Some(&waiting), &[&one, &two], back + DAY);
    assert_eq!(waiting, announced, "its readers have had a minute");
    let (promoted, _) = tend(Some(&waiting), &[&one, &two], until);
    assert_eq!(promoted.current.certificate(), announced.next.unwrap().certificate());
    // Only one of the two is issued by it.
    let (one, _) = tend_leaf(&promoted, Some(&one), until);
    let back = until + 3 * DAY;
    let (waiting, again) = tend(Some(&promoted), &[&one, &two], back);
    assert_eq!((&waiting, again), (&promoted, back + DAY), "the old one issued what is served");
    let (two, _) = tend_leaf(&waiting, Some(&two), back);
    let (done, _) = tend(Some(&waiting), &[&one, &two], back + DAY);
    assert_eq!(done.previous, None);
    assert!(accepts(&one, &two, back) && accepts(&two, &one, back));
}
