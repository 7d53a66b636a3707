//! `game graph`: the plan of a Game, without a cluster.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::process::{Command, Output};

fn graph(arguments: &[&str]) -> Output {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/game-sample.yaml");
    Command::new(env!("CARGO_BIN_EXE_game")).args(["graph", sample]).args(arguments).output().unwrap()
}

#[test]
fn the_plan_of_the_sample_is_a_tree() {
    let output = graph(&[]);
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "Game game-sample: 3 planned\n\
         ├─ Deployment game-sample: planned: apply\n\
         └─ Service game-sample: planned: apply\n   \
            └─ Ingress game-sample: planned: apply\n"
    );
}

#[test]
fn the_plan_is_a_diagram_and_json_too() {
    let dot = String::from_utf8(graph(&["-o", "dot"]).stdout).unwrap();
    assert!(dot.starts_with("digraph {"), "{dot}");
    assert!(dot.contains("\"Service game-sample\" -> \"Ingress game-sample\""), "{dot}");
    let mermaid = String::from_utf8(graph(&["-o", "mermaid"]).stdout).unwrap();
    assert!(mermaid.starts_with("flowchart LR\n") && mermaid.contains("n1 --> n2"), "{mermaid}");
    let json: serde_json::Value = serde_json::from_slice(&graph(&["-o", "json"]).stdout).unwrap();
    assert_eq!(json["nodes"][2]["after"], serde_json::json!(["Service game-sample"]));
}

#[test]
fn a_manifest_without_a_game_says_what_there_is() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/namespace.yaml");
    let output = Command::new(env!("CARGO_BIN_EXE_game")).args(["graph", manifest]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("Game (myapp.qingwave.github.io/v1)"), "{message}");
}

/// Runs `graph` on a manifest, and returns its exit code and error message.
fn failure(manifest: &str) -> (Option<i32>, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), manifest).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_game")).arg("graph").arg(file.path()).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains(file.path().to_str().unwrap()), "the file is named: {message}");
    (output.status.code(), message)
}

#[test]
fn users_n21_a_manifest_with_an_error_is_refused_with_file_place_and_remedy() {
    let (code, message) = failure("apiVersion: v1\n  kind: [\n");
    assert_eq!(code, Some(1));
    assert!(message.contains("not valid YAML") && message.contains("line 2"), "{message}");

    let game = |version: &str, spec: &str| {
        format!(
            "apiVersion: myapp.qingwave.github.io/{version}\nkind: Game\nmetadata: {{name: a}}\nspec: {spec}\n"
        )
    };
    let (code, message) = failure(&game("v1", "{replica: 3, host: x}"));
    assert_eq!(code, Some(1));
    assert!(message.contains("unknown fields") && message.contains("spec.replica;"), "{message}");

    let (code, message) = failure(&game("v1alpha3", "{}"));
    assert_eq!(code, Some(1));
    assert!(
        message.contains("v1alpha3") && message.contains("myapp.qingwave.github.io/v1 only"),
        "{message}"
    );
}
