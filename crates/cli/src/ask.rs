//! `windlass manifests` and `windlass graph`: asked of an operator's own program, which knows.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use crate::args;
use crate::failure::Failure;

/// Runs `cargo run -p <operator> -- <command> …` and passes on what it says.
pub(crate) fn operator(command: &str, args: &args::Ask) -> Result<(), Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut words: Vec<OsString> = vec!["run".into(), "--quiet".into()];
    if let Some(package) = &args.package {
        words.extend(["--package".into(), package.into()]);
    }
    words.extend(["--".into(), command.into()]);
    words.extend(args.arguments.iter().cloned());
    let mut command = Command::new(&cargo);
    // Under `cargo run` there is what cargo says of our own package: build scripts would take it for a change, and build everything anew.
    let of_ours = |name: &OsString| {
        name.to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| of_ours(name)) {
        command.env_remove(name);
    }
    let status = command.args(&words).stdin(Stdio::inherit()).status().map_err(|error| {
        Failure::Environment(format!("cargo cannot be run ({error}): install Rust from https://rustup.rs"))
    })?;
    if status.success() {
        return Ok(());
    }
    let which = args.package.as_deref().unwrap_or("the operator in this directory");
    Err(Failure::Running(format!(
        "{which} did not do it ({status}); name an operator of this workspace with --package"
    )))
}
