//! The program and its user: what it says, and how it ends.

use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::Result;
use serde_json::json;
use windlass_testenv::world::Program;

fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foo"));
    // What this machine has set is no part of the test.
    for name in
        ["KUBECONFIG", "WATCH_NAMESPACE", "POD_NAMESPACE", "LEADER_ELECT", "METRICS_BIND_ADDRESS", "HOME"]
    {
        command.env_remove(name);
    }
    command.args(args);
    command
}

fn ends(command: &mut Command, code: i32) -> Result<String> {
    let Output { status, stdout, stderr } = command.output()?;
    let output = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert_eq!(status.code(), Some(code), "{output}");
    Ok(output)
}

/// A kubeconfig of a cluster that is not there.
fn nowhere() -> Result<(tempfile::TempDir, PathBuf)> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("kubeconfig");
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    });
    std::fs::write(&path, config.to_string())?;
    Ok((directory, path))
}

#[test]
fn help_begins_with_what_it_does() -> Result<()> {
    let output = ends(&mut program(&["--help"]), 0)?;
    assert!(
        output.starts_with("Gives every Foo a Deployment") && output.contains("--leader-elect"),
        "{output}"
    );
    assert!(ends(&mut program(&["--version"]), 0)?.starts_with("sample-controller 0."));
    Ok(())
}

#[test]
fn a_wrong_command_line_ends_with_2() -> Result<()> {
    let output = ends(&mut program(&["--workers=none"]), 2)?;
    assert!(output.contains("take a number from 1 up"), "{output}");
    Ok(())
}

#[test]
fn a_missing_prerequisite_ends_with_3_and_a_remedy() -> Result<()> {
    let output = ends(&mut program(&["--kubeconfig", "/nowhere/at/all"]), 3)?;
    assert!(output.contains("/nowhere/at/all") && output.contains("--kubeconfig or KUBECONFIG"), "{output}");

    let (_directory, kubeconfig) = nowhere()?;
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = format!("--metrics-bind-address={}", taken.local_addr()?);
    let output = ends(program(&[&address]).env("KUBECONFIG", &kubeconfig), 3)?;
    assert!(output.contains("choose another port") && output.contains("--metrics-bind-address"), "{output}");

    let elect = ["--leader-elect", "--metrics-bind-address=0"];
    let output = ends(program(&elect).env("KUBECONFIG", &kubeconfig), 3)?;
    assert!(output.contains("--operator-namespace"), "{output}");

    let output =
        ends(program(&["--metrics-bind-address=0", "--log-level=a=b=c"]).env("KUBECONFIG", &kubeconfig), 3)?;
    assert!(output.contains("is not a log filter"), "{output}");
    Ok(())
}

#[test]
fn stale_manifests_end_with_1_and_the_command_that_refreshes_them() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let place = directory.path().to_str().unwrap();
    let output = ends(&mut program(&["manifests", "--namespace=here", "--check", place]), 1)?;
    assert!(output.contains("rbac.yaml is missing"), "{output}");
    assert!(output.contains(&format!("manifests --namespace=here --out {place}")), "{output}");
    ends(&mut program(&["manifests", "--namespace=here", "--out", place]), 0)?;
    ends(&mut program(&["manifests", "--namespace=here", "--check", place]), 0)?;
    ends(&mut program(&["manifests", "--check", place]), 1)?;
    let stream = ends(&mut program(&["manifests", "--namespaced"]), 0)?;
    let objects: Vec<serde_json::Value> = serde_saphyr::from_multiple(&stream)?;
    assert_eq!(objects[0]["kind"], "Namespace", "what others live in comes first");
    Ok(())
}

#[test]
fn a_cluster_that_is_not_there_is_waited_for_until_a_stop() -> Result<()> {
    let (_directory, kubeconfig) = nowhere()?;
    Ok(Program::start(env!("CARGO_BIN_EXE_foo"), &kubeconfig, &[], &[])?.stop()?)
}
