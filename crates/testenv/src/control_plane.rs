//! A running control plane, and the line to the supervisor that owns it.
//!
//! The supervisor counts the open connections on its unix socket; a
//! [`ControlPlane`] is one of them. When it is dropped, or its process is killed,
//! the connection closes, and after the last one the supervisor lingers a while,
//! stops every component and removes its data.
//!
//! Everything here blocks: it is called from `spawn_blocking` or from a program's
//! main thread.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::assets::Assets;
use crate::dirs;
use crate::error::{Error, Result};
use crate::progress::Reporter;

/// How long a supervisor may take from its start until it listens.
const LISTEN_DEADLINE: Duration = Duration::from_secs(20);

/// How to start a control plane that does not run yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The instance: those of one name share one control plane.
    pub name: String,
    /// The API server's port; 0 picks a free one.
    pub port: u16,
    /// How many KWOK nodes there are.
    pub nodes: u16,
    /// How long it stays after its last user.
    pub linger: Duration,
}

impl Options {
    /// The control plane that all tests of these binaries share. It lingers for a
    /// minute, or as many seconds as `WINDLASS_TEST_LINGER` says.
    pub fn shared(assets: &Assets) -> Self {
        let name = format!("shared-{}", assets.id);
        let chosen = std::env::var("WINDLASS_TEST_LINGER").ok().and_then(|seconds| seconds.parse().ok());
        Self { name, port: 0, nodes: 3, linger: Duration::from_secs(chosen.unwrap_or(60)) }
    }

    /// A control plane of one's own, gone with its user.
    pub fn private() -> Self {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("private-{}-{count}", std::process::id());
        Self { name, port: 0, nodes: 3, linger: Duration::ZERO }
    }

    /// The one that `windlass up` runs.
    pub fn up() -> Self {
        Self { name: UP.to_owned(), port: 0, nodes: 3, linger: Duration::ZERO }
    }
}

/// The name of the instance that `windlass up` runs.
pub const UP: &str = "up";

/// What a running control plane says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Facts {
    /// The instance's name.
    pub name: String,
    /// Its directory, removed at the end.
    pub dir: PathBuf,
    /// The API server's address.
    pub server: String,
    /// A kubeconfig with all rights.
    pub kubeconfig: PathBuf,
    /// Certificates and keys of this instance.
    pub pki: PathBuf,
    /// The API server's audit log.
    pub audit_log: PathBuf,
    /// The components' binaries.
    pub bin: PathBuf,
    /// The API server's version.
    pub version: String,
    /// The supervisor's process.
    pub pid: u32,
}

/// The state of an instance, as its supervisor reports it.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// What it is.
    pub facts: Facts,
    /// How many users it has now.
    #[serde(default)]
    pub users: u32,
    /// Whether it stays without users (`windlass up --detach`).
    #[serde(default)]
    pub keep: bool,
    /// Whether it is up.
    #[serde(default)]
    pub ready: bool,
    /// Seconds since its start.
    #[serde(default)]
    pub seconds: u64,
    /// The components' processes.
    #[serde(default)]
    pub pids: std::collections::BTreeMap<String, u32>,
}

/// A part of the control plane that can be stopped on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Component {
    /// The store.
    Etcd,
    /// The API server.
    ApiServer,
    /// Deployments, garbage collection, namespaces, and so on.
    ControllerManager,
    /// Puts pods on nodes.
    Scheduler,
    /// Plays the nodes and pods.
    Kwok,
}

impl Component {
    /// Its program's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
        }
    }
}

/// What to do with a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Kill it.
    Stop,
    /// Start it again, and wait until it answers.
    Start,
    /// Both.
    Restart,
    /// Freeze it where it is.
    Pause,
    /// Let it go on.
    Continue,
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Start => "start",
            Self::Restart => "restart",
            Self::Pause => "pause",
            Self::Continue => "continue",
        }
    }
}

#[derive(Serialize, Default)]
struct Request<'a> {
    op: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    component: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    action: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    path: &'a str,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Reply {
    error: String,
    progress: String,
    lost: String,
    stopped: bool,
    facts: Option<Facts>,
    users: u32,
    keep: bool,
    ready: bool,
    seconds: u64,
    pids: std::collections::BTreeMap<String, u32>,
}

impl Reply {
    fn into_status(self) -> Status {
        let facts = self.facts.unwrap_or_default();
        Status {
            facts,
            users: self.users,
            keep: self.keep,
            ready: self.ready,
            seconds: self.seconds,
            pids: self.pids,
        }
    }
}

/// One user's hold on a running control plane.
#[derive(Debug)]
pub struct ControlPlane {
    facts: Facts,
    line: Mutex<Line>,
    farewell: Arc<Farewell>,
}

