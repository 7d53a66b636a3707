//! `windlass up` beside directories, ports and clusters of others, and beside another `up`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{Windlass, assert_fails, assert_succeeds, stderr};

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

/// Waits until a condition is true.
fn until(what: &str, is: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !is() {
        assert!(Instant::now() < deadline, "waited for {what}");
        std::thread::yield_now();
    }
}

fn private(dir: &Path) {
    fs::create_dir(dir).unwrap();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn seam_m11_up_refuses_a_directory_that_is_not_its_own_and_deletes_nothing() {
    let windlass = Windlass::new();
    let precious = windlass.run.path().join("precious");
    private(&precious);
    fs::write(precious.join("photo"), "of a cat").unwrap();

    symlink(&precious, windlass.up()).unwrap();
    let up = windlass.up().to_str().unwrap().to_owned();
    assert_fails(&windlass.run(&["up", "--detach"]), 1, &[&up, "symbolic link", "WINDLASS_RUN_DIR"]);
    fs::remove_file(windlass.up()).unwrap();

    fs::rename(&precious, windlass.up()).unwrap();
    assert_fails(&windlass.run(&["up", "--detach"]), 1, &[&up, "not one of Windlass"]);
    fs::set_permissions(windlass.up(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_fails(&windlass.run(&["up", "--detach"]), 1, &[&up, "mode 755"]);
    assert_eq!(fs::read_to_string(windlass.up().join("photo")).unwrap(), "of a cat");
    assert_eq!(fs::read_dir(windlass.up()).unwrap().count(), 1, "nothing was written there");
}

#[test]
fn seam_m11_a_start_sweeps_away_only_directories_with_our_marker() {
    let windlass = Windlass::new();
    let (others, left) = (windlass.run.path().join("others"), windlass.run.path().join("private-1-0"));
    for dir in [&others, &left] {
        private(dir);
        fs::write(dir.join("photo"), "of a cat").unwrap();
        fs::write(dir.with_extension("windlass-testenv.lock"), "").unwrap();
    }
    fs::write(left.join("windlass-testenv.instance"), "").unwrap();
    assert_succeeds(&windlass.run(&["up", "--detach"]));
    assert_eq!(fs::read_to_string(others.join("photo")).unwrap(), "of a cat");
    assert!(!left.exists(), "an instance whose supervisor was killed is removed");
    assert_eq!(fs::metadata(windlass.up()).unwrap().permissions().mode() & 0o777, 0o700);
    assert_succeeds(&windlass.run(&["down"]));
    until("its directory to be deleted", || !windlass.up().exists());
}

#[test]
fn users_n16_the_port_of_another_control_plane_is_refused() {
    let (first, second) = (Windlass::new(), Windlass::new());
    let ready = assert_succeeds(&first.run(&["up", "--detach", "--output", "json"]));
    let ready: Value = serde_json::from_str(ready.lines().last().unwrap()).unwrap();
    let server = ready["server"].as_str().unwrap();
    let port = server.rsplit(':').next().unwrap().trim_end_matches('/');
    assert_fails(&second.run(&["up", "--detach", "--port", port]), 1, &[port, "in use"]);
    // A port that was in use a moment ago is free.
    assert_succeeds(&first.run(&["down"]));
    until("the port to be free", || {
        std::net::TcpStream::connect(("127.0.0.1", port.parse().unwrap())).is_err()
    });
    assert_succeeds(&second.run(&["up", "--detach", "--port", port]));
}

#[test]
fn users_n22_up_right_after_an_interrupt_waits_for_the_former_one() {
    let windlass = Windlass::new();
    let (mut former, ready) = windlass.foreground(&["--example", "foo"]);
    // Held up, so that the former one cannot be gone before the next one looks.
    let operator = ready["operator"]["pid"].as_u64().unwrap().to_string();
    assert!(Command::new("kill").args(["-STOP", &operator]).status().unwrap().success());
    interrupt(&former);
    let turn = windlass.run.path().join("up.turn");
    until("the former one to announce that it stops", || fs::read_to_string(&turn).unwrap() == "stopping");
    let next = assert_succeeds(&windlass.run(&["up", "--detach"]));
    assert!(next.contains("is up after"), "{next}");
    assert!(former.wait().unwrap().success());
}

#[test]
fn users_n20_up_installs_the_operator_and_the_sample_in_an_existing_cluster() {
    let (cluster, windlass) = (Windlass::new(), Windlass::new());
    assert_succeeds(&cluster.run(&["up", "--detach"]));
    let kubeconfig = cluster.up().join("kubeconfig");
    let kubeconfig = kubeconfig.to_str().unwrap();
    let (mut child, ready) = windlass.foreground(&["--kubeconfig", kubeconfig, "--example", "game"]);
    let status: Value =
        serde_json::from_str(&assert_succeeds(&cluster.run(&["testenv", "status", "--output", "json"])))
            .unwrap();
    let kubectl = Path::new(status["running"][0]["facts"]["bin"].as_str().unwrap()).join("kubectl");
    let get = |arguments: &[&str]| {
        let output =
            Command::new(&kubectl).args(["--kubeconfig", kubeconfig, "get"]).args(arguments).output();
        assert_succeeds(&output.unwrap())
    };
    let phase = get(&["game", "game-sample", "-o", "jsonpath={.status.phase}"]);
    assert_eq!(phase, "Running");
    interrupt(&child);
    assert!(child.wait().unwrap().success());
    let operator = ready["operator"]["pid"].as_u64().unwrap();
    until("the operator to end", || !Path::new("/proc").join(operator.to_string()).exists());
    assert!(get(&["games", "-o", "name"]).contains("game-sample"), "the objects stay");
    assert!(cluster.up().exists(), "the cluster runs on");

    // Where the operator is installed already, a second one would fight with it.
    let create = ["create", "deployment", "mygame", "-n", "mygame-system", "--image=mygame"];
    let created = Command::new(&kubectl).args(["--kubeconfig", kubeconfig]).args(create).output().unwrap();
    assert_succeeds(&created);
    let again = windlass.run(&["up", "--kubeconfig", kubeconfig, "--example", "game"]);
    assert_fails(&again, 1, &["mygame is installed in this cluster already", "Nothing was changed"]);
}

/// Writes a kubeconfig for an address.
fn kubeconfig(windlass: &Windlass, server: &str) -> String {
    let path = windlass.run.path().join("config");
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: here, contexts: [{{name: here, context: {{cluster: c, user: u}}}}],
          clusters: [{{name: c, cluster: {{server: '{server}'}}}}], users: [{{name: u, user: {{}}}}]}}"
    );
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn users_n20_a_cluster_that_cannot_call_webhooks_here_is_refused_before_anything_is_done() {
    let windlass = Windlass::new();
    // An address for documentation: nothing answers there, and nothing is asked.
    let config = kubeconfig(&windlass, "https://192.0.2.1:6443");
    let refused = windlass.run(&["up", "--kubeconfig", &config]);
    assert_fails(&refused, 1, &["192.0.2.1", "webhooks", "Nothing was changed", "--example foo"]);
    assert!(!stderr(&refused).contains("connecting"), "{}", stderr(&refused));
}

#[test]
fn users_n21_an_error_says_what_failed_and_what_to_do() {
    let windlass = Windlass::new();
    let dead = kubeconfig(&windlass, "https://127.0.0.1:1");
    let output = windlass.run(&["up", "--kubeconfig", &dead]);
    assert_fails(&output, 1, &["https://127.0.0.1:1/", "\"here\"", "refused", "is the cluster running"]);

    let long = format!("/tmp/{}", "x".repeat(80));
    let output = windlass.command(&["up", "--detach"]).env("WINDLASS_RUN_DIR", &long).output().unwrap();
    assert_fails(&output, 3, &[&long, "too long", "60", "WINDLASS_RUN_DIR"]);
    assert!(!Path::new(&long).exists());

    let output =
        windlass.command(&["testenv", "build"]).env("XDG_CACHE_HOME", "/dev/null/x").output().unwrap();
    assert_fails(&output, 3, &["/dev/null/x/windlass/testenv", "Not a directory", "set XDG_CACHE_HOME"]);
}
