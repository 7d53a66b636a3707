//! The line to the supervisor: one JSON object a line, in both directions.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::facts::{Facts, Status};
use crate::error::{Error, Result};
use crate::progress::Reporter;

#[derive(Serialize, Default)]
pub(super) struct Request<'a> {
    pub(super) op: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) component: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) action: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) path: &'a str,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Reply {
    pub(super) error: String,
    progress: String,
    lost: String,
    stopped: bool,
    facts: Option<Facts>,
    users: u32,
    keep: bool,
    ready: bool,
    seconds: u64,
    pids: BTreeMap<String, u32>,
}

impl Reply {
    pub(super) fn into_status(self) -> Status {
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

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reply").field("error", &self.error).finish_non_exhaustive()
    }
}

/// The reason why a control plane ended while it was in use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gone {
    /// The reason, in words.
    pub reason: String,
    /// True if the control plane was stopped on request; false if it broke down.
    pub on_purpose: bool,
}

/// The connection: requests out, replies in. One request at a time.
#[derive(Debug)]
pub(super) struct Line {
    stream: UnixStream,
    replies: Receiver<Reply>,
    end: Arc<End>,
}

/// The end of the connection: by this side, or by the supervisor.
#[derive(Debug, Default)]
struct End {
    /// We are counted as a user of a control plane that is up.
    attached: AtomicBool,
    /// We are leaving.
    ours: AtomicBool,
    /// The supervisor has gone, for this reason.
    gone: watch::Sender<Option<Gone>>,
}

impl Line {
    /// Becomes a user, and waits until the control plane is up.
    pub(super) fn attach(stream: UnixStream, reporter: &Reporter) -> Result<(Self, Facts)> {
        let (sender, replies) = channel();
        let end = Arc::new(End::default());
        let reader = stream.try_clone().map_err(Error::file("the supervisor's socket"))?;
        let line = Self { stream, replies, end: Arc::clone(&end) };
        line.send(&Request { op: "attach", ..Request::default() })?;
        let progress = reporter.clone();
        thread::spawn(move || read(reader, &sender, &end, &progress));
        match line.replies.recv() {
            Ok(reply) => {
                line.end.attached.store(true, Ordering::Release);
                Ok((line, reply.into_status().facts))
            }
            Err(_) => Err(match line.gone() {
                Some(gone) if !gone.on_purpose => Error::Start(gone.reason),
                _ => Error::Lost("it ended before it was up".to_owned()),
            }),
        }
    }

    /// Sends a request that has no reply.
    pub(super) fn send(&self, request: &Request<'_>) -> Result<()> {
        let mut text = serde_json::to_string(request).map_err(|error| Error::Refused(error.to_string()))?;
        text.push('\n');
        (&self.stream)
            .write_all(text.as_bytes())
            .map_err(|error| Error::Lost(format!("its supervisor has ended ({error})")))
    }

    /// Sends a request and waits until it is done.
    pub(super) fn ask(&self, request: &Request<'_>) -> Result<()> {
        self.send(request)?;
        match self.replies.recv() {
            Ok(reply) if reply.error.is_empty() => Ok(()),
            Ok(reply) => Err(Error::Refused(reply.error)),
            Err(_) => Err(Error::Lost(
                self.gone().map_or_else(|| "its supervisor has ended".to_owned(), |gone| gone.reason),
            )),
        }
    }

    /// Why the control plane ended, if it did.
    fn gone(&self) -> Option<Gone> {
        self.end.gone.borrow().clone()
    }

    /// Changes when the control plane has ended.
    pub(super) fn watch(&self) -> watch::Receiver<Option<Gone>> {
        self.end.gone.subscribe()
    }
}

impl Drop for Line {
    /// Leaves. The reading thread has the connection too, so closing our end of it
    /// is not enough.
    fn drop(&mut self) {
        self.end.ours.store(true, Ordering::Release);
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Dispatches received messages: progress to the reporter, the end of the control plane to all, and replies
/// to their callers. Ends with the connection.
fn read(stream: UnixStream, replies: &Sender<Reply>, end: &End, reporter: &Reporter) {
    let part = |gone: Gone| {
        // Before that, it is an error of the attempt.
        if end.attached.load(Ordering::Acquire) {
            reporter.gone(&gone.reason);
        }
        end.gone.send_replace(Some(gone));
    };
    for line in BufReader::new(stream).lines() {
        let Ok(reply) = line.map(|line| serde_json::from_str::<Reply>(&line).unwrap_or_default()) else {
            break;
        };
        if !reply.progress.is_empty() {
            reporter.line(reply.progress);
        } else if !reply.lost.is_empty() {
            return part(Gone { reason: reply.lost, on_purpose: reply.stopped });
        } else if replies.send(reply).is_err() {
            return;
        }
    }
    // It says goodbye when it breaks down or is stopped, and ends by itself only without users.
    if end.attached.load(Ordering::Acquire) && !end.ours.load(Ordering::Acquire) {
        let reason = "its supervisor has ended without a word (was it killed?)".to_owned();
        part(Gone { reason, on_purpose: false });
    }
}
