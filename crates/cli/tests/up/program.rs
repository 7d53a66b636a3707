//! The `windlass` program with a run directory of its own, and assertions about its output.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// The program with a run directory of its own.
pub(crate) struct Windlass {
    pub(crate) run: tempfile::TempDir,
}

impl Windlass {
    pub(crate) fn new() -> Self {
        // Short: sockets are below it.
        Self { run: tempfile::Builder::new().prefix("wl").tempdir_in("/tmp").unwrap() }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(arguments).env("WINDLASS_RUN_DIR", self.run.path()).env("RUST_BACKTRACE", "1");
        command.env_remove("KUBECONFIG").env_remove("KUBEBUILDER_ASSETS").stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub(crate) fn up(&self) -> PathBuf {
        self.run.path().join("up")
    }

    /// Starts `up` in the foreground, and returns it with its report when it is ready.
    pub(crate) fn foreground(&self, arguments: &[&str]) -> (Child, Value) {
        let all = [&["up", "--output", "json"], arguments].concat();
        let mut child = self.command(&all).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while lines.read_line(&mut line).unwrap() > 0 {
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["event"] == "ready" {
                // Read on, so that the program never waits for us.
                std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
                return (child, event);
            }
            line.clear();
        }
        panic!("{all:?} ended with {:?}", child.wait());
    }
}

impl Drop for Windlass {
    fn drop(&mut self) {
        self.run(&["down", "--all"]);
    }
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[track_caller]
pub(crate) fn assert_succeeds(output: &Output) -> String {
    assert!(output.status.success(), "{}{}", stdout(output), stderr(output));
    stdout(output)
}

/// An error that names its subject, without a panic and without a backtrace.
#[track_caller]
pub(crate) fn assert_fails(output: &Output, code: i32, names: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for name in names {
        assert!(text.contains(name), "{name:?} is not in: {text}");
    }
    assert!(!text.contains("panicked") && !text.to_lowercase().contains("backtrace"), "{text}");
}
