//! The protocol with the harness: events out, commands in.

use std::io::{BufRead as _, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tokio::sync::mpsc;

/// Says one thing: a line of JSON on standard output.
pub(crate) fn say(event: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_string(event)?;
    line.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes())?;
    Ok(out.flush()?)
}

/// Says on standard error what went wrong.
pub(crate) fn complain(what: &str) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// The commands on standard input, until it is closed. Read by a thread of its own: nothing interrupts a
/// read.
pub(crate) fn commands() -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.send(line.trim().to_owned()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// The time, in nanoseconds since 1970.
pub(crate) fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
