//! Inside a crate the arrows point one way: no two sibling modules use each other, directly or through
//! others, at any depth, and none uses another against a declared order.
//!
//! A module counts together with its children. A child that uses an item of its parent's own file is no
//! arrow; a name that the parent only re-exports from another child is an arrow to that child. Code under
//! `cfg(test)` does not count.

mod attributes;
mod cycles;
mod order;
mod paths;
mod resolve;
mod tree;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use self::order::{Entry, Order, TABLE};
use self::paths::Mention;
use self::resolve::{Arrows, resolve};
use self::tree::{Id, Tree};

const HELP: &str = "\
Checks that the modules of every crate of the workspace use each other in one direction only.

usage: cargo run -p xtask -- arrows [--every] [<package>…]

  <package>…  check only these packages
  --every     list every path of a cycle, not one for each direction

It reads every path that begins with `crate`, `super` or `self`, in `use`, in code and in macros, and leaves out
`cfg(test)`. A module counts together with its children. It fails if sibling modules use each other in a circle, at any
depth, or against the order that is declared in xtask/src/arrows/order.rs. A package may be listed there as not checked
yet; that is printed.";

const REMEDY: &str = "remedy: make them one module, or move the shared part into a module below both; re-export it at its old \
                      path only where that makes no arrow back";

/// Checks the packages that are named, or all; a summary, or all that is wrong.
pub(crate) fn check(words: impl Iterator<Item = String>) -> Result<String, Vec<String>> {
    let mut wanted = Vec::new();
    let mut every = false;
    for word in words {
        match word.as_str() {
            "--help" | "-h" => return Ok(HELP.to_owned()),
            "--every" => every = true,
            flag if flag.starts_with('-') => return Err(vec![format!("unknown option {flag}\n\n{HELP}")]),
            _ => wanted.push(word),
        }
    }
    let metadata = workspace().map_err(|error| vec![error])?;
    let known = |name: &str| metadata.packages.iter().any(|package| package.name == name);
    let mut complaints: Vec<String> = wanted
        .iter()
        .filter(|name| !known(name))
        .map(|name| format!("the workspace has no package `{name}`"))
        .chain(TABLE.iter().filter(|entry| !known(entry.package)).map(|entry| {
            format!(
                "xtask/src/arrows/order.rs has an entry for `{}`, and there is no such package",
                entry.package
            )
        }))
        .collect();
    let (mut crates, mut modules) = (0, 0);
    for package in &metadata.packages {
        if !wanted.is_empty() && !wanted.contains(&package.name) {
            continue;
        }
        let entry = TABLE.iter().find(|entry| entry.package == package.name);
        let mut found = Vec::new();
        for target in package.targets.iter().filter(|target| target.is_built()) {
            match Tree::read(&target.src_path, &metadata.workspace_root) {
                Ok(tree) => {
                    let order = entry.and_then(|entry| entry.order.as_ref()).filter(|_| target.is_library());
                    crates += 1;
                    modules += tree.modules.len();
                    found
                        .extend(judge(&tree, order, every).map(|wrong| format!("{}: {wrong}", package.name)));
                }
                Err(error) => complaints.push(error),
            }
        }
        if let Some(Entry { not_yet: Some(why), .. }) = entry {
            let name = &package.name;
            let _ = writeln!(std::io::stdout(), "not yet: {name}: {why}; {} complaints today", found.len());
            if every {
                let _ = found.iter().try_for_each(|wrong| writeln!(std::io::stdout(), "  {wrong}"));
            }
        } else {
            complaints.extend(found);
        }
    }
    if complaints.is_empty() {
        Ok(format!("{modules} modules of {crates} crates: no cycles, no arrows against a declared order"))
    } else {
        Err(complaints)
    }
}

/// Judges one crate.
fn judge<'a>(tree: &'a Tree, order: Option<&'a Order>, every: bool) -> impl Iterator<Item = String> + 'a {
    let resolved = resolve(tree);
    let mut complaints = Vec::new();
    for (level, arrows) in &resolved.levels {
        complaints.extend(circles(tree, *level, arrows, every));
    }
    if let Some(order) = order {
        let modules: Vec<&str> = tree.modules[0].children.keys().map(String::as_str).collect();
        complaints.extend(order.gaps(&modules));
        for ((user, target), mentions) in resolved.levels.get(&0).into_iter().flatten() {
            let (user, target) = (&tree.modules[*user].name, &tree.modules[*target].name);
            if let Some(rule) = order.broken_by(user, target) {
                let arrow = format!("{user} → {target}");
                let list = list(&arrow, mentions, every);
                complaints.push(format!(
                    "`{user}` uses `{target}` against the declared order: {rule}\n{list}  {REMEDY}"
                ));
            }
        }
    }
    complaints.extend(resolved.opaque.iter().map(|mention| {
        let Mention { file, line, path, .. } = mention;
        let path = path.join("::");
        format!("`{path}::*` hides which modules are used\n  {file}:{line}\n  remedy: name what is imported")
    }));
    complaints.into_iter()
}

/// The cycles between the children of one module.
fn circles(tree: &Tree, level: Id, arrows: &Arrows<'_>, every: bool) -> Vec<String> {
    let name = |id: &Id| tree.modules[*id].name.as_str();
    let mut complaints = Vec::new();
    for knot in cycles::knots(arrows.keys().copied()) {
        let mut way: Vec<&str> = knot.cycle.iter().map(name).collect();
        way.push(way[0]);
        let mut complaint =
            format!("modules of `{}` use each other: {}\n", tree.path(level).join("::"), way.join(" → "));
        if knot.nodes.len() > knot.cycle.len() {
            let all: Vec<&str> = knot.nodes.iter().map(name).collect();
            let _ = writeln!(complaint, "  all modules that reach each other: {}", all.join(", "));
        }
        let shown = arrows.iter().filter(|((user, target), _)| {
            let steps = knot.cycle.iter().zip(knot.cycle.iter().cycle().skip(1));
            let of_knot = knot.nodes.contains(user) && knot.nodes.contains(target);
            if every { of_knot } else { steps.into_iter().any(|step| step == (user, target)) }
        });
        for ((user, target), mentions) in shown {
            complaint += &list(&format!("{} → {}", name(user), name(target)), mentions, every);
        }
        complaints.push(complaint + "  " + REMEDY);
    }
    complaints
}

/// The paths of one arrow, a line for each.
fn list(arrow: &str, mentions: &[&Mention], every: bool) -> String {
    let shown = if every { mentions.len() } else { 1 };
    let mut lines = String::new();
    for Mention { file, line, path, glob } in mentions.iter().take(shown).copied() {
        let path = path.join("::") + if *glob { "::*" } else { "" };
        let _ = writeln!(lines, "  {arrow}: {file}:{line}: {path}");
    }
    lines
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
}

impl Target {
    fn is_library(&self) -> bool {
        self.kind.iter().any(|kind| matches!(kind.as_str(), "lib" | "rlib" | "proc-macro"))
    }

    /// Programs and libraries, not tests, examples and benchmarks.
    fn is_built(&self) -> bool {
        self.is_library() || self.kind.iter().any(|kind| kind == "bin")
    }
}

fn workspace() -> Result<Metadata, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo metadata does not run: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

#[cfg(test)]
mod tests;
