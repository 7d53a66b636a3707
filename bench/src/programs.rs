//! The subjects as programs: built, started, spoken with, and ended.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use crate::plane::{Plane, User};
use crate::proc::{self, Sampler, Usage};
use crate::subject::Subject;
use crate::table::RELEASE;

/// The core of the subject; control plane and harness are on the other one.
const SUBJECT_CORE: &str = "1";
/// The core of everything else.
const OTHER_CORE: &str = "0";

/// The programs that were built.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    windlass: PathBuf,
    go: Option<PathBuf>,
    /// True if our program was built without optimisation.
    debug: bool,
    /// True if there are two cores to keep apart.
    pinned: bool,
}

impl Programs {
    /// Builds what is needed, as it would be released; `debug`: ours quickly, to see whether it works.
    pub(crate) fn build(root: &Path, subjects: &[Subject], debug: bool) -> Result<Self> {
        let windlass = build_ours(root, debug)?;
        let wanted = subjects.iter().any(|subject| subject.is_go());
        let go = if wanted { Some(build_go(root, &windlass)?) } else { None };
        Ok(Self { windlass, go, debug, pinned: false })
    }

    /// Moves this process, and with it all that it starts, to a core of its own, where there is more than
    /// one.
    pub(crate) fn pin(&mut self) -> Result<()> {
        let cores = std::thread::available_parallelism()?.get();
        if cores < 2 {
            return Ok(());
        }
        let own = std::process::id().to_string();
        let done = std::process::Command::new("taskset")
            .args(["-acp", OTHER_CORE, &own])
            .stdout(Stdio::null())
            .status()
            .context("taskset (util-linux) is needed to keep subject and control plane apart")?;
        ensure!(done.success(), "taskset could not move this process to core {OTHER_CORE}");
        self.pinned = true;
        Ok(())
    }

    /// The build profile of our program.
    pub(crate) fn build_name(&self) -> &'static str {
        if self.debug { "debug" } else { RELEASE }
    }

    /// The compiler of our program.
    pub(crate) async fn rustc(&self) -> Result<String> {
        let output = Command::new("rustc").arg("--version").output().await.context("rustc")?;
        let version = String::from_utf8_lossy(&output.stdout);
        Ok(version.trim().trim_start_matches("rustc ").to_owned())
    }

    /// A description for the report.
    pub(crate) fn pinning(&self) -> &'static str {
        if self.pinned {
            "control plane and harness on core 0, subject on core 1"
        } else {
            "all cores for everything"
        }
    }

    pub(crate) fn path(&self, subject: Subject) -> Result<&Path> {
        match subject {
            Subject::Windlass => Ok(&self.windlass),
            Subject::Go | Subject::GoTuned => self.go.as_deref().context("the Go program was not built"),
        }
    }

    fn command(&self, subject: Subject, memory_limit: &str) -> Result<Command> {
        let path = self.path(subject)?;
        let mut command = if self.pinned {
            let mut command = Command::new("taskset");
            command.args(["-c", SUBJECT_CORE]).arg(path);
            command
        } else {
            Command::new(path)
        };
        if subject.is_go() {
            command.env("GOMAXPROCS", "1");
        }
        if subject == Subject::GoTuned {
            command.env("GOMEMLIMIT", memory_limit);
        }
        Ok(command)
    }

    /// The version that a subject prints.
    pub(crate) async fn version(&self, subject: Subject) -> Result<String> {
        let output = Command::new(self.path(subject)?).arg("version").output().await?;
        let version: Value = serde_json::from_slice(&output.stdout).context("the version of a subject")?;
        let text = |field: &str| version[field].as_str().unwrap_or("?").to_owned();
        Ok(match subject {
            Subject::Windlass => text("version"),
            Subject::Go | Subject::GoTuned => format!("{} ({})", text("version"), text("toolchain")),
        })
    }

    /// Starts a subject as a user of a control plane.
    pub(crate) fn start(&self, plane: &Plane, user: &User, start: &Start<'_>) -> Result<Running> {
        let mut command = self.command(start.subject, start.memory_limit)?;
        command.arg(start.mode).args(&start.flags).arg("--kubeconfig").arg(&user.kubeconfig);
        command.args(["--threads", "1"]);
        if start.subject == Subject::GoTuned {
            command.arg("--tuned");
        }
        Running::spawn(command, start.subject, plane.log(&user.name))
    }

    /// Starts a subject that needs no cluster.
    pub(crate) fn start_alone(&self, subject: Subject, mode: &str, log: PathBuf) -> Result<Running> {
        let mut command = self.command(subject, "256MiB")?;
        command.arg(mode);
        Running::spawn(command, subject, log)
    }
}

/// The arguments with which a subject is started.
#[derive(Clone, Debug)]
pub(crate) struct Start<'a> {
    pub(crate) subject: Subject,
    pub(crate) mode: &'a str,
    pub(crate) flags: Vec<String>,
    /// The environment of the tuned Go program.
    pub(crate) memory_limit: &'a str,
}

impl<'a> Start<'a> {
    pub(crate) fn new(subject: Subject, mode: &'a str, memory_limit: &'a str) -> Self {
        Self { subject, mode, flags: Vec::new(), memory_limit }
    }

    pub(crate) fn flag(mut self, name: &str, value: impl ToString) -> Self {
        self.flags.extend([name.to_owned(), value.to_string()]);
        self
    }

