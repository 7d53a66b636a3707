//! Resolution of paths into arrows: which of its siblings a module uses.
//!
//! A path is followed from the module that it is written in, through child modules and imports, until it
//! leaves the ancestors of that module. The module that it enters there is the sibling that is used, wherever
//! the item behind it is defined.

use std::collections::BTreeMap;

use super::paths::{Mention, is_start};
use super::tree::{Id, Tree};

/// Imports that lead to imports are followed this far, so that those that lead to themselves come to an end.
const DEPTH: usize = 32;

/// The arrows between the children of one module, with the paths that make them.
pub(super) type Arrows<'a> = BTreeMap<(Id, Id), Vec<&'a Mention>>;

/// All arrows of a crate, by the module whose children they are between.
pub(super) struct Resolved<'a> {
    pub(super) levels: BTreeMap<Id, Arrows<'a>>,
    /// Imports of everything that an ancestor has: nobody can tell which siblings they use.
    pub(super) opaque: Vec<&'a Mention>,
}

/// The target of a path.
enum Target {
    Module(Id),
    /// An item that this module defines or imports from another crate.
    ItemOf(Id),
}

impl Target {
    fn module(&self) -> Id {
        let (Self::Module(id) | Self::ItemOf(id)) = self;
        *id
    }
}

/// Finds all arrows of a crate.
pub(super) fn resolve(tree: &Tree) -> Resolved<'_> {
    let mut resolved = Resolved { levels: BTreeMap::new(), opaque: Vec::new() };
    for (user, module) in tree.modules.iter().enumerate() {
        for mention in &module.mentions {
            let above = |id: Id| tree.upwards(user).any(|above| above == id);
            // A path through an import adds nothing to the arrow of that import, unless it stays above the
            // module that it is in.
            let first = &mention.path[0];
            if !is_start(first)
                && follow(tree, user, user, std::slice::from_ref(first), DEPTH)
                    .is_none_or(|target| !above(target.module()))
            {
                continue;
            }
            let Some(target) = follow(tree, user, user, &mention.path, DEPTH) else { continue };
            if mention.glob && matches!(target, Target::Module(id) if id != user && above(id)) {
                resolved.opaque.push(mention);
            }
            if let Some((level, arrow)) = between(tree, user, target.module()) {
                resolved.levels.entry(level).or_default().entry(arrow).or_default().push(mention);
            }
        }
    }
    resolved
}

/// The siblings between which an arrow from `user` to `target` goes, and their parent. None if one of the two
/// is above the other.
fn between(tree: &Tree, user: Id, target: Id) -> Option<(Id, (Id, Id))> {
    let downwards = |id| {
        let mut path: Vec<Id> = tree.upwards(id).collect();
        path.reverse();
        path
    };
    let (user, target) = (downwards(user), downwards(target));
    let fork = user.iter().zip(&target).position(|(user, target)| user != target)?;
    Some((user[fork - 1], (user[fork], target[fork])))
}

/// Follows a path that is written in the module `at` until it leaves the ancestors of `user`. None if it
/// leads out of the crate.
fn follow(tree: &Tree, user: Id, at: Id, path: &[String], depth: usize) -> Option<Target> {
    let depth = depth.checked_sub(1)?;
    let mut here = at;
    for (position, name) in path.iter().enumerate() {
        match name.as_str() {
            "crate" => here = 0,
            "self" => {}
            "super" => here = tree.modules[here].parent?,
            name => {
                if !tree.upwards(user).any(|above| above == here) {
                    return Some(Target::Module(here));
                }
                match lookup(tree, user, here, name, depth) {
                    Some(Target::Module(id)) => here = id,
                    Some(item) => return Some(item),
                    None if position == 0 => return None,
                    None => return Some(Target::ItemOf(here)),
                }
            }
        }
    }
    Some(Target::Module(here))
}

/// The meaning of a name in a module: a child, an item, an import, or something that a `*` brings in.
fn lookup(tree: &Tree, user: Id, here: Id, name: &str, depth: usize) -> Option<Target> {
    let module = &tree.modules[here];
    if let Some(child) = module.children.get(name) {
        return Some(Target::Module(*child));
    }
    if module.items.contains(name) {
        return Some(Target::ItemOf(here));
    }
    if let Some(paths) = module.imports.get(name) {
        let mut targets = paths.iter().filter_map(|path| follow(tree, user, here, path, depth));
        return targets.next();
    }
    module.globs.iter().find_map(|path| {
        let target = follow(tree, user, here, path, depth)?;
        let id = target.module();
        let has = id != here && has(tree, id, name, depth);
        has.then_some(Target::Module(id))
            .map(|found| if tree.upwards(user).any(|above| above == id) { Target::ItemOf(id) } else { found })
    })
}

/// Returns true if the module has something of that name.
fn has(tree: &Tree, id: Id, name: &str, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    let module = &tree.modules[id];
    module.children.contains_key(name)
        || module.items.contains(name)
        || module.imports.contains_key(name)
        || module.globs.iter().any(|path| {
            follow(tree, id, id, path, depth)
                .is_some_and(|target| target.module() != id && has(tree, target.module(), name, depth))
        })
}
