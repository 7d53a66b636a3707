//! Whatever is killed, nothing is left behind, and the next one starts.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result};
use windlass_testenv::control_plane::{self, Status};
use windlass_testenv::{TestEnv, eventually, or_not_run};

const HOLD: &str = "TESTENV_HOLD";

/// A test like others, and also the program that the tests below start and kill:
/// with `TESTENV_HOLD` set it stays until its standard input closes.
#[tokio::test]
async fn the_shared_control_plane_answers() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let version = env.client().apiserver_version().await?;
    assert_eq!(version.major, "1");
    let namespace = env.namespace("answers").await?;
    assert!(!namespace.name().is_empty());
    if std::env::var_os(HOLD).is_some() {
        println!("HOLDING {}", env.facts("a directory")?.dir.display());
        let mut rest = String::new();
        std::io::stdin().read_to_string(&mut rest)?;
    }
    Ok(())
}

/// A process that holds the shared control plane of a run directory of its own.
struct Holder {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Holder {
    fn start(run: &Path) -> Result<Self> {
        Self::start_with(run, [])
    }

    /// With an empty cache; Go's own stays where it is: what is tested is who builds, not how long it takes.
    fn start_on_an_empty_cache(run: &Path, cache: &Path) -> Result<Self> {
        let cache = [("XDG_CACHE_HOME", cache.display().to_string())];
        Self::start_with(run, cache.into_iter().chain(go_caches()?))
    }

    fn start_with(run: &Path, environment: impl IntoIterator<Item = (&'static str, String)>) -> Result<Self> {
        let mut command = this_test("the_shared_control_plane_answers", run)?;
        command.env(HOLD, "1").envs(environment);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let output = BufReader::new(child.stdout.take().context("its output")?);
        Ok(Self { child, output })
    }

    /// Waits until it holds its control plane; the directory.
    fn ready(&mut self) -> Result<PathBuf> {
        let mut line = String::new();
        while self.output.read_line(&mut line)? > 0 {
            if let Some((_, dir)) = line.trim().split_once("HOLDING ") {
                return Ok(dir.into());
            }
            line.clear();
        }
        anyhow::bail!("it ended: {}", self.errors());
    }

    /// Waits for the end of the program, and returns its standard error.
    fn errors(&mut self) -> String {
        drop(self.child.stdin.take());
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut text);
        }
        let _ = self.child.wait();
        text
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This test binary once more, for one test, with a run directory of its own.
fn this_test(name: &str, run: &Path) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["--exact", name, "--nocapture"])
        .env("WINDLASS_RUN_DIR", run)
        .env("WINDLASS_TEST_LINGER", "0")
        .env_remove("WINDLASS_TEST_CONTEXT")
        .env_remove("WINDLASS_TESTS_MUST_RUN")
        .env_remove("KUBEBUILDER_ASSETS");
    Ok(command)
}

fn go_caches() -> Result<Vec<(&'static str, String)>> {
    let names = ["GOCACHE", "GOMODCACHE"];
    let output = Command::new("go").arg("env").args(names).output()?;
    let values = String::from_utf8(output.stdout)?;
    Ok(names.into_iter().zip(values.lines().map(str::to_owned)).collect())
}

fn kill(pid: u32) -> Result<()> {
    let status = Command::new("kill").args(["-9", &pid.to_string()]).status()?;
    anyhow::ensure!(status.success(), "kill {pid}");
    Ok(())
}

/// True if the process runs. One that has ended and waits to be collected does not.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).is_some_and(|state| state != "Z")
}

