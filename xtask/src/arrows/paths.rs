//! Every path in a piece of syntax: in `use` trees, in types and expressions, in the tokens of macros, in
//! attributes.

use std::rc::Rc;

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Arm, Attribute, Field, FieldPat, FieldValue, ImplItem, Item, ItemUse, Local, Macro, Meta};
use syn::{StmtMacro, Token, TraitItem, UseTree, Variant};

use super::attributes::{is_for_tests, of_impl_item, of_item, of_trait_item};

/// A path in the source.
pub(super) struct Mention {
    pub(super) path: Vec<String>,
    /// The path ends with `*`.
    pub(super) glob: bool,
    pub(super) file: Rc<str>,
    pub(super) line: usize,
}

/// The name without `r#`.
pub(super) fn plain(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map(str::to_owned).unwrap_or(name)
}

/// One path of a `use` tree.
pub(super) struct Leaf {
    pub(super) path: Vec<String>,
    /// The name that it brings in; none for `*` and `as _`.
    pub(super) name: Option<String>,
    pub(super) glob: bool,
    line: usize,
}

/// All paths of a `use` tree.
pub(super) fn leaves(tree: &UseTree) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    grow(tree, &mut Vec::new(), &mut leaves);
    leaves
}

fn grow(tree: &UseTree, above: &mut Vec<String>, leaves: &mut Vec<Leaf>) {
    let mut leaf = |ident: &Ident, rename: Option<&Ident>| {
        let mut path = above.clone();
        // `a::{self}` is `a`.
        if *ident != "self" || path.is_empty() {
            path.push(plain(ident));
        }
        let name = rename.map_or_else(|| path.last().cloned(), |rename| Some(plain(rename)));
        let name = name.filter(|name| name != "_");
        leaves.push(Leaf { path, name, glob: false, line: line(ident.span()) });
    };
    match tree {
        UseTree::Path(path) => {
            above.push(plain(&path.ident));
            grow(&path.tree, above, leaves);
            above.pop();
        }
        UseTree::Name(name) => leaf(&name.ident, None),
        UseTree::Rename(name) => leaf(&name.ident, Some(&name.rename)),
        UseTree::Glob(glob) => {
            let line = line(glob.star_token.spans[0]);
            leaves.push(Leaf { path: above.clone(), name: None, glob: true, line });
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                grow(tree, above, leaves);
            }
        }
    }
}

/// All paths that are written in an item, in order.
pub(super) fn mentions(item: &Item, file: &Rc<str>) -> Vec<Mention> {
    let mut finder = Finder { file, found: Vec::new() };
    finder.visit_item(item);
    finder.found
}

fn line(span: Span) -> usize {
    span.start().line
}

/// Returns true if a path that begins with this name is inside the crate.
pub(super) fn is_start(name: &str) -> bool {
    matches!(name, "crate" | "super" | "self")
}

struct Finder<'a> {
    file: &'a Rc<str>,
    found: Vec<Mention>,
}

impl Finder<'_> {
    fn add(&mut self, path: Vec<String>, glob: bool, line: usize) {
        if path.len() > 1 || glob {
            self.found.push(Mention { path, glob, file: self.file.clone(), line });
        }
    }

    fn tree(&mut self, tree: &UseTree, above: &mut Vec<String>) {
        let mut leaves = Vec::new();
        grow(tree, above, &mut leaves);
        for leaf in leaves {
            self.add(leaf.path, leaf.glob, leaf.line);
        }
    }

    /// Finds `crate::…`, `super::…` and `self::…` in tokens that have no syntax yet.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(start) if is_start(&start.to_string()) && colons(&tokens, at) => {
                    let mut path = vec![plain(start)];
                    while colons(&tokens, at) {
                        at += 2;
                        match tokens.get(at) {
                            Some(TokenTree::Ident(segment)) => path.push(plain(segment)),
                            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                                self.group(group.stream(), &mut path);
                            }
                            _ => break,
                        }
                        at += 1;
                    }
                    self.add(path, false, line(start.span()));
                }
                _ => {}
            }
        }
    }

    /// The `{…}` at the end of a `use` in a macro.
    fn group(&mut self, tokens: TokenStream, above: &mut Vec<String>) {
        let trees = syn::parse::Parser::parse2(Punctuated::<UseTree, Token![,]>::parse_terminated, tokens);
        for tree in trees.into_iter().flatten() {
            self.tree(&tree, above);
        }
    }

    /// Finds paths in strings, as in `#[serde(with = "crate::time")]`.
    fn strings(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.strings(group.stream()),
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    let path = text.trim_matches('"');
                    let start = path.split("::").next().unwrap_or_default();
                    if is_start(start)
                        && let Ok(path) = syn::parse_str::<syn::Path>(path)
                    {
                        let path = path.segments.iter().map(|segment| plain(&segment.ident)).collect();
                        self.add(path, false, line(literal.span()));
                    }
                }
                _ => {}
            }
        }
    }
}

