//! The `windlass` program, from outside.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::program::{Windlass, assert_fails, stderr, stdout};

fn runs(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).is_some_and(|state| state != "Z")
}

#[test]
fn wrong_usage_is_told_from_other_failures() {
    let windlass = Windlass::new();
    assert_fails(&windlass.run(&["up", "--no-such-flag"]), 2, &["--no-such-flag"]);
    assert_fails(&windlass.run(&["upp"]), 2, &["upp", "up"]);
    assert_fails(&windlass.run(&["up", "--port", "70000"]), 2, &["70000"]);
    assert_fails(&windlass.run(&["up", "--nodes", "0"]), 2, &["--nodes"]);
    assert_fails(&windlass.run(&["testenv", "status", "--output", "xml"]), 2, &["xml", "json"]);
}

#[test]
fn help_explains_itself() {
    let windlass = Windlass::new();
    let help = windlass.run(&["--help"]);
    assert!(help.status.success());
    for word in ["up", "down", "testenv", "Exit codes"] {
        assert!(stdout(&help).contains(word), "{}", stdout(&help));
    }
}

#[test]
fn a_kubeconfig_that_cannot_be_read_is_named() {
    let windlass = Windlass::new();
    assert_fails(
        &windlass.run(&["up", "--kubeconfig", "/no/such/file"]),
        3,
        &["/no/such/file", "No such file"],
    );
    let broken = windlass.run.path().join("broken");
    std::fs::write(&broken, "clusters: 7").unwrap();
    assert_fails(
        &windlass.run(&["up", "--kubeconfig", broken.to_str().unwrap()]),
        3,
        &[broken.to_str().unwrap()],
    );
}

#[test]
fn a_context_that_does_not_exist_is_named_with_those_that_do() {
    let windlass = Windlass::new();
    let path = windlass.run.path().join("config");
    std::fs::write(
        &path,
        "{apiVersion: v1, kind: Config, contexts: [{name: here, context: {cluster: c, user: u}}],
          clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: u, user: {}}]}",
    )
    .unwrap();
    let path = path.to_str().unwrap();
    assert_fails(
        &windlass.run(&["up", "--kubeconfig", path, "--context", "nope"]),
        3,
        &["nope", "here", "--context"],
    );
    assert_fails(&windlass.run(&["up", "--kubeconfig", path, "--context", "here"]), 1, &["127.0.0.1:1"]);
}

#[test]
fn a_missing_home_is_named() {
    let windlass = Windlass::new();
    let output = windlass.command(&["up"]).env_remove("HOME").env_remove("XDG_CACHE_HOME").output().unwrap();
    assert_fails(&output, 3, &["XDG_CACHE_HOME", "HOME"]);
}

#[test]
fn missing_go_is_named_with_the_cure() {
    let windlass = Windlass::new();
    let cache = tempfile::tempdir().unwrap();
    let output = windlass
        .command(&["testenv", "build"])
        .env("XDG_CACHE_HOME", cache.path())
        .env("PATH", "")
        .output()
        .unwrap();
    assert_fails(&output, 3, &["no `go` command", "install Go 1.26", "KUBEBUILDER_ASSETS"]);
}

