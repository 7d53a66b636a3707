//! `windlass new`: creates a project that compiles, runs, and passes its own tests on a real control plane.
//!
//! It overwrites no existing file, and a project is complete or absent. A file belongs either to the user,
//! and is written once, or to Windlass, and is rewritten by `--refresh`; so an upgrade has nothing to merge.
//!
//! It does not build the project, and it does not use the network.

mod args;
mod directory;
mod names;
mod project;
mod template;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

pub(crate) use self::args::New;
use self::args::Operator;
use self::directory::ProjectDirectory;
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
    ProjectDirectory::at(&directory)?.fill(&files, format)?;
    let names: Vec<&str> = files.iter().map(|file| file.path).collect();
    let object = json!({"path": directory, "files": names});
    console.result("created", object, &created(&directory, &files));
    Ok(())
}

/// Returns the source of Windlass that the command line names, or else the checkout of this program.
fn source(args: &Operator) -> Result<Source, Failure> {
    if let Some(version) = &args.windlass_version {
        return Ok(Source::Version(version.to_string()));
    }
    if let Some(url) = &args.windlass_git {
        return Ok(Source::Git(url.to_string()));
    }
    match &args.windlass_path {
        Some(path) => checkout(path).map_err(|why| {
            Failure::Environment(format!(
                "--windlass-path {} is not a checkout of Windlass: {why}",
                path.display()
            ))
        }),
        None => checkout_of_this_program(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))),
    }
}

/// Returns the checkout that this program was built from. A project needs one: there is no release in a
/// registry yet.
fn checkout_of_this_program(root: &Path) -> Result<Source, Failure> {
    checkout(root).map_err(|why| {
        Failure::Environment(format!(
            "a new project needs the sources of Windlass, and those that this program was built from are gone ({}: \
             {why}): name a checkout with --windlass-path, or a Git repository with --windlass-git {}",
            root.display(),
            env!("CARGO_PKG_REPOSITORY"),
        ))
    })
}

/// Returns the checkout of Windlass in a directory, or the reason why it is none.
fn checkout(root: &Path) -> Result<Source, String> {
    let root = root.canonicalize().map_err(|error| error.to_string())?;
    if !root.join("crates/windlass/Cargo.toml").is_file() {
        return Err("it has no crates/windlass/Cargo.toml".to_owned());
    }
    match root.to_str() {
        Some(root) => Ok(Source::Checkout(root.to_owned())),
        None => Err("its path is not UTF-8, and a Cargo.toml is".to_owned()),
    }
}

/// Rewrites the files that belong to Windlass, if they differ.
fn refresh(console: &Console, args: &Operator, directory: &Path, files: &[File]) -> Result<(), Failure> {
    directory::contains_project(directory, &args.name)?;
    let owned: Vec<File> = files.iter().filter(|file| file.owner == Owner::Windlass).cloned().collect();
    let written = directory::rewrite(directory, &owned, format)?;
    let text = if written.is_empty() {
        format!("{} is up to date", directory.display())
    } else {
        format!(
            "rewritten in {}: {}\nYour own files were not changed.",
            directory.display(),
            written.join(", ")
        )
    };
    console.result("refreshed", json!({"path": directory, "files": written}), &text);
    Ok(())
}

/// Formats the files like `cargo fmt`, since the length of a line depends on the names in it. Without rustfmt
/// the files are valid too.
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
  cargo test              # on a real control plane; the first run also writes deploy/
  cargo run -- --help     # README.md says how to run it on a cluster",
        directory = directory.display()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_n14_a_program_whose_checkout_is_gone_says_how_to_name_another() {
        let gone = tempfile::tempdir().unwrap();
        let failure = checkout_of_this_program(gone.path()).unwrap_err();
        for part in ["--windlass-path", "--windlass-git https://", gone.path().to_str().unwrap()] {
            assert!(failure.text().contains(part), "{}", failure.text());
        }
    }
}