/// Returns true if the two tokens from here are `::`.
fn colons(tokens: &[TokenTree], at: usize) -> bool {
    let colon = |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(mark)) if mark.as_char() == ':');
    colon(at) && colon(at + 1)
}

/// Visits what a build without tests has, and leaves the rest.
macro_rules! unless_for_tests {
    ($($visit:ident($kind:ty, $attributes:expr);)*) => {$(
        fn $visit(&mut self, syntax: &'a $kind) {
            let attributes: fn(&$kind) -> &[Attribute] = $attributes;
            if !is_for_tests(attributes(syntax)) {
                visit::$visit(self, syntax);
            }
        }
    )*};
}

impl<'a> Visit<'a> for Finder<'_> {
    unless_for_tests! {
        visit_item(Item, of_item);
        visit_impl_item(ImplItem, of_impl_item);
        visit_trait_item(TraitItem, of_trait_item);
        visit_local(Local, |local| &local.attrs);
        visit_stmt_macro(StmtMacro, |statement| &statement.attrs);
        visit_field(Field, |field| &field.attrs);
        visit_variant(Variant, |variant| &variant.attrs);
        visit_arm(Arm, |arm| &arm.attrs);
        visit_field_value(FieldValue, |field| &field.attrs);
        visit_field_pat(FieldPat, |field| &field.attrs);
        visit_expr_block(syn::ExprBlock, |block| &block.attrs);
    }

    fn visit_item_use(&mut self, import: &'a ItemUse) {
        if import.leading_colon.is_none() {
            self.tree(&import.tree, &mut Vec::new());
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.leading_colon.is_none()
            && let Some(first) = path.segments.first()
        {
            let names = path.segments.iter().map(|segment| plain(&segment.ident)).collect();
            self.add(names, false, line(first.ident.span()));
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        visit::visit_macro(self, call);
        self.tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'a Attribute) {
        visit::visit_attribute(self, attribute);
        if let Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone());
            self.strings(list.tokens.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let item = syn::parse_str(text).expect("an item");
        mentions(&item, &Rc::from("a.rs"))
            .into_iter()
            .filter(|mention| is_start(&mention.path[0]))
            .map(|mention| mention.path.join("::") + if mention.glob { "::*" } else { "" })
            .collect()
    }

    #[test]
    fn every_path_of_a_use_tree_is_found() {
        assert_eq!(
            found("use crate::{a::{self, B}, c::*, d as e, f::G as _};"),
            ["crate::a", "crate::a::B", "crate::c::*", "crate::d", "crate::f::G"]
        );
    }

    #[test]
    fn inline_paths_are_found() {
        assert_eq!(
            found("fn f(a: &super::A) -> Vec<crate::b::B> { self::c::<crate::d::D>(a) }"),
            ["super::A", "crate::b::B", "self::c", "crate::d::D"]
        );
    }

    #[test]
    fn paths_in_the_tokens_of_macros_are_found() {
        assert_eq!(
            found(
                "fn f() { assert!(matches!(x, crate::a::A { .. } | super::B(self::c::C)), \"crate::no\"); }"
            ),
            ["crate::a::A", "super::B", "self::c::C"]
        );
        assert_eq!(
            found("macro_rules! m { () => { use $crate::{a::A, b}; self.x } }"),
            ["crate::a::A", "crate::b"]
        );
    }

    #[test]
    fn paths_in_attributes_are_found() {
        assert_eq!(
            found("struct S { #[serde(with = \"crate::time\")] #[arg(value_parser = super::parse)] at: u8 }"),
            ["crate::time", "super::parse"]
        );
    }

    #[test]
    fn code_of_tests_is_left_out() {
        assert_eq!(
            found(
                "impl A { #[cfg(test)] fn f() { crate::a::a() } fn g() { #[cfg(test)] let x = crate::b::B; \
                 #[cfg(test)] { crate::c::c() } crate::d::d() } }"
            ),
            ["crate::d::d"]
        );
    }
}