    pub(crate) fn switch(mut self, name: &str) -> Self {
        self.flags.push(name.to_owned());
        self
    }
}

/// An event that a subject printed, and when it was received.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) at: Instant,
    pub(crate) value: Value,
}

/// A subject that runs. Dropped, it is killed.
pub(crate) struct Running {
    pub(crate) began: Instant,
    pub(crate) pid: u32,
    pub(crate) sampler: Sampler,
    subject: Subject,
    child: Child,
    input: ChildStdin,
    events: mpsc::UnboundedReceiver<Heard>,
    log: PathBuf,
}

impl Running {
    fn spawn(mut command: Command, subject: Subject, log: PathBuf) -> Result<Self> {
        let file = std::fs::File::create(&log)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file).kill_on_drop(true);
        let began = Instant::now();
        let mut child = command.spawn().with_context(|| format!("starting {subject}"))?;
        let pid = child.id().context("a process id")?;
        let input = child.stdin.take().context("its input")?;
        let output = child.stdout.take().context("its output")?;
        let (sender, events) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut lines = BufReader::with_capacity(1 << 20, output).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let at = Instant::now();
                let Ok(value) = serde_json::from_str(&line) else { continue };
                if sender.send(Heard { at, value }).is_err() {
                    return;
                }
            }
        });
        Ok(Self { began, pid, sampler: Sampler::start(pid), subject, child, input, events, log })
    }

    /// Waits for the next event of this name; others before it are passed over.
    pub(crate) async fn hear(&mut self, event: &str, patience: Duration) -> Result<Heard> {
        let heard = tokio::time::timeout(patience, async {
            while let Some(heard) = self.events.recv().await {
                if heard.value["event"] == event {
                    return Some(heard);
                }
            }
            None
        })
        .await;
        match heard {
            Ok(Some(heard)) => Ok(heard),
            Ok(None) => {
                bail!("{} ended before the event {event:?}; its log ends:\n{}", self.subject, self.tail())
            }
            Err(_) => bail!(
                "{} did not report {event:?} within {} s; its log ends:\n{}",
                self.subject,
                patience.as_secs(),
                self.tail()
            ),
        }
    }

    pub(crate) async fn send_command(&mut self, command: &str) -> Result<()> {
        self.input.write_all(format!("{command}\n").as_bytes()).await?;
        Ok(self.input.flush().await?)
    }

    pub(crate) async fn ask(&mut self, command: &str, event: &str, patience: Duration) -> Result<Heard> {
        self.send_command(command).await?;
        self.hear(event, patience).await
    }

    pub(crate) fn usage(&self) -> Result<Usage> {
        proc::usage(self.pid)
    }

    /// Ends it by SIGTERM: how long that took, and whether it ended well; what it still said can be heard
    /// afterwards.
    pub(crate) async fn stop(&mut self) -> Result<(Duration, ExitStatus)> {
        let began = Instant::now();
        let sent = Command::new("kill").args(["-TERM", &self.pid.to_string()]).status().await?;
        ensure!(sent.success(), "{} could not be stopped", self.subject);
        let ended = tokio::time::timeout(Duration::from_mins(1), self.child.wait()).await;
        let status =
            ended.with_context(|| format!("{} did not stop within 60 s of SIGTERM", self.subject))??;
        Ok((began.elapsed(), status))
    }

    /// The same, where all that matters is that it ends well.
    pub(crate) async fn finish(mut self) -> Result<()> {
        let (_, status) = self.stop().await?;
        ensure!(status.success(), "{} ended with {status}; its log ends:\n{}", self.subject, self.tail());
        Ok(())
    }

    /// Kills it, as a node that breaks down does.
    pub(crate) async fn kill(mut self) -> Result<Instant> {
        let at = Instant::now();
        self.child.kill().await?;
        Ok(at)
    }

    fn tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }
}

fn build_ours(root: &Path, debug: bool) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = std::process::Command::new(cargo);
    // What cargo says of the package that it runs, build scripts would take for a change, and everything
    // would be built again.
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            command.env_remove(name);
        }
    }
    command.current_dir(root).args(["build", "--message-format=json-render-diagnostics"]);
    // By itself, as an operator is built; without optimisation, from the parts that a test run of everything
    // has built already.
    let what: &[&str] = if debug {
        &["--workspace", "--bin", "bench-subject"]
    } else {
        &["-p", "bench-subject", "--release"]
    };
    command.args(what);
    let output = command.stderr(Stdio::inherit()).output().context("cargo")?;
    ensure!(output.status.success(), "bench-subject does not build");
    let text = String::from_utf8_lossy(&output.stdout);
    let built =
        text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|message| {
            let ours = message["target"]["name"] == "bench-subject";
            message["executable"].as_str().filter(|_| ours).map(PathBuf::from)
        });
    built.context("cargo did not report the path of bench-subject")
}

fn build_go(root: &Path, beside: &Path) -> Result<PathBuf> {
    let source = root.join("bench/go");
    let built = beside.with_file_name("bench-go");
    let done = std::process::Command::new("go")
        .current_dir(&source)
        .env("GOFLAGS", "-mod=readonly")
        .env("CGO_ENABLED", "0")
        .args(["build", "-trimpath", "-ldflags", "-s -w", "-o"])
        .arg(&built)
        .arg(".")
        .status()
        .with_context(|| format!("go, to build {}; --subjects windlass does without", source.display()))?;
    ensure!(done.success(), "the Go program does not build");
    Ok(built)
}
