//! The control plane's binaries: found, or built once from their Go modules.
//!
//! In this order: a directory that `KUBEBUILDER_ASSETS` names, if it is complete and
//! of a supported version; the build in the cache; a new build. Each choice is said
//! in a line, and so is each reason to go on to the next.

mod go;
mod module;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::time::Duration;

use crate::digest;
use crate::dirs;
use crate::error::Result;
use crate::progress::Reporter;

/// The minor versions of Kubernetes 1 that the components' flags are known to fit.
const SUPPORTED_MINORS: std::ops::RangeInclusive<u32> = 34..=37;

/// Guards the message that names the build in use: it is printed once per process, though every test asks.
static ANNOUNCED: Once = Once::new();

/// The programs of a control plane. The assets of envtest lack some of them.
const COMPONENTS: &[&str] =
    &["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kubectl"];

/// Binaries that are ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assets {
    /// The directory with the components.
    pub bin: PathBuf,
    /// The program that owns their processes.
    pub supervisor: PathBuf,
    /// A name for this set: instances of different sets do not share.
    pub id: String,
}

impl Assets {
    /// Finds binaries, or builds them. Blocks; the first build takes minutes.
    pub fn locate(reporter: &Reporter) -> Result<Self> {
        let cache = dirs::cache()?;
        if let Some(dir) = env::var_os("KUBEBUILDER_ASSETS").filter(|dir| !dir.is_empty()) {
            let dir = PathBuf::from(dir);
            match vet(&dir) {
                Ok(version) => {
                    reporter.line(format!(
                        "using Kubernetes {version} from KUBEBUILDER_ASSETS={}",
                        dir.display()
                    ));
                    let supervisor = go::build_supervisor(&cache, reporter)?;
                    let id = format!(
                        "{}-{}",
                        module::id(),
                        digest::short([dir.as_os_str().as_encoded_bytes()], 3)
                    );
                    return Ok(Self { bin: dir, supervisor, id });
                }
                Err(reason) => {
                    reporter.line(format!("KUBEBUILDER_ASSETS={} is not used: {reason}", dir.display()));
                }
            }
        }
        let assets = Self::build(false, reporter)?;
        ANNOUNCED.call_once(|| {
            let version = module::kubernetes_version();
            reporter.line(format!("using Kubernetes {version} as built in {}", assets.bin.display()));
        });
        Ok(assets)
    }

    /// The build in the cache, made now if it is not there, or in any case with `force`.
    pub fn build(force: bool, reporter: &Reporter) -> Result<Self> {
        let bin = go::build_once(&dirs::cache()?, force, reporter)?;
        Ok(Self { supervisor: bin.join("supervise"), bin, id: module::id() })
    }

    /// The `kubectl` of these binaries.
    pub fn kubectl(&self) -> PathBuf {
        self.bin.join("kubectl")
    }
}

/// The builds in the cache.
#[derive(Debug, Clone)]
pub struct Cached {
    /// The directory that the present version is or would be built into.
    pub path: PathBuf,
    /// The Kubernetes version of the present version.
    pub kubernetes: &'static str,
    /// The age of the build; `None` if there is none.
    pub age: Option<Duration>,
    /// Builds of other versions.
    pub others: Vec<PathBuf>,
}

/// Looks at the cache without building anything.
pub fn cached() -> Result<Cached> {
    let cache = dirs::cache()?;
    let path = cache.join(module::id());
    let others = fs::read_dir(&cache)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|other| *other != path && other.join("kube-apiserver").is_file())
        .collect();
    let age = go::is_complete(&path).then(|| go::age(&path)).flatten();
    Ok(Cached { path, kubernetes: module::kubernetes_version(), age, others })
}

/// Checks a directory of foreign binaries: returns its version, or why it cannot be used.
fn vet(dir: &Path) -> Result<String, String> {
    let missing: Vec<&str> = COMPONENTS.iter().copied().filter(|name| !dir.join(name).is_file()).collect();
    if !missing.is_empty() {
        return Err(format!("it lacks {} (envtest's own assets do)", missing.join(", ")));
    }
    let output = Command::new(dir.join("kube-apiserver"))
        .arg("--version")
        .output()
        .map_err(|error| format!("its kube-apiserver does not run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().trim_start_matches("Kubernetes ").to_owned();
    match minor(&version) {
        Some(minor) if SUPPORTED_MINORS.contains(&minor) => Ok(version),
        _ => Err(format!(
            "its kube-apiserver is of version {version:?}, and 1.{} to 1.{} are supported",
            SUPPORTED_MINORS.start(),
            SUPPORTED_MINORS.end()
        )),
    }
}

fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("v1.")?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn directory_with(names: &[&str], version: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            let path = dir.path().join(name);
            fs::write(&path, format!("#!/bin/sh\necho Kubernetes {version}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        dir
    }

    #[test]
    fn envtests_own_assets_are_named_incomplete() {
        let dir = directory_with(&["etcd", "kube-apiserver", "kubectl"], "v1.36.0");
        let reason = vet(dir.path()).unwrap_err();
        assert!(reason.contains("kube-controller-manager, kube-scheduler, kwok"), "{reason}");
    }

    #[test]
    fn an_unsupported_version_is_named() {
        let dir = directory_with(COMPONENTS, "v1.20.4");
        let reason = vet(dir.path()).unwrap_err();
        assert!(reason.contains("v1.20.4") && reason.contains("1.34 to 1.37"), "{reason}");
    }

    #[test]
    fn complete_assets_of_a_supported_version_are_used() {
        let dir = directory_with(COMPONENTS, "v1.35.2");
        assert_eq!(vet(dir.path()).unwrap(), "v1.35.2");
    }

    #[test]
    fn a_kube_apiserver_that_cannot_be_run_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        for name in COMPONENTS {
            fs::write(dir.path().join(name), "not a program").unwrap();
        }
        assert!(vet(dir.path()).unwrap_err().contains("does not run"));
    }
}
