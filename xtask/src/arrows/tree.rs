//! The modules of one crate as they stand in its files: names, items, imports, and every path that is written
//! in them.
//!
//! Items under `cfg(test)` are left out, and with them the files that only tests compile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use syn::{Attribute, Expr, ExprLit, Item, ItemMod, Lit, Meta};

use super::attributes::{is_for_tests, of_item};
use super::paths::{self, Leaf, Mention};

/// The index of a module in its [`Tree`]. The root is 0.
pub(super) type Id = usize;

/// The modules of one crate.
pub(super) struct Tree {
    pub(super) modules: Vec<Module>,
}

/// A module of the crate.
#[derive(Default)]
pub(super) struct Module {
    /// The name of the module; `crate` for the root.
    pub(super) name: String,
    pub(super) parent: Option<Id>,
    pub(super) children: BTreeMap<String, Id>,
    /// The names of items that are defined here.
    pub(super) items: BTreeSet<String>,
    /// The names that `use` brings in, with the paths behind them.
    pub(super) imports: BTreeMap<String, Vec<Vec<String>>>,
    /// The modules that are imported with `*`.
    pub(super) globs: Vec<Vec<String>>,
    /// The paths that are written in this module.
    pub(super) mentions: Vec<Mention>,
}

impl Tree {
    /// Reads the crate whose root is this file. Files are named relative to `base`.
    pub(super) fn read(root: &Path, base: &Path) -> Result<Self, String> {
        let mut tree = Self { modules: vec![Module { name: "crate".to_owned(), ..Module::default() }] };
        let directory = root.parent().unwrap_or(base).to_owned();
        tree.file(0, root, &directory, base)?;
        Ok(tree)
    }

    /// Adds the content of a file to a module. The files of child modules are in `directory`.
    fn file(&mut self, id: Id, file: &Path, directory: &Path, base: &Path) -> Result<(), String> {
        let name: Rc<str> = file.strip_prefix(base).unwrap_or(file).display().to_string().into();
        let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
        let syntax = syn::parse_file(&text)
            .map_err(|error| format!("{name}:{}: {error}", error.span().start().line))?;
        if is_for_tests(&syntax.attrs) {
            return Ok(());
        }
        let location = SourceLocation { file: name, path: file, directory, base };
        self.items(id, &syntax.items, &location)
    }

    fn items(&mut self, id: Id, items: &[Item], location: &SourceLocation<'_>) -> Result<(), String> {
        for item in items.iter().filter(|item| !is_for_tests(of_item(item))) {
            if let Item::Mod(module) = item {
                self.module(id, module, location)?;
                continue;
            }
            if let Item::Use(import) = item
                && import.leading_colon.is_none()
            {
                for leaf in paths::leaves(&import.tree) {
                    self.import(id, leaf);
                }
            }
            if let Some(name) = defined(item) {
                if let Item::Macro(rules) = item
                    && rules.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"))
                {
                    let path = self.path(id).into_iter().chain([name.clone()]).collect();
                    self.modules[0].imports.entry(name.clone()).or_default().push(path);
                }
                self.modules[id].items.insert(name);
            }
            self.modules[id].mentions.extend(paths::mentions(item, &location.file));
        }
        Ok(())
    }

    fn import(&mut self, id: Id, leaf: Leaf) {
        let module = &mut self.modules[id];
        if leaf.glob {
            module.globs.push(leaf.path);
        } else if let Some(name) = leaf.name {
            module.imports.entry(name).or_default().push(leaf.path);
        }
    }

    fn module(&mut self, parent: Id, module: &ItemMod, location: &SourceLocation<'_>) -> Result<(), String> {
        let name = paths::plain(&module.ident);
        let id = self.modules.len();
        self.modules.push(Module { name: name.clone(), parent: Some(parent), ..Module::default() });
        self.modules[parent].children.insert(name.clone(), id);
        let inside = location.directory.join(&name);
        if let Some((_, items)) = &module.content {
            let location = SourceLocation { file: location.file.clone(), directory: &inside, ..*location };
            return self.items(id, items, &location);
        }
        let (file, directory) = if let Some(path) = path_attribute(&module.attrs) {
            let file = location.path.parent().unwrap_or(location.base).join(path);
            let directory = file.parent().unwrap_or(location.base).to_owned();
            (file, directory)
        } else {
            let flat = location.directory.join(format!("{name}.rs"));
            if flat.exists() { (flat, inside) } else { (inside.join("mod.rs"), inside) }
        };
        if !file.exists() {
            let line = module.ident.span().start().line;
            return Err(format!("{}:{line}: there is no file of module `{name}`", location.file));
        }
        self.file(id, &file, &directory, location.base)
    }

    /// The module's path from the root: `["crate", "cache", "store"]`.
    pub(super) fn path(&self, id: Id) -> Vec<String> {
        let mut path: Vec<_> = self.upwards(id).map(|id| self.modules[id].name.clone()).collect();
        path.reverse();
        path
    }

    /// The module, its parent, and so on up to the root.
    pub(super) fn upwards(&self, id: Id) -> impl Iterator<Item = Id> {
        std::iter::successors(Some(id), |id| self.modules[*id].parent)
    }
}

/// The location of an item in the file system.
struct SourceLocation<'a> {
    /// The file's name in messages.
    file: Rc<str>,
    path: &'a Path,
    directory: &'a Path,
    base: &'a Path,
}

/// The name that an item defines.
fn defined(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(paths::plain(ident))
}

/// The file named by `#[path = "…"]`.
fn path_attribute(attributes: &[Attribute]) -> Option<PathBuf> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(PathBuf::from(text.value())),
            _ => None,
        },
        _ => None,
    })
}
