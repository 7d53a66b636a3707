//! Servers that end with the test.

use std::io::{BufRead as _, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// Longest time that a server may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running server. Ended when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    lines: Receiver<String>,
    log: Vec<String>,
    has_children: bool,
}

impl Server {
    /// Starts a server and waits for the line that says it is ready; gives that line. `Err` is what the
    /// server said before it ended.
    pub(crate) fn start(
        command: &mut Command,
        ready: impl Fn(&str) -> bool,
    ) -> Result<(Self, String), String> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let (sender, lines) = mpsc::channel();
        let outputs: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for output in outputs {
            let sender = sender.clone();
            thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    // Nobody listens once the test is over; the pipe is emptied all the same.
                    let _ = sender.send(line);
                }
            });
        }
        drop(sender);
        let mut server = Self { child, lines, log: Vec::new(), has_children: false };
        let deadline = Instant::now() + PATIENCE;
        while let Ok(line) = server.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            server.log.push(line.clone());
            if ready(&line) {
                return Ok((server, line));
            }
        }
        Err(server.log.join("\n"))
    }

    /// The server has processes of its own: it is asked to end them, rather than killed.
    pub(crate) fn with_children(mut self) -> Self {
        self.has_children = true;
        self
    }

    /// All that the server has said.
    pub(crate) fn log(&mut self) -> String {
        self.log.extend(self.lines.try_iter());
        self.log.join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let asked = self.has_children && {
            let kill = format!("kill -s INT {}", self.child.id());
            Command::new("sh").args(["-c", &kill]).status().is_ok_and(|status| status.success())
        };
        if !asked {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Starts something on a free port. Between looking for one and taking it somebody else may: then another is
/// tried.
pub(crate) fn on_free_port<T>(mut start: impl FnMut(u16) -> Result<T, String>) -> (T, u16) {
    let mut last = String::new();
    for _ in 0..5 {
        let port = free_port();
        match start(port) {
            Ok(started) => return (started, port),
            Err(error) => last = error,
        }
    }
    panic!("the server does not start: {last}");
}

/// A port that nobody listens on now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// Returns true if the tests run as root; some servers refuse to do so.
pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;

    std::fs::metadata("/proc/self").unwrap().uid() == 0
}