#[test]
fn old_go_is_named_with_the_cure() {
    use std::os::unix::fs::PermissionsExt as _;
    let windlass = Windlass::new();
    let dir = tempfile::tempdir().unwrap();
    let go = dir.path().join("go");
    std::fs::write(&go, "#!/bin/sh\necho go1.19.8\n").unwrap();
    std::fs::set_permissions(&go, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/bin:/usr/bin", dir.path().display());
    let output = windlass
        .command(&["testenv", "build"])
        .env("XDG_CACHE_HOME", dir.path())
        .env("PATH", path)
        .output()
        .unwrap();
    assert_fails(&output, 3, &["Go 1.19.8 is too old", "install Go 1.26"]);
}

#[test]
fn modules_that_cannot_be_downloaded_are_named_with_the_cure() {
    let windlass = Windlass::new();
    let empty = tempfile::tempdir().unwrap();
    let output = windlass
        .command(&["testenv", "build"])
        .env("XDG_CACHE_HOME", empty.path())
        .env("GOMODCACHE", empty.path().join("modules"))
        .env("GOPROXY", "off")
        .output()
        .unwrap();
    assert_fails(&output, 3, &["could not be downloaded", "GOPROXY", "windlass testenv build"]);
}

#[test]
fn a_port_in_use_is_named() {
    let windlass = Windlass::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    assert_fails(&windlass.run(&["up", "--port", &port]), 1, &[&port, "in use"]);
    assert_fails(&windlass.run(&["testenv", "kubeconfig"]), 1, &["windlass up"]);
}

#[test]
fn a_detached_control_plane_is_found_and_stopped() {
    let windlass = Windlass::new();
    let up = windlass.run(&["up", "--detach", "--nodes", "2"]);
    assert!(up.status.success(), "{}", stderr(&up));
    let path = windlass.run.path().join("up/kubeconfig");
    assert!(stdout(&up).contains(&format!("export KUBECONFIG={}", path.display())), "{}", stdout(&up));

    let second = windlass.run(&["up"]);
    assert!(second.status.success(), "{}", stderr(&second));
    assert!(stdout(&second).contains("already up at https://127.0.0.1:"), "{}", stdout(&second));

    let kubeconfig = windlass.run(&["testenv", "kubeconfig"]);
    assert_eq!(stdout(&kubeconfig), format!("{}\n", path.display()));
    assert_eq!(stderr(&kubeconfig), "");

    let status = windlass.run(&["testenv", "status", "--output", "json"]);
    let status: Value = serde_json::from_str(&stdout(&status)).unwrap();
    assert_eq!(status["running"][0]["facts"]["name"], "up", "{status}");
    assert_eq!(status["running"][0]["keep"], true, "{status}");

    // As a cluster of somebody's, it can be connected to.
    let existing =
        ["up", "--kubeconfig", path.to_str().unwrap(), "--context", "windlass", "--example", "none"];
    let connected = windlass.run(&existing);
    assert!(
        stdout(&connected).contains("connected to Kubernetes v1."),
        "{}{}",
        stdout(&connected),
        stderr(&connected)
    );

    let down = windlass.run(&["down"]);
    assert!(stdout(&down).starts_with("stopped up"), "{}", stdout(&down));
    assert!(!windlass.run.path().join("up").exists());
    assert_eq!(stdout(&windlass.run(&["down"])), "nothing is running\n");
}

/// `windlass up` with an example in the foreground, with its first report read.
fn in_the_foreground(
    windlass: &Windlass,
    example: &str,
) -> (Child, BufReader<std::process::ChildStdout>, Value) {
    let (child, lines, ready, _) = in_the_foreground_step_by_step(windlass, example);
    (child, lines, ready)
}

/// The same, with all that was said until then.
fn in_the_foreground_step_by_step(
    windlass: &Windlass,
    example: &str,
) -> (Child, BufReader<std::process::ChildStdout>, Value, Vec<String>) {
    let mut child = windlass
        .command(&["up", "--output", "json", "--example", example])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let (mut line, mut steps) = (String::new(), Vec::new());
    while lines.read_line(&mut line).unwrap() > 0 {
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["event"] == "ready" {
            return (child, lines, event, steps);
        }
        assert!(matches!(event["event"].as_str(), Some("step" | "building")), "{event}");
        steps.extend(event["message"].as_str().map(str::to_owned));
        line.clear();
    }
    panic!("it ended with {:?}", child.wait());
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

fn supervisor(event: &Value) -> (u64, PathBuf) {
    (event["pid"].as_u64().unwrap(), Path::new(event["dir"].as_str().unwrap()).to_owned())
}

#[test]
fn an_interrupt_stops_all_of_it() {
    let windlass = Windlass::new();
    let (mut child, mut lines, ready) = in_the_foreground(&windlass, "game");
    signal(&child, "-INT");
    assert!(child.wait().unwrap().success());
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&rest).unwrap()["event"], "stopped");
    let (pid, dir) = supervisor(&ready);
    assert!(!runs(pid) && !dir.exists());
}

#[test]
fn a_killed_up_leaves_nothing_behind() {
    let windlass = Windlass::new();
    let (mut child, _lines, ready) = in_the_foreground(&windlass, "game");
    signal(&child, "-KILL");
    child.wait().unwrap();
    let (pid, dir) = supervisor(&ready);
    let operator = ready["operator"]["pid"].as_u64().unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while runs(pid) || runs(operator) || dir.exists() {
        assert!(std::time::Instant::now() < deadline, "the supervisor or the operator still runs");
        std::thread::yield_now();
    }
}