/// How the connection ends: by us, or by a breakdown that has a reason.
#[derive(Debug, Default)]
struct Farewell {
    ours: AtomicBool,
    lost: Mutex<Option<Gone>>,
    waiting: Mutex<Vec<oneshot::Sender<Gone>>>,
}

/// Why a control plane ended while it was in use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gone {
    /// In words.
    pub reason: String,
    /// Whether somebody stopped it; otherwise it broke down.
    pub on_purpose: bool,
}

/// The connection: requests out, replies in. One request at a time.
#[derive(Debug)]
struct Line {
    stream: UnixStream,
    replies: Receiver<Reply>,
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reply").field("error", &self.error).finish_non_exhaustive()
    }
}

impl ControlPlane {
    /// Joins the instance that `options` names, starting it if it does not run.
    ///
    /// Any number of processes may do so at once: the supervisors they start
    /// compete for one lock, and the losers' users join the winner.
    pub fn join(assets: &Assets, options: &Options, reporter: &Reporter) -> Result<Self> {
        let dir = dirs::run()?.join(&options.name);
        let deadline = Instant::now() + LISTEN_DEADLINE;
        let mut child: Option<Child> = None;
        loop {
            match UnixStream::connect(socket(&dir)) {
                Ok(stream) => match Self::attach(stream, reporter) {
                    // It was about to end when we came: the next one is ours.
                    Err(Error::Lost(_)) if Instant::now() < deadline => {
                        thread::sleep(Duration::from_millis(50));
                    }
                    Ok(plane) => {
                        reap(child);
                        return Ok(plane);
                    }
                    Err(error) => {
                        reap(child);
                        return Err(error);
                    }
                },
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                    let ended = match &mut child {
                        None => true,
                        Some(child) => child.try_wait().map_err(Error::file(&assets.supervisor))?.is_some(),
                    };
                    if Instant::now() > deadline {
                        return Err(Error::Start(format!(
                            "its supervisor does not answer; the end of {}:\n{}",
                            dir.join("supervisor.log").display(),
                            tail(&dir.join("supervisor.log"))
                        )));
                    }
                    if ended {
                        child = Some(spawn(assets, options, &dir)?);
                    }
                    thread::sleep(Duration::from_millis(25));
                }
                Err(error) => return Err(Error::file(socket(&dir))(error)),
            }
        }
    }

    fn attach(stream: UnixStream, reporter: &Reporter) -> Result<Self> {
        let (sender, replies) = channel();
        let farewell = Arc::new(Farewell::default());
        let reader = stream.try_clone().map_err(Error::file("the supervisor's socket"))?;
        let line = Line { stream, replies };
        line.send(&Request { op: "attach", ..Request::default() })?;
        let progress = reporter.clone();
        let note = Arc::clone(&farewell);
        thread::spawn(move || read(reader, &sender, &note, &progress));
        match line.replies.recv() {
            Ok(reply) => {
                let facts = reply.into_status().facts;
                Ok(Self { facts, line: Mutex::new(line), farewell })
            }
            Err(_) => Err(match farewell.lost.lock().unwrap_or_else(PoisonError::into_inner).take() {
                Some(gone) if !gone.on_purpose => Error::Start(gone.reason),
                Some(gone) => Error::Lost(gone.reason),
                None => Error::Lost("it ended before it was ready".to_owned()),
            }),
        }
    }

    /// What it is and where.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Why it ended, if it did.
    pub fn lost(&self) -> Option<Gone> {
        self.farewell.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Resolves with the reason when it breaks down or somebody stops it.
    pub fn gone(&self) -> oneshot::Receiver<Gone> {
        let (sender, receiver) = oneshot::channel();
        match self.lost() {
            Some(gone) => {
                let _ = sender.send(gone);
            }
            None => self.farewell.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(sender),
        }
        receiver
    }

    /// Stops, starts or freezes a component; returns when it is done.
    pub fn act(&self, component: Component, action: Action) -> Result<()> {
        self.ask(&Request { op: "component", component: component.name(), action: action.name(), path: "" })
    }

    /// Has the object at `path` (below the API server's root) deleted when this
    /// user goes, however it goes.
    pub fn discard(&self, path: &str) -> Result<()> {
        self.ask(&Request { op: "discard", path, ..Request::default() })
    }

    /// Has it deleted now, without waiting. Best effort, for `Drop`.
    pub fn release(&self, path: &str) {
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = line.send(&Request { op: "release", path, ..Request::default() });
    }

    /// Keeps the instance running without users, until [`shutdown`].
    pub fn keep(&self) -> Result<()> {
        self.ask(&Request { op: "keep", ..Request::default() })
    }

    /// Stops the instance, whoever uses it, and waits until it has ended.
    pub fn shutdown(self) -> Result<()> {
        shutdown(&self.facts.dir)
    }

    fn ask(&self, request: &Request<'_>) -> Result<()> {
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        line.send(request)?;
        match line.replies.recv() {
            Ok(reply) if reply.error.is_empty() => Ok(()),
            Ok(reply) => Err(Error::Refused(reply.error)),
            Err(_) => Err(Error::Lost(
                self.lost().map_or_else(|| "its supervisor has ended".to_owned(), |gone| gone.reason),
            )),
        }
    }
}

