//! A running control plane, and the line to the supervisor that owns it.
//!
//! The supervisor counts the open connections on its unix socket; a
//! [`ControlPlane`] is one of them. When it is dropped, or its process is killed,
//! the connection closes, and after the last one the supervisor lingers a while,
//! stops every component and removes its data.
//!
//! Everything here blocks: it is called from `spawn_blocking` or from a program's
//! main thread.

mod component;
mod directory;
mod facts;
mod instance;
mod line;

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub use component::{Action, Component};
pub use facts::{Facts, Status};
pub use instance::{Options, PRIVATE_AT_A_TIME, UP, instance, instances, shutdown, status};
pub use line::Gone;

use crate::assets::Assets;
use crate::dirs;
use crate::error::{Error, Result};
use crate::progress::Reporter;
use instance::socket;
use line::{Line, Request};

/// The time that a supervisor may take from its start until it listens.
const LISTEN_DEADLINE: Duration = Duration::from_secs(20);

/// One user's hold on a running control plane.
#[derive(Debug)]
pub struct ControlPlane {
    facts: Facts,
    line: Mutex<Line>,
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
                Ok(stream) => match Line::attach(stream, reporter) {
                    // It was about to end when we came: the next one is ours.
                    Err(Error::Lost(_)) if Instant::now() < deadline => {
                        thread::sleep(Duration::from_millis(50));
                    }
                    attached => {
                        reap(child);
                        return attached.map(|(line, facts)| Self { facts, line: Mutex::new(line) });
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
                            dir.join(directory::LOG).display(),
                            tail(&dir.join(directory::LOG))
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

    /// Facts about the control plane: its address and its files.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Resolves with the reason when the control plane breaks down or is stopped. Cancel safe.
    pub fn gone(&self) -> impl Future<Output = Gone> + Send + 'static {
        let mut gone = self.line().watch();
        async move {
            // An error means that this process is disconnecting: no message will arrive any more.
            let reason = gone.wait_for(Option::is_some).await.map(|reason| reason.clone());
            reason.ok().flatten().unwrap_or_default()
        }
    }

    /// Stops, starts or freezes a component; returns when it is done.
    pub fn act(&self, component: Component, action: Action) -> Result<()> {
        self.line().ask(&Request {
            op: "component",
            component: component.name(),
            action: action.name(),
            path: "",
        })
    }

    /// Has the object at `path` (below the API server's root) deleted when this
    /// user goes, however it goes.
    pub fn discard(&self, path: &str) -> Result<()> {
        self.line().ask(&Request { op: "discard", path, ..Request::default() })
    }

    /// Has it deleted now, without waiting. Best effort, for `Drop`.
    pub fn release(&self, path: &str) {
        let _ = self.line().send(&Request { op: "release", path, ..Request::default() });
    }

    /// Keeps the instance running without users, until [`shutdown`].
    pub fn keep(&self) -> Result<()> {
        self.line().ask(&Request { op: "keep", ..Request::default() })
    }

    /// Stops the instance, even if it has users, and waits until it has ended.
    pub fn shutdown(self) -> Result<()> {
        shutdown(&self.facts.dir)
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn spawn(assets: &Assets, options: &Options, dir: &Path) -> Result<Child> {
    directory::claim(dir)?;
    let path = dir.join(directory::LOG);
    let log = OpenOptions::new().create(true).append(true).open(&path).map_err(Error::file(&path))?;
    let log_too = log.try_clone().map_err(Error::file(&path))?;
    Command::new(&assets.supervisor)
        .arg(format!("--name={}", options.name))
        .arg(format!("--dir={}", dir.display()))
        .arg(format!("--bin={}", assets.bin.display()))
        .arg(format!("--port={}", options.port))
        .arg(format!("--nodes={}", options.nodes))
        .arg(format!("--linger={}ms", options.linger.as_millis()))
        .arg(format!("--exec={}", options.exec))
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

fn tail(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}
