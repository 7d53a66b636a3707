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
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("Game (myapp.qingwave.github.io/v1)"), "{said}");
}
