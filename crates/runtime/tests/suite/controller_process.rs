//! Tests of a whole process and its signals.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use crate::operator;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use operator::{cache, client, labelled, original};
use windlass_runtime::cache::Full;
use windlass_runtime::controller::{Controller, Requeue};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::manager::{BoxError, Context, Manager, Runnable, Stage};
use windlass_testenv::{TestEnv, TestNamespace, eventually, or_not_run, within};

const ROLE: &str = "CONTROLLER_PROCESS";
const NAMESPACE: &str = "CONTROLLER_NAMESPACE";

/// Not a test of its own: with `CONTROLLER_PROCESS` set, it is the program that the tests below start and
/// signal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program() -> Result<()> {
    let (Ok(role), Ok(namespace)) = (std::env::var(ROLE), std::env::var(NAMESPACE)) else { return Ok(()) };
    let config = match role.as_str() {
        // No server listens at this address.
        "without a server" => kube::Config::new("http://127.0.0.1:9".parse()?),
        _ => TestEnv::shared().await?.config().clone(),
    };
    let client = client(config)?;
    let watched = cache(&client);
    let configs = watched.reader::<Full<ConfigMap>>(&labelled(&namespace, "mirror=original")?);
    let controller = Controller::for_(configs).build(move |_: ObjectKey| {
        let hangs = role == "hangs";
        async move {
            println!("SAY begun");
            if hangs {
                std::future::pending::<()>().await;
            }
            // The parent ends the work, after it has seen that the process is stopping.
            tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await??;
            println!("SAY finished");
            Ok(Requeue::OnChange)
        }
    })?;
    let mut manager = Manager::new();
    manager.cache(&watched)?;
    manager.controller(controller)?;
    // The first stage to stop is that of the controllers; the one before it stops when they have ended.
    manager.add(Stage::Controllers, announcing("stopping"))?;
    manager.add(Stage::Everywhere, announcing("controllers ended"))?;
    let readiness = manager.readiness().clone();
    tokio::spawn(async move {
        let started = within(Duration::from_hours(1), "the manager", || {
            let report = readiness.report().to_string();
            std::future::ready(if report.contains("[+] manager") { Ok(()) } else { Err(report) })
        });
        started.await.unwrap();
        println!("SAY started");
    });
    manager.run().await?;
    Ok(())
}

/// A runnable that prints this when its stage stops.
#[allow(clippy::print_stdout)] // the parent reads it
fn announcing(line: &'static str) -> Runnable {
    Runnable::new(line, move |context: Context| async move {
        context.ready();
        context.stop.requested().await;
        println!("SAY {line}");
        Ok::<_, BoxError>(())
    })
}

struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(role: &str, namespace: &str) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--exact", "controller_process::the_program", "--nocapture"])
            .env(ROLE, role)
            .env(NAMESPACE, namespace)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().context("its input")?;
        let output = BufReader::new(child.stdout.take().context("its output")?);
        Ok(Self { child, input, output })
    }

    /// Returns the next announcement of the program, or `None` at its end.
    fn next(&mut self) -> Result<Option<String>> {
        let mut line = String::new();
        while self.output.read_line(&mut line)? > 0 {
            if let Some((_, announcement)) = line.trim_end().split_once("SAY ") {
                return Ok(Some(announcement.to_owned()));
            }
            line.clear();
        }
        Ok(None)
    }

    /// Waits until the program prints this; returns false if it ends first.
    fn says(&mut self, what: &str) -> Result<bool> {
        while let Some(announcement) = self.next()? {
            if announcement == what {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lets the work of the program end.
    fn release(&mut self) -> Result<()> {
        Ok(writeln!(self.input, "go on")?)
    }

    fn signal(&self) -> Result<()> {
        let done = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        anyhow::ensure!(done.success(), "kill: {done}");
        Ok(())
    }

    fn exit_code(&mut self) -> Result<Option<i32>> {
        Ok(self.child.wait()?.code())
    }
}

/// Kills the process at the end of its test.
impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn with_an_object(env: &TestEnv, hint: &str) -> Result<TestNamespace> {
    let namespace = env.namespace(hint).await?;
    namespace.api::<ConfigMap>().create(&PostParams::default(), &original("a", "1")).await?;
    Ok(namespace)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_lets_work_in_flight_finish() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = with_an_object(&env, "graceful").await?;
    let mut program = Program::start("works", namespace.name())?;
    assert!(program.says("begun")?);
    program.signal()?;
    assert!(program.says("stopping")?);
    program.release()?;
    assert_eq!(program.next()?.as_deref(), Some("finished"), "the reconcile in flight was cut off");
    assert_eq!(program.next()?.as_deref(), Some("controllers ended"));
    assert_eq!(program.exit_code()?, Some(0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_the_process_at_once() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = with_an_object(&env, "impatient").await?;
    let mut program = Program::start("hangs", namespace.name())?;
    assert!(program.says("begun")?);
    program.signal()?;
    // Two signals that arrive together count as one: send until the process is gone.
    eventually("the program to be gone", || {
        std::future::ready(match program.child.try_wait() {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(format!("it runs, and was signalled: {:?}", program.signal())),
            Err(error) => Err(error.to_string()),
        })
    })
    .await?;
    // At the end of its grace time it would have failed with another code.
    assert_eq!(program.exit_code()?, Some(1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn d4_a_signal_is_obeyed_while_the_caches_cannot_sync() -> Result<()> {
    let mut program = Program::start("without a server", "nowhere")?;
    assert!(program.says("started")?);
    program.signal()?;
    assert_eq!(program.exit_code()?, Some(0));
    Ok(())
}