impl Drop for ControlPlane {
    /// Leaves. The reading thread has the connection too, so closing our end of it
    /// is not enough.
    fn drop(&mut self) {
        self.farewell.ours.store(true, Ordering::Release);
        let line = self.line.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = line.stream.shutdown(Shutdown::Both);
    }
}

impl Line {
    fn send(&self, request: &Request<'_>) -> Result<()> {
        let mut text = serde_json::to_string(request).map_err(|error| Error::Refused(error.to_string()))?;
        text.push('\n');
        (&self.stream)
            .write_all(text.as_bytes())
            .map_err(|error| Error::Lost(format!("its supervisor has ended ({error})")))
    }
}

/// Sorts what arrives: progress to the reporter, a breakdown to everybody, the
/// rest to whoever asked. Ends with the connection.
fn read(stream: UnixStream, replies: &Sender<Reply>, farewell: &Farewell, reporter: &Reporter) {
    let keep = |gone: Gone| {
        reporter.gone(&gone.reason);
        for waiting in farewell.waiting.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = waiting.send(gone.clone());
        }
        *farewell.lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(gone);
    };
    for line in BufReader::new(stream).lines() {
        let Ok(reply) = line.map(|line| serde_json::from_str::<Reply>(&line).unwrap_or_default()) else {
            return;
        };
        if !reply.progress.is_empty() {
            reporter.line(reply.progress);
        } else if !reply.lost.is_empty() {
            return keep(Gone { reason: reply.lost, on_purpose: reply.stopped });
        } else if replies.send(reply).is_err() {
            return;
        }
    }
    // It says goodbye when it breaks down or is stopped, and ends by itself only without users.
    if !farewell.ours.load(Ordering::Acquire) {
        let reason = "its supervisor has ended without a word (was it killed?)".to_owned();
        keep(Gone { reason, on_purpose: false });
    }
}

fn spawn(assets: &Assets, options: &Options, dir: &Path) -> Result<Child> {
    fs::create_dir_all(dir).map_err(Error::file(dir))?;
    let path = dir.join("supervisor.log");
    let log = OpenOptions::new().create(true).append(true).open(&path).map_err(Error::file(&path))?;
    let log_too = log.try_clone().map_err(Error::file(&path))?;
    Command::new(&assets.supervisor)
        .arg(format!("--name={}", options.name))
        .arg(format!("--dir={}", dir.display()))
        .arg(format!("--bin={}", assets.bin.display()))
        .arg(format!("--port={}", options.port))
        .arg(format!("--nodes={}", options.nodes))
        .arg(format!("--linger={}ms", options.linger.as_millis()))
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(log_too)
        // Ctrl-C at the terminal is for us; we tell the supervisor what it means.
        .process_group(0)
        .spawn()
        .map_err(Error::file(&assets.supervisor))
}

/// Collects the supervisor's exit status when it ends, so that no zombie stays.
fn reap(child: Option<Child>) {
    if let Some(mut child) = child {
        thread::spawn(move || child.wait());
    }
}

fn socket(dir: &Path) -> PathBuf {
    dir.join("s")
}

fn tail(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

/// All instances of this user that answer.
pub fn instances() -> Result<Vec<Status>> {
    let run = dirs::run()?;
    let mut found = Vec::new();
    for entry in fs::read_dir(&run).map_err(Error::file(&run))?.flatten() {
        if let Some(status) = status(&entry.path()) {
            found.push(status);
        }
    }
    found.sort_by(|a, b| a.facts.name.cmp(&b.facts.name));
    Ok(found)
}

/// The instance of that name, if it runs.
pub fn instance(name: &str) -> Result<Option<Status>> {
    Ok(status(&dirs::run()?.join(name)))
}

/// The instance in `dir`, if it runs.
pub fn status(dir: &Path) -> Option<Status> {
    let stream = UnixStream::connect(socket(dir)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    (&stream).write_all(b"{\"op\":\"status\"}\n").ok()?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).ok()?;
    let status = serde_json::from_str::<Reply>(&line).ok()?.into_status();
    Some(status)
}

/// Stops the instance in `dir`, whoever uses it, and waits until it has ended.
pub fn shutdown(dir: &Path) -> Result<()> {
    let Ok(mut stream) = UnixStream::connect(socket(dir)) else {
        return Ok(());
    };
    stream.write_all(b"{\"op\":\"shutdown\"}\n").map_err(Error::file(socket(dir)))?;
    // The end of the connection is the answer.
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
    Ok(())
}
