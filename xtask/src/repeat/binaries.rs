//! The test binaries of the workspace, as cargo builds them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

/// A test binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binary {
    /// Package and target, as in `windlass-runtime/cache_live`.
    pub(super) name: String,
    executable: PathBuf,
    /// The directory of its package, in which cargo runs it.
    directory: PathBuf,
}

impl Binary {
    /// The binary as cargo runs it: in the directory of its package, with the variables that tests read.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        let package = self.name.split('/').next().unwrap_or_default();
        command.current_dir(&self.directory);
        command.env("CARGO_MANIFEST_DIR", &self.directory).env("CARGO_PKG_NAME", package);
        command
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    manifest_path: PathBuf,
    #[serde(default)]
    executable: Option<PathBuf>,
    #[serde(default)]
    target: Target,
    #[serde(default)]
    profile: Profile,
    #[serde(default)]
    package_id: String,
}

#[derive(Default, Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
    /// `cargo test` builds the target's tests.
    #[serde(default)]
    test: bool,
}

#[derive(Default, Deserialize)]
struct Profile {
    test: bool,
}

/// The names of the test binaries that the words mean, without building anything; all, if there are no words.
pub(super) fn find(words: &[String]) -> Result<Vec<String>, String> {
    let output = super::cargo()
        .args(["metadata", "--no-deps", "--format-version=1"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo does not run: {error}"))?;
    if !output.status.success() {
        return Err("cargo metadata failed: see its messages above".to_owned());
    }
    choose(declared(&String::from_utf8_lossy(&output.stdout))?, words)
}

/// Builds the test binaries of these names. Only their packages are built.
pub(super) fn build(names: &[String]) -> Result<Vec<Binary>, String> {
    let packages: BTreeSet<&str> = names.iter().filter_map(|name| name.split('/').next()).collect();
    let output = super::cargo()
        .args(["test", "--no-run", "--message-format=json"])
        .args(packages.iter().flat_map(|package| ["--package", package]))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo does not run: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not build: see cargo's messages above".to_owned());
    }
    let mut binaries = parse(&String::from_utf8_lossy(&output.stdout));
    binaries.retain(|binary| names.contains(&binary.name));
    match names.iter().find(|name| !binaries.iter().any(|binary| binary.name == **name)) {
        Some(name) => Err(format!("cargo built no test binary for {name}")),
        None => Ok(binaries),
    }
}

/// The names of all test binaries that `cargo metadata` declares, in order.
fn declared(metadata: &str) -> Result<Vec<String>, String> {
    let metadata: Metadata =
        serde_json::from_str(metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let targets = metadata.packages.iter().flat_map(|package| {
        let tested = package.targets.iter().filter(|target| target.test);
        tested.map(|tested| format!("{}/{}", package.name, target(tested)))
    });
    let mut names: Vec<String> = targets.collect();
    names.sort();
    Ok(names)
}

/// The test binaries in cargo's messages, in order of their names.
fn parse(messages: &str) -> Vec<Binary> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let mut binaries: Vec<Binary> = messages
        .filter(|message| message.profile.test)
        .filter_map(|message| {
            let directory = message.manifest_path.parent().map(Path::to_path_buf)?;
            let name = format!("{}/{}", package(&message.package_id), target(&message.target));
            Some(Binary { name, executable: message.executable?, directory })
        })
        .collect();
    binaries.sort_by(|a, b| a.name.cmp(&b.name));
    binaries
}

/// The name in `path+file:///w/crates/graph#windlass-graph@0.1.0`, or in `path+file:///w/xtask#0.1.0`.
fn package(id: &str) -> &str {
    let (path, version) = id.rsplit_once('#').unwrap_or((id, ""));
    version.split_once('@').map_or_else(|| path.rsplit('/').next().unwrap_or(path), |(name, _)| name)
}

fn target(target: &Target) -> String {
    match target.kind.first().map(String::as_str) {
        Some("test") => target.name.clone(),
        Some("lib") => "lib".to_owned(),
        kind => format!("{}-{}", kind.unwrap_or("target"), target.name),
    }
}

fn choose(all: Vec<String>, words: &[String]) -> Result<Vec<String>, String> {
    if let Some(word) = words.iter().find(|word| !all.iter().any(|name| is_meant(name, word))) {
        return Err(format!("no test binary is called {word:?}; there are {}", all.join(", ")));
    }
    let chosen = |name: &String| words.is_empty() || words.iter().any(|word| is_meant(name, word));
    Ok(all.into_iter().filter(chosen).collect())
}

/// Returns true if the user means the binary of this name: by package, by target, or by both.
fn is_meant(name: &str, word: &str) -> bool {
    name == word || name.split('/').any(|half| half == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: &str = r#"
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/graph#windlass-graph@0.1.0","manifest_path":"/w/crates/graph/Cargo.toml","target":{"kind":["test"],"name":"run"},"profile":{"test":true},"executable":"/t/run-1"}
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/graph#windlass-graph@0.1.0","manifest_path":"/w/crates/graph/Cargo.toml","target":{"kind":["lib"],"name":"windlass_graph"},"profile":{"test":true},"executable":"/t/graph-1"}
{"reason":"compiler-artifact","package_id":"path+file:///w/crates/graph#windlass-graph@0.1.0","manifest_path":"/w/crates/graph/Cargo.toml","target":{"kind":["lib"],"name":"windlass_graph"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","package_id":"path+file:///w/xtask#0.1.0","manifest_path":"/w/xtask/Cargo.toml","target":{"kind":["bin"],"name":"xtask"},"profile":{"test":true},"executable":"/t/xtask-1"}
{"reason":"build-finished","success":true}
"#;

    const METADATA: &str = r#"{"packages": [
        {"name": "xtask", "targets": [{"kind": ["bin"], "name": "xtask", "test": true}]},
        {"name": "windlass-graph", "targets": [
            {"kind": ["test"], "name": "run", "test": true},
            {"kind": ["lib"], "name": "windlass_graph", "test": true},
            {"kind": ["bench"], "name": "run", "test": false}
        ]}
    ]}"#;

    fn names(words: &[&str]) -> Result<Vec<String>, String> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        choose(declared(METADATA)?, &words)
    }

    #[test]
    fn binaries_are_called_by_package_and_target() {
        let all = names(&[]).unwrap();
        assert_eq!(all, ["windlass-graph/lib", "windlass-graph/run", "xtask/bin-xtask"]);
        let built = parse(MESSAGES);
        assert_eq!(
            built.iter().map(|binary| &binary.name).collect::<Vec<_>>(),
            all.iter().collect::<Vec<_>>()
        );
        assert_eq!(built[1].directory, Path::new("/w/crates/graph"));
    }

    #[test]
    fn a_user_names_a_package_a_target_or_both() {
        assert_eq!(names(&["windlass-graph"]).unwrap(), ["windlass-graph/lib", "windlass-graph/run"]);
        assert_eq!(names(&["run", "xtask/bin-xtask"]).unwrap(), ["windlass-graph/run", "xtask/bin-xtask"]);
        let error = names(&["rum"]).unwrap_err();
        assert!(error.contains("\"rum\"") && error.contains("windlass-graph/run"), "{error}");
    }
}
