//! The check on the crates in `xtask/fixtures/arrows`.

use super::*;

fn complaints_with(fixture: &str, order: Option<&Order>, every: bool) -> Vec<String> {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/arrows").join(fixture);
    let tree = Tree::read(&base.join("lib.rs"), &base).expect("a fixture that can be read");
    judge(&tree, order, every).collect()
}

fn complaints(fixture: &str) -> Vec<String> {
    complaints_with(fixture, None, false)
}

/// The error without its remedy, which is the same everywhere.
fn one_complaint(fixture: &str) -> String {
    let complaints = complaints(fixture);
    assert_eq!(complaints.len(), 1, "{complaints:#?}");
    let complaint = complaints[0].strip_suffix(&format!("  {REMEDY}"));
    complaint.expect("a complaint ends with its remedy").to_owned()
}

#[test]
fn arrows_in_one_direction_pass() {
    assert_eq!(complaints("one_way"), Vec::<String>::new());
}

#[test]
fn a_cycle_is_shown_with_one_path_in_each_direction() {
    assert_eq!(
        one_complaint("cycle"),
        "modules of `crate` use each other: client → store → client\n  \
         client → store: client.rs:4: crate::store::Other\n  \
         store → client: store.rs:5: crate::client::Client\n"
    );
}

#[test]
fn every_path_of_a_cycle_is_shown_on_request() {
    let complaints = complaints_with("cycle", None, true);
    assert!(complaints[0].contains("client → store: client.rs:4: crate::store::Store\n"), "{complaints:?}");
    assert!(complaints[0].contains("store → client: store.rs:6: super::client::Client\n"), "{complaints:?}");
}

#[test]
fn a_cycle_of_three_is_found_at_any_depth() {
    assert_eq!(
        one_complaint("deep_cycle"),
        "modules of `crate::outer::inner` use each other: first → second → third → first\n  \
         first → second: outer/mod.rs:3: super::second::Second\n  \
         second → third: outer/mod.rs:7: super::super::inner::third::Third\n  \
         third → first: outer/inner/third.rs:1: self::super::first\n"
    );
}

#[test]
fn a_module_counts_together_with_its_children() {
    assert_eq!(
        one_complaint("through_children"),
        "modules of `crate` use each other: left → right → left\n  \
         left → right: left/child.rs:1: crate::right::Right\n  \
         right → left: right.rs:2: crate::left::child::Child\n"
    );
}

#[test]
fn a_name_that_the_parent_re_exports_is_an_arrow_to_the_child_it_is_from() {
    assert_eq!(
        one_complaint("re_export"),
        "modules of `crate` use each other: low → high → low\n  \
         low → high: low.rs:3: crate::High\n  \
         high → low: high.rs:1: super::Renamed\n"
    );
}

#[test]
fn paths_in_macros_and_attributes_are_arrows() {
    assert_eq!(
        one_complaint("in_macros"),
        "modules of `crate` use each other: shape → text → shape\n  \
         shape → text: shape.rs:3: crate::text\n  \
         text → shape: text.rs:2: crate::shape::Shape\n"
    );
}

#[test]
fn a_glob_of_an_ancestor_is_refused() {
    assert_eq!(
        complaints("hidden_by_a_glob"),
        ["`super::*` hides which modules are used\n  child.rs:1\n  remedy: name what is imported"]
    );
}

#[test]
fn an_arrow_against_the_declared_order_is_refused() {
    let order = Order { rooms: &["top", "middle", "bottom"], anybody: &["error"] };
    let complaints = complaints_with("against_the_order", Some(&order), false);
    assert_eq!(
        complaints,
        [format!(
            "`middle` uses `top` against the declared order: the order is top → middle → bottom: each uses only what is to \
             its right\n  middle → top: middle.rs:1: crate::top::Top\n  {REMEDY}"
        )]
    );
}

#[test]
fn a_declared_order_that_the_crate_keeps_passes() {
    let order = Order { rooms: &["middle", "top", "bottom"], anybody: &["error"] };
    assert_eq!(complaints_with("against_the_order", Some(&order), false), Vec::<String>::new());
}

#[test]
fn a_room_that_anybody_uses_may_use_no_room() {
    let order = Order { rooms: &["bottom", "error"], anybody: &["middle", "top"] };
    let complaints = complaints_with("against_the_order", Some(&order), false);
    assert!(
        complaints[0].contains("every room may use `middle`, so `middle` uses no room"),
        "{complaints:?}"
    );
}

#[test]
fn an_order_and_the_modules_name_each_other() {
    let order = Order { rooms: &["middle", "top", "attic"], anybody: &["error"] };
    let complaints = complaints_with("against_the_order", Some(&order), false);
    assert_eq!(
        complaints,
        [
            "module `bottom` has no place in the declared order middle → top → attic: add it to TABLE",
            "TABLE declares `attic`, and there is no such module: remove it there",
        ]
    );
}
