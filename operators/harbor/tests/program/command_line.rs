//! The program and its user: what it says, and which of several settings counts.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result};
use harbor_operator::settings::keys::keys;

fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_harbor-operator"));
    // What this machine has set is no part of the test.
    for name in ["KUBECONFIG", "WATCH_NAMESPACE", "POD_NAMESPACE", "HOME", "CONFIG_FILE"] {
        command.env_remove(name);
    }
    for setting in keys() {
        command.env_remove(setting.variable());
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

#[test]
fn help_explains_every_setting_and_shows_no_secret() -> Result<()> {
    let output = ends(program(&["--help"]).env("GITHUB_TOKEN", "hunter2"), 0)?;
    assert!(output.starts_with("Runs Harbor"), "{output}");
    for setting in keys() {
        let (flag, variable) = (format!("--{}", setting.key()), format!("[env: {}", setting.variable()));
        assert!(output.contains(&flag) && output.contains(&variable), "{flag} {variable}: {output}");
    }
    assert!(!output.contains("hunter2"));
    let short = ends(&mut program(&["-h"]), 0)?;
    assert!(short.contains("--classname") && !short.contains("--core-controller-disabled"), "{short}");
    Ok(())
}

#[test]
fn a_flag_counts_before_the_environment_and_that_before_the_file() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("settings.yaml");
    std::fs::write(&file, "registry-encryption-cost: 77\n")?;
    let config = format!("--config={}", file.display());
    let (nowhere, variable) = ("--kubeconfig=/nowhere", "REGISTRY_ENCRYPTION_COST");
    // A wrong value shows which one counts; where a right one does, the missing cluster is all that is wrong.
    let output = ends(&mut program(&[nowhere, &config]), 2)?;
    assert!(
        output.contains(r#"registry-encryption-cost cannot be "77": write a number from 4 to 31"#),
        "{output}"
    );
    assert!(output.contains(&format!("set by registry-encryption-cost in {}", file.display())), "{output}");
    let output = ends(program(&[nowhere, &config]).env(variable, "88"), 2)?;
    assert!(
        output.contains("88") && output.contains("REGISTRY_ENCRYPTION_COST in the environment"),
        "{output}"
    );
    let output = ends(program(&[nowhere, "--registry-encryption-cost=99"]).env(variable, "5"), 2)?;
    assert!(output.contains("99") && output.contains("set by --registry-encryption-cost"), "{output}");
    ends(program(&[nowhere, &config]).env(variable, "5"), 3)?;
    ends(program(&["run", nowhere, &config, "--registry-encryption-cost=6"]).env(variable, "88"), 3)?;
    Ok(())
}

#[test]
fn an_unknown_setting_is_named_with_its_file() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("settings.yaml");
    std::fs::write(&file, "- key: clasname\n  priority: 50\n  value: blue\n")?;
    let output = ends(program(&["--kubeconfig=/nowhere"]).env("CONFIG_FILE", &file), 2)?;
    assert!(output.contains("there is no setting clasname") && output.contains("settings.yaml"), "{output}");
    let output = ends(&mut program(&["--kubeconfig=/nowhere", "--config=/nowhere/at/all"]), 3)?;
    assert!(output.contains("/nowhere/at/all"), "{output}");
    ends(&mut program(&["--clasname=blue"]), 2)?;
    Ok(())
}

#[test]
fn the_plan_of_a_manifest_is_drawn_without_a_cluster() -> Result<()> {
    let here = env!("CARGO_MANIFEST_DIR");
    let output = ends(&mut program(&["graph", &format!("{here}/samples/harborcluster.yaml")]), 0)?;
    for node in ["StatefulSet", "Harbor ", "PersistentVolumeClaim", "retained"] {
        assert!(output.contains(node), "{node} in {output}");
    }
    let newer = format!("{here}/tests/manifests/newer.yaml");
    let output = ends(&mut program(&["graph", &newer, "--output=mermaid"]), 0)?;
    assert!(output.contains("-->") && output.contains("Core"), "{output}");
    Ok(())
}

#[test]
fn a_log_for_machines_is_one_object_a_line() -> Result<()> {
    // A cluster that does not answer makes the program log; it retries until it is stopped.
    let directory = tempfile::tempdir()?;
    let config = directory.path().join("config");
    std::fs::write(
        &config,
        "{apiVersion: v1, kind: Config, current-context: here, contexts: [{name: here, context: {cluster: c, user: u}}],
          clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u, user: {}}]}",
    )?;
    let kubeconfig = format!("--kubeconfig={}", config.display());
    let quiet = ["--metrics-bind-address=0", "--webhook-bind-address=0"];
    let mut command = program(&[&kubeconfig, "--log-format=json", "-n", "registry"]);
    let mut running = command.args(quiet).stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(running.stderr.take().context("standard error")?).lines();
    let heard: Result<Vec<String>, _> = lines.by_ref().take(3).collect();
    running.kill()?;
    running.wait()?;
    let heard = heard?;
    assert!(!heard.is_empty());
    for line in &heard {
        let read: serde_json::Value = serde_json::from_str(line).with_context(|| line.clone())?;
        assert!(read["level"].is_string() && read["timestamp"].is_string(), "{line}");
    }
    Ok(())
}
