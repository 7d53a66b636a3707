//! Builds a program of this workspace as one file that needs nothing: no C library, no loader. An image `FROM
//! scratch` will do for it.
//!
//! The C library is linked in by a flag of the target's own toolchain, so that no other has to be installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Builds the program of a package, checks that it is static, and says where it is.
pub(crate) fn build(package: Option<String>) -> Result<String, Vec<String>> {
    let package = package.ok_or("usage: cargo run -p xtask -- static <package>").map_err(one)?;
    let program = compile(&package).map_err(one)?;
    let file = std::fs::read(&program).map_err(|error| one(format!("{}: {error}", program.display())))?;
    match interpreter(&file) {
        Some(false) => Ok(describe(&program, file.len())),
        Some(true) => Err(one(format!("{} wants a loader: it is not static", program.display()))),
        None => Err(one(format!("{} is no 64-bit ELF file, so nothing is known of it", program.display()))),
    }
}

fn one(complaint: impl Into<String>) -> Vec<String> {
    vec![complaint.into()]
}

#[allow(clippy::cast_precision_loss)] // of megabytes
fn describe(program: &Path, bytes: usize) -> String {
    format!("{} is static, {:.1} MB", program.display(), bytes as f64 / 1e6)
}

/// The directory in which cargo has put the program.
fn compile(package: &str) -> Result<PathBuf, String> {
    let host = host()?;
    // Addresses that are put right when it starts are all read then: packed, those of the Harbor operator
    // take 8 KB instead of half a megabyte.
    let flags = "-C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs";
    let flags = [std::env::var("RUSTFLAGS").unwrap_or_default(), flags.to_owned()];
    // With a target, also where it is the host: the flag is not for procedural macros, which are loaded.
    let output = Command::new("cargo")
        .args(["build", "--release", "--locked", "--package", package, "--target", &host])
        .arg("--message-format=json-render-diagnostics")
        .env("RUSTFLAGS", flags.join(" ").trim())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("{package} could not be built"));
    }
    let output = String::from_utf8_lossy(&output.stdout);
    let programs = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let path = programs.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next_back();
    path.ok_or_else(|| format!("{package} has no program"))
}

fn host() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output().map_err(|error| format!("rustc: {error}"))?;
    let output = String::from_utf8_lossy(&output.stdout);
    let host = output.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc -vV names no host".to_owned())
}

/// Returns true if a 64-bit ELF file names a loader, as a program does that needs shared libraries.
fn interpreter(file: &[u8]) -> Option<bool> {
    const LITTLE_64: &[u8] = b"\x7fELF\x02\x01";
    const INTERPRETER: u32 = 3;
    if !file.starts_with(LITTLE_64) {
        return None;
    }
    let short = |at: usize| Some(usize::from(u16::from_le_bytes(file.get(at..at + 2)?.try_into().ok()?)));
    let table = usize::try_from(u64::from_le_bytes(file.get(32..40)?.try_into().ok()?)).ok()?;
    let (size, count) = (short(54)?, short(56)?);
    let kind = |number: usize| {
        let at = table.checked_add(number.checked_mul(size)?)?;
        Some(u32::from_le_bytes(file.get(at..at.checked_add(4)?)?.try_into().ok()?))
    };
    let kinds: Option<Vec<u32>> = (0..count).map(kind).collect();
    Some(kinds?.contains(&INTERPRETER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_needs_libraries_names_its_loader() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(interpreter(&own), Some(true), "tests are linked dynamically");
    }

    #[test]
    fn a_program_without_such_a_header_is_static() {
        // A header and one segment that is loaded: its table begins at 64, with 56 bytes each.
        let mut file = vec![0_u8; 64 + 56];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[32] = 64;
        file[54] = 56;
        file[56] = 1;
        file[64] = 1;
        assert_eq!(interpreter(&file), Some(false));
        file[64] = 3;
        assert_eq!(interpreter(&file), Some(true));
        assert_eq!(interpreter(&file[..70]), Some(true), "the segment's kind is there");
        assert_eq!(interpreter(&file[..66]), None, "cut short");
        assert_eq!(interpreter(b"#!/bin/sh"), None);
    }
}
