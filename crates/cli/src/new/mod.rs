//! `windlass new`: a project to begin with, that compiles, passes its own test on a real control plane, and runs.
//!
//! It promises: nothing that exists is overwritten, and a project is there whole or not at all. Files are either the user's, which
//! are written once and never again, or Windlass's, which `--refresh` rewrites; none is both, so an upgrade merges nothing.
//!
//! It does not build what it has written, and it does not reach for the network.

mod args;
mod names;
mod place;
mod project;
mod template;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

pub(crate) use self::args::New;
use self::args::Operator;
use self::place::Place;
use self::project::{File, Owner, Project, Source};
use crate::console::Console;
use crate::failure::Failure;

pub(crate) fn run(command: &New) -> Result<(), Failure> {
    let New::Operator(args) = command;
    let directory = args.path.clone().unwrap_or_else(|| PathBuf::from(&*args.name));
    let files = Project::new(args, source(args)?)?.files();
    let console = Console::new(args.output);
    if args.refresh {
        return refresh(&console, args, &directory, &files);
    }
    let place = Place::at(&directory)?;
    place.fill(&files, format)?;
    let names: Vec<&str> = files.iter().map(|file| file.path).collect();
    let object = json!({"path": directory, "files": names});
    console.result("created", object, &created(&directory, &files));
    Ok(())
}

/// Where the project finds Windlass.
fn source(args: &Operator) -> Result<Source, Failure> {
    let Some(path) = &args.windlass_path else {
        let version = args.windlass_version.as_deref().unwrap_or(env!("CARGO_PKG_VERSION"));
        return Ok(Source::Version(version.to_owned()));
    };
    let missing = |why: &dyn std::fmt::Display| {
        Failure::Environment(format!(
            "--windlass-path {} is not a checkout of Windlass: {why}",
            path.display()
        ))
    };
    let root = path.canonicalize().map_err(|error| missing(&error))?;
    if !root.join("crates/windlass/Cargo.toml").is_file() {
        return Err(missing(&"there is no crates/windlass/Cargo.toml in it"));
    }
    match root.to_str() {
        Some(root) => Ok(Source::Checkout(root.to_owned())),
        None => Err(missing(&"its path is not UTF-8, and a Cargo.toml is")),
    }
}

/// Rewrites Windlass's own files, where they differ.
fn refresh(console: &Console, args: &Operator, directory: &Path, files: &[File]) -> Result<(), Failure> {
    place::holds_project(directory, &args.name)?;
    let owned: Vec<File> = files.iter().filter(|file| file.owner == Owner::Windlass).cloned().collect();
    let written = place::rewrite(directory, &owned, format)?;
    let text = if written.is_empty() {
        format!("{} is up to date", directory.display())
    } else {
        format!(
            "rewritten in {}: {}\nWhat is yours was not touched.",
            directory.display(),
            written.join(", ")
        )
    };
    console.result("refreshed", json!({"path": directory, "files": written}), &text);
    Ok(())
}

/// Formats as `cargo fmt` would: how long a line is depends on the names in it. Without rustfmt the files are good as they are.
fn format(directory: &Path, files: &[File]) {
    let rust = files
        .iter()
        .map(|file| file.path)
        .filter(|path| Path::new(path).extension().is_some_and(|end| end == "rs"));
    let mut command = Command::new("rustfmt");
    command.args(["--edition", "2024", "--config-path", "."]).args(rust).current_dir(directory);
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

fn created(directory: &Path, files: &[File]) -> String {
    let mut text = format!("created {}\n\n", directory.display());
    let width = files.iter().map(|file| file.path.len()).max().unwrap_or(0);
    for file in files {
        let _ = writeln!(text, "  {:<width$}  {}", file.path, file.about);
    }
    let _ = write!(
        text,
        "
Next:

  cd {directory}
  cargo test                # on a real control plane; the first time, it writes deploy/
  cargo run -- --help       # README.md says how to try it on a cluster of your own",
        directory = directory.display()
    );
    text
}
