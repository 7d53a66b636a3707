//! Attributes of items, and whether they leave an item to the tests.

use syn::punctuated::Punctuated;
use syn::{Attribute, ImplItem, Item, Meta, Token, TraitItem};

/// Returns true if a build without `cfg(test)` leaves out an item with these attributes.
pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args().is_ok_and(|condition| implies_test(&condition))
        }
        meta => meta.path().segments.last().is_some_and(|last| last.ident == "test"),
    })
}

/// Returns true if the condition can hold only together with `test`.
fn implies_test(condition: &Meta) -> bool {
    let parts = |list: &syn::MetaList| {
        list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).unwrap_or_default()
    };
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => parts(list).iter().any(implies_test),
        Meta::List(list) if list.path.is_ident("any") => {
            let parts = parts(list);
            !parts.is_empty() && parts.iter().all(implies_test)
        }
        _ => false,
    }
}

/// The attributes of an item.
pub(super) fn of_item(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The attributes of an item in an `impl` block.
pub(super) fn of_impl_item(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(item) => &item.attrs,
        ImplItem::Fn(item) => &item.attrs,
        ImplItem::Type(item) => &item.attrs,
        ImplItem::Macro(item) => &item.attrs,
        _ => &[],
    }
}

/// The attributes of an item in a trait.
pub(super) fn of_trait_item(item: &TraitItem) -> &[Attribute] {
    match item {
        TraitItem::Const(item) => &item.attrs,
        TraitItem::Fn(item) => &item.attrs,
        TraitItem::Type(item) => &item.attrs,
        TraitItem::Macro(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str) -> Item {
        syn::parse_str(text).expect("an item")
    }

    #[test]
    fn only_what_needs_cfg_test_is_left_to_the_tests() {
        for tests in [
            "#[cfg(test)] mod a;",
            "#[cfg(all(test, unix))] mod a;",
            "#[cfg(any(test, all(test, unix)))] mod a;",
            "#[tokio::test] async fn a() {}",
        ] {
            assert!(is_for_tests(of_item(&item(tests))), "{tests}");
        }
        for built in [
            "mod a;",
            "#[cfg(unix)] mod a;",
            "#[cfg(not(test))] mod a;",
            "#[cfg(any(test, feature = \"a\"))] mod a;",
            "#[cfg_attr(test, derive(Debug))] struct A;",
        ] {
            assert!(!is_for_tests(of_item(&item(built))), "{built}");
        }
    }
}