/// Runs kubectl on the control plane of `up`.
fn kubectl(ready: &Value, arguments: &[&str]) -> Output {
    let program = Path::new(ready["bin"].as_str().unwrap()).join("kubectl");
    let kubeconfig = ready["kubeconfig"].as_str().unwrap();
    Command::new(program).args(["--kubeconfig", kubeconfig]).args(arguments).output().unwrap()
}

/// Repeats a kubectl command until its output is as expected.
fn until(ready: &Value, arguments: &[&str], is: impl Fn(&str) -> bool) -> String {
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    loop {
        let output = kubectl(ready, arguments);
        let printed = stdout(&output);
        if output.status.success() && is(&printed) {
            return printed;
        }
        assert!(std::time::Instant::now() < deadline, "{arguments:?}: {printed}{}", stderr(&output));
        std::thread::yield_now();
    }
}

#[test]
fn up_runs_a_whole_game_that_heals_when_something_is_broken() {
    let windlass = Windlass::new();
    let (mut child, _lines, ready) = in_the_foreground(&windlass, "game");
    let uid = ["get", "service", "game-sample", "-o", "jsonpath={.metadata.uid}"];
    let before = until(&ready, &uid, |uid| !uid.is_empty());
    assert!(kubectl(&ready, &["delete", "service", "game-sample"]).status.success());
    until(&ready, &uid, |uid| !uid.is_empty() && uid != before);
    assert!(kubectl(&ready, &["scale", "game", "game-sample", "--replicas=2"]).status.success());
    let ready_replicas =
        ["get", "game", "game-sample", "-o", "jsonpath={.status.phase} {.status.readyReplicas}"];
    until(&ready, &ready_replicas, |status| status == "Running 2");
    // The webhooks are asked too.
    let refused = kubectl(
        &ready,
        &["patch", "game", "game-sample", "--type=merge", "-p", r#"{"spec":{"host":"*.io"}}"#],
    );
    assert!(stderr(&refused).contains("host should not contain *"), "{}", stderr(&refused));
    signal(&child, "-INT");
    assert!(child.wait().unwrap().success());
    assert!(!runs(ready["operator"]["pid"].as_u64().unwrap()));
}

#[test]
fn up_runs_a_whole_harbor_that_says_healthy_and_keeps_its_data() {
    let windlass = Windlass::new();
    let (mut child, _lines, ready, steps) = in_the_foreground_step_by_step(&windlass, "harbor");
    // Node by node.
    let place = |node: &str| {
        let found = steps.iter().position(|step| step.trim() == format!("{node}: ready"));
        found.unwrap_or_else(|| panic!("{node} is not said to be ready: {steps:#?}"))
    };
    for server in ["StatefulSet sample-database", "StatefulSet sample-redis"] {
        assert!(place(server) < place("Harbor sample-harbor"), "{server}: {steps:#?}");
    }
    for node in ["Core sample-harbor-harbor", "Deployment sample-harbor-harbor-core", "HarborCluster sample"]
    {
        place(node);
    }
    let status = kubectl(&ready, &["get", "harborcluster", "sample", "-o", "jsonpath={.status.status}"]);
    assert_eq!(stdout(&status), "healthy", "{}", stderr(&status));
    let of_core = ["get", "deployment", "sample-harbor-harbor-core", "-o", "jsonpath={.metadata.uid}"];
    let before = until(&ready, &of_core, |uid| !uid.is_empty());
    assert!(kubectl(&ready, &["delete", "deployment", "sample-harbor-harbor-core"]).status.success());
    until(&ready, &of_core, |uid| !uid.is_empty() && uid != before);
    // What would cost data is refused, by name.
    let moved =
        r#"{"spec":{"database":{"kind":"PostgreSQL","spec":{"postgresql":{"hosts":[{"host":"db"}]}}}}}"#;
    let refused = kubectl(&ready, &["patch", "harborcluster", "sample", "--type=merge", "-p", moved]);
    assert!(stderr(&refused).contains("spec.database.kind"), "{}", stderr(&refused));
    assert!(kubectl(&ready, &["delete", "harborcluster", "sample"]).status.success());
    let claims = kubectl(&ready, &["get", "pvc", "-o", "name"]);
    for claim in ["sample-database", "sample-redis", "sample-registry"] {
        assert!(stdout(&claims).contains(claim), "{}", stdout(&claims));
    }
    signal(&child, "-INT");
    assert!(child.wait().unwrap().success());
}
