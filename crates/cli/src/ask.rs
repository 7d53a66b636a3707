//! `windlass manifests` and `windlass graph`: run the command of an operator's own program.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use crate::args;
use crate::failure::Failure;

/// Runs `cargo run -p <operator> -- <command> …`, with its output.
pub(crate) fn operator(name: &str, args: &args::Ask) -> Result<(), Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut words: Vec<OsString> = vec!["run".into(), "--quiet".into()];
    if let Some(package) = &args.package {
        words.extend(["--package".into(), package.into()]);
    }
    words.extend(["--".into(), name.into()]);
    words.extend(args.arguments.iter().cloned());
    let mut command = Command::new(&cargo);
    // `cargo run` sets variables of our own package. Build scripts would take them for a change and rebuild
    // everything.
    let is_of_our_package = |name: &OsString| {
        name.to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_our_package(name)) {
        command.env_remove(name);
    }
    let status = command.args(&words).stdin(Stdio::inherit()).status().map_err(|error| {
        Failure::Environment(format!("cannot run cargo ({error}): install Rust from https://rustup.rs"))
    })?;
    if status.success() {
        return Ok(());
    }
    let which = args.package.as_deref().unwrap_or("the operator in this directory");
    Err(Failure::Running(format!(
        "`{name}` of {which} failed ({status}): its own message is above; another operator of this workspace is \
         chosen with --package"
    )))
}