async fn gone(pids: &BTreeMap<String, u32>) -> Result<()> {
    eventually("every process to be gone", || async {
        let left: Vec<_> = pids.iter().filter(|(_, pid)| runs(**pid)).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await?;
    Ok(())
}

fn status(dir: &Path) -> Result<(Status, BTreeMap<String, u32>)> {
    let status = control_plane::status(dir).context("a running instance")?;
    let mut pids = status.pids.clone();
    assert_eq!(pids.len(), 5, "{pids:?}");
    pids.insert("supervisor".to_owned(), status.facts.pid);
    Ok((status, pids))
}

#[tokio::test]
async fn a_killed_test_process_leaves_nothing_behind() -> Result<()> {
    let run = tempfile::Builder::new().prefix("wl").tempdir_in("/tmp")?;
    let mut holder = Holder::start(run.path())?;
    let dir = holder.ready()?;
    let (status, pids) = status(&dir)?;
    assert_eq!(status.users, 1);
    kill(holder.child.id())?;
    gone(&pids).await?;
    assert!(!dir.exists(), "{}", dir.display());
    Ok(())
}

#[tokio::test]
async fn a_killed_supervisor_takes_its_children_along_and_says_so() -> Result<()> {
    let run = tempfile::Builder::new().prefix("wl").tempdir_in("/tmp")?;
    let mut holder = Holder::start(run.path())?;
    let dir = holder.ready()?;
    let (_, pids) = status(&dir)?;
    kill(pids["supervisor"])?;
    gone(&pids).await?;
    let mut next = Holder::start(run.path())?;
    assert_eq!(next.ready()?, dir, "no stale lock holds up the next one");
    let errors = holder.errors();
    assert!(errors.contains("the control plane is gone: its supervisor"), "{errors}");
    Ok(())
}

#[tokio::test]
async fn a_killed_component_ends_the_rest_and_is_named() -> Result<()> {
    let run = tempfile::Builder::new().prefix("wl").tempdir_in("/tmp")?;
    let mut holder = Holder::start(run.path())?;
    let dir = holder.ready()?;
    let (_, pids) = status(&dir)?;
    kill(pids["kube-controller-manager"])?;
    gone(&pids).await?;
    let errors = holder.errors();
    assert!(errors.contains("kube-controller-manager ended unexpectedly (signal: killed)"), "{errors}");
    let mut next = Holder::start(run.path())?;
    assert_eq!(next.ready()?, dir);
    Ok(())
}

#[tokio::test]
async fn one_of_two_processes_on_an_empty_cache_builds() -> Result<()> {
    let run = tempfile::Builder::new().prefix("wl").tempdir_in("/tmp")?;
    let cache = tempfile::tempdir()?;
    let start = || Holder::start_on_an_empty_cache(run.path(), cache.path());
    let mut holders = [start()?, start()?];
    let mut dirs = Vec::new();
    for holder in &mut holders {
        dirs.push(holder.ready()?);
    }
    assert_eq!(dirs[0], dirs[1], "both are on one control plane");
    assert_eq!(status(&dirs[0])?.0.users, 2);
    let output = holders.iter_mut().map(Holder::errors).collect::<String>();
    assert_eq!(output.matches("built the control plane in").count(), 1, "{output}");
    assert_eq!(output.matches("waiting for it").count(), 1, "{output}");
    Ok(())
}

/// Run as it is on the shared control plane, and below on a cluster that is named.
#[tokio::test]
async fn a_portable_test_runs_anywhere() -> Result<()> {
    let env = or_not_run!(TestEnv::portable().await);
    let namespace = env.namespace("portable").await?;
    let user = namespace.client_for("anyone", &windlass_testenv::Rules::everything()).await?;
    user.client()?.apiserver_version().await?;
    Ok(())
}

#[tokio::test]
async fn on_a_named_cluster_only_portable_tests_run_and_the_others_say_so() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let run = tempfile::Builder::new().prefix("wl").tempdir_in("/tmp")?;
    let there = |test: &str, must_run: &str| -> Result<(bool, String)> {
        let mut command = this_test(test, run.path())?;
        command.env("KUBECONFIG", env.kubeconfig()?).env("WINDLASS_TEST_CONTEXT", "windlass");
        command.env("WINDLASS_TESTS_MUST_RUN", must_run);
        let output = command.output()?;
        Ok((output.status.success(), String::from_utf8(output.stderr)?))
    };
    let (passed, output) = there("a_portable_test_runs_anywhere", "")?;
    assert!(passed && output.contains("using the cluster of context \"windlass\""), "{output}");
    let (passed, _) = there("the_shared_control_plane_answers", "1")?;
    assert!(!passed, "where nobody reads that it was not run, it fails");
    let (passed, output) = there("the_shared_control_plane_answers", "")?;
    assert!(passed && output.contains("test the_shared_control_plane_answers not run: it needs"), "{output}");
    assert!(output.contains("WINDLASS_TEST_CONTEXT=windlass"), "{output}");
    assert_eq!(std::fs::read_dir(run.path())?.count(), 0, "nothing was started");

    let mut command = this_test("the_shared_control_plane_answers", run.path())?;
    let run = command.env("USE_EXISTING_CLUSTER", "true").output()?;
    let output = String::from_utf8(run.stdout)? + &String::from_utf8(run.stderr)?;
    assert!(!run.status.success() && output.contains("WINDLASS_TEST_CONTEXT=<context>"), "{output}");
    Ok(())
}

#[tokio::test]
async fn ready_made_binaries_are_used_if_they_are_complete() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let ready_made = env.facts("binaries")?.bin.display().to_string();
    let run = tempfile::Builder::new().prefix("wl").tempdir_in("/tmp")?;
    let mut holder = Holder::start_with(run.path(), [("KUBEBUILDER_ASSETS", ready_made.clone())])?;
    let dir = holder.ready()?;
    assert_eq!(status(&dir)?.0.facts.bin, Path::new(&ready_made));
    let output = holder.errors();
    assert!(output.contains(&format!("from KUBEBUILDER_ASSETS={ready_made}")), "{output}");

    let incomplete = tempfile::tempdir()?;
    let path = incomplete.path().display().to_string();
    let mut holder = Holder::start_with(run.path(), [("KUBEBUILDER_ASSETS", path.clone())])?;
    holder.ready()?;
    let output = holder.errors();
    assert!(output.contains(&format!("KUBEBUILDER_ASSETS={path} is not used: it lacks etcd")), "{output}");
    Ok(())
}
