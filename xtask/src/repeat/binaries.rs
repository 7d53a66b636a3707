//! The test binaries of the workspace, as cargo builds them.

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
    /// The binary as cargo runs it: in the directory of its package.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.directory).env("CARGO_MANIFEST_DIR", &self.directory);
        command
    }

    /// True if the user means this binary: by package, by target, or by both.
    fn is(&self, word: &str) -> bool {
        self.name == word || self.name.split('/').any(|part| part == word)
    }
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
}

#[derive(Default, Deserialize)]
struct Profile {
    test: bool,
}

/// Builds the tests of the workspace, and returns the binaries that the words name; all, if there are none.
pub(super) fn build(words: &[String]) -> Result<Vec<Binary>, String> {
    let output = super::cargo()
        .args(["test", "--workspace", "--no-run", "--message-format=json"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo does not run: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not build: see cargo's messages above".to_owned());
    }
    choose(parse(&String::from_utf8_lossy(&output.stdout)), words)
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
    let (place, version) = id.rsplit_once('#').unwrap_or((id, ""));
    version.split_once('@').map_or_else(|| place.rsplit('/').next().unwrap_or(place), |(name, _)| name)
}

fn target(target: &Target) -> String {
    match target.kind.first().map(String::as_str) {
        Some("test") => target.name.clone(),
        Some("lib") => "lib".to_owned(),
        kind => format!("{}-{}", kind.unwrap_or("target"), target.name),
    }
}

fn choose(all: Vec<Binary>, words: &[String]) -> Result<Vec<Binary>, String> {
    if let Some(word) = words.iter().find(|word| !all.iter().any(|binary| binary.is(word))) {
        let names: Vec<&str> = all.iter().map(|binary| &*binary.name).collect();
        return Err(format!("no test binary is called {word:?}; there are {}", names.join(", ")));
    }
    let chosen = |binary: &Binary| words.is_empty() || words.iter().any(|word| binary.is(word));
    Ok(all.into_iter().filter(chosen).collect())
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

    fn names(words: &[&str]) -> Result<Vec<String>, String> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        Ok(choose(parse(MESSAGES), &words)?.into_iter().map(|binary| binary.name).collect())
    }

    #[test]
    fn binaries_are_called_by_package_and_target() {
        assert_eq!(names(&[]).unwrap(), ["windlass-graph/lib", "windlass-graph/run", "xtask/bin-xtask"]);
        assert_eq!(parse(MESSAGES)[1].directory, Path::new("/w/crates/graph"));
    }

    #[test]
    fn a_user_names_a_package_a_target_or_both() {
        assert_eq!(names(&["windlass-graph"]).unwrap(), ["windlass-graph/lib", "windlass-graph/run"]);
        assert_eq!(names(&["run", "xtask/bin-xtask"]).unwrap(), ["windlass-graph/run", "xtask/bin-xtask"]);
        let error = names(&["rum"]).unwrap_err();
        assert!(error.contains("\"rum\"") && error.contains("windlass-graph/run"), "{error}");
    }
}
