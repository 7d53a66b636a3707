//! Keeps out what must not slip in: crates that we avoid, second versions of those
//! whose types must agree, and licences that do not fit.
//!
//! What `cargo deny check bans licenses` would do, from `cargo metadata` alone:
//! installing cargo-deny takes longer than the rest of a CI run.
//!
//! It does not look for advisories: their database is a Git repository that CI cannot reach. With network,
//! `cargo deny check advisories` does that; without, a copy of the database beside the crates would be
//! needed. The advisories that are known to concern a crate in use are listed as exceptions, each with its
//! reason.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde::Deserialize;

/// Crates that must not be in the lock file, and why.
const BANNED: &[(&str, &str)] = &[
    ("openssl", "TLS is rustls with ring"),
    ("openssl-sys", "TLS is rustls with ring"),
    ("native-tls", "TLS is rustls with ring"),
    ("aws-lc-rs", "one crypto provider: ring"),
    ("aws-lc-sys", "one crypto provider: ring"),
    ("chrono", "time is jiff"),
    ("serde_yaml", "archived; YAML is serde-saphyr"),
    ("kube-runtime", "its place is taken by windlass-runtime"),
    ("kube-leader-election", "two candidates can both lead"),
];

/// Crates of which there must be one version, because their types cross crates.
const SINGLE: &[&str] =
    &["k8s-openapi", "kube", "kube-core", "kube-client", "schemars", "rustls", "ring", "hyper", "http"];

/// Known advisories about crates in use: the crate, the advisory, and the reason why it does no harm here.
const EXCEPTIONS: &[(&str, &str, &str)] = &[(
    "rsa",
    "RUSTSEC-2023-0071",
    "the timing of decryption and signing reveals the key, in all versions, 0.10 candidates included. We only \
     generate keys with it: Harbor's Core, written in Go, signs with them",
)];

/// Licences that Apache-2.0 software may be linked with and shipped.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "Apache-2.0 WITH LLVM-exception",
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
}

/// Checks the whole workspace; a summary, or all that is wrong.
pub(crate) fn check() -> Result<String, Vec<String>> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
        ])
        .output()
        .map_err(|error| vec![format!("cargo metadata does not run: {error}")])?;
    if !output.status.success() {
        return Err(vec![String::from_utf8_lossy(&output.stderr).into_owned()]);
    }
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).map_err(|error| vec![format!("cargo metadata: {error}")])?;
    let mut complaints = judge(&metadata.packages);
    complaints.extend(stale(EXCEPTIONS, &metadata.packages));
    if complaints.is_empty() {
        Ok(format!(
            "{} packages: none banned, none doubled that must be single, all licences known",
            metadata.packages.len()
        ))
    } else {
        Err(complaints)
    }
}

fn judge(packages: &[Package]) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().insert(&package.version);
    }
    let banned = BANNED.iter().filter(|(name, _)| versions.contains_key(name)).map(|(name, why)| {
        format!("{name} is banned ({why}): find who pulls it in with `cargo tree -i {name}`")
    });
    let doubled = SINGLE
        .iter()
        .filter_map(|name| {
            versions.get(name).filter(|versions| versions.len() > 1).map(|versions| (name, versions))
        })
        .map(|(name, versions)| format!("{name} is there in several versions: {versions:?}"));
    let unlicensed =
        packages.iter().filter(|package| !may_be_used(package.license.as_deref())).map(|package| {
            let licence = package.license.as_deref().unwrap_or("none");
            format!("{} {} has licence {licence}, which is not on the list", package.name, package.version)
        });
    banned.chain(doubled).chain(unlicensed).collect()
}

/// Complains about exceptions for crates that are not in use any more.
fn stale(exceptions: &[(&str, &str, &str)], packages: &[Package]) -> Vec<String> {
    let used = |name: &str| packages.iter().any(|package| package.name == name);
    let unused = exceptions.iter().filter(|(name, ..)| !used(name));
    let complain = |(name, advisory, why): &(&str, &str, &str)| {
        format!("the exception for {advisory} ({why}) is not needed: {name} is not in use; remove it")
    };
    unused.map(complain).collect()
}

/// Returns true if a licence expression can be met from the list. `OR` gives a choice, `AND` and old-style
/// `/` are read as cargo does: `/` is `OR`.
fn may_be_used(licence: Option<&str>) -> bool {
    let Some(licence) = licence else { return false };
    let flat = licence.replace(['(', ')'], "").replace('/', " OR ");
    flat.split(" AND ").all(|part| part.split(" OR ").any(|one| LICENCES.contains(&one.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, license: &str) -> Package {
        Package { name: name.to_owned(), version: version.to_owned(), license: Some(license.to_owned()) }
    }

    #[test]
    fn a_banned_crate_is_named_with_the_reason() {
        let complaints = judge(&[package("chrono", "0.4.0", "MIT")]);
        assert_eq!(complaints.len(), 1);
        assert!(complaints[0].contains("chrono is banned (time is jiff)"), "{complaints:?}");
    }

    #[test]
    fn seam_low_an_exception_for_a_crate_that_is_not_used_is_refused() {
        let complaints = stale(EXCEPTIONS, &[package("syn", "2.0.0", "MIT")]);
        assert!(complaints[0].contains("RUSTSEC-2023-0071"), "{complaints:?}");
        assert!(stale(EXCEPTIONS, &[package("rsa", "0.10.0-rc.20", "MIT")]).is_empty());
    }

    #[test]
    fn a_second_k8s_openapi_is_refused() {
        let complaints =
            judge(&[package("k8s-openapi", "0.28.0", "MIT"), package("k8s-openapi", "0.29.0", "MIT")]);
        assert!(complaints[0].contains("several versions"), "{complaints:?}");
        assert!(judge(&[package("syn", "1.0.0", "MIT"), package("syn", "2.0.0", "MIT")]).is_empty());
    }

    #[test]
    fn licence_expressions_are_read() {
        for good in ["MIT", "MIT OR GPL-3.0", "MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0"] {
            assert!(may_be_used(Some(good)), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND AGPL-3.0", "Elastic-2.0"] {
            assert!(!may_be_used(Some(bad)), "{bad}");
        }
        assert!(!may_be_used(None));
    }
}
