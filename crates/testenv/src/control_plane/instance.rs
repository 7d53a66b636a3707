//! Instances: those to start, and those that run.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::facts::Status;
use super::line::Reply;
use crate::assets::Assets;
use crate::dirs;
use crate::error::{Error, Result};

/// Options for starting a control plane that does not run yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The instance: those of one name share one control plane.
    pub name: String,
    /// The API server's port; 0 picks a free one.
    pub port: u16,
    /// The number of KWOK nodes.
    pub nodes: u16,
    /// The time for which the control plane stays after its last user has gone.
    pub linger: Duration,
    /// Run commands of `exec` into a pod, on this machine and with the rights of this process, in a directory
    /// that is removed with the instance.
    pub exec: bool,
}

impl Options {
    /// The control plane that all tests of these binaries share. It lingers for a
    /// minute, or as many seconds as `WINDLASS_TEST_LINGER` says.
    pub fn shared(assets: &Assets) -> Self {
        let name = format!("shared-{}", assets.id);
        let chosen = std::env::var("WINDLASS_TEST_LINGER").ok().and_then(|seconds| seconds.parse().ok());
        Self { name, port: 0, nodes: 3, linger: Duration::from_secs(chosen.unwrap_or(60)), exec: false }
    }

    /// A control plane of one's own, gone with its user.
    pub fn private() -> Self {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("private-{}-{count}", std::process::id());
        Self { name, port: 0, nodes: 3, linger: Duration::ZERO, exec: false }
    }

    /// The one that `windlass up` runs.
    pub fn up() -> Self {
        Self { name: UP.to_owned(), port: 0, nodes: 3, linger: Duration::ZERO, exec: false }
    }
}

/// The number of private control planes that run on a machine at the same time, unless
/// `WINDLASS_TEST_PRIVATE` sets another.
///
/// Each takes about 0.8 GB of memory, and the processors for some seconds while it starts; after that it
/// mostly waits.
pub const PRIVATE_AT_A_TIME: usize = 3;

/// The name of the instance that `windlass up` runs.
pub const UP: &str = "up";

/// All running instances of this user.
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

/// Stops the instance in `dir`, even if it has users, and waits until it has ended.
pub fn shutdown(dir: &Path) -> Result<()> {
    let Ok(mut stream) = UnixStream::connect(socket(dir)) else {
        return Ok(());
    };
    stream.write_all(b"{\"op\":\"shutdown\"}\n").map_err(Error::file(socket(dir)))?;
    // The end of the connection is the answer.
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
    Ok(())
}

/// The path of the supervisor's socket, for the instance in `dir`.
pub(super) fn socket(dir: &Path) -> PathBuf {
    dir.join("s")
}
