//! Replays `docs/getting-started.md`: every command of the page runs, in the order of the page, in one shell,
//! and prints what the page shows.
//!
//! In the page, a line of a `console` block that begins with `$ ` is a command, and the lines below it are
//! its output. Output is compared word by word: `…` stands for any words, on a line by itself for any lines,
//! and ages such as `5s` may differ. A command fails if and only if the page shows an error. `kubectl get` is
//! repeated until its output is as shown. Comments in the page direct the rest:
//!
//! - `<!-- all of: examples/game/<path> -->`: the block below is written to `<path>`.
//! - `<!-- replay: in the background until "<text>" -->`: the command below keeps running.
//! - `<!-- replay: interrupt -->`: the last of these commands gets Ctrl-C.
//! - `<!-- replay: skip, <reason> -->`: the block below is not replayed.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Time limit for one command: the first one compiles the dependencies of a project.
const COMMAND: Duration = Duration::from_mins(15);
/// Time limit for output to become as shown.
const OUTPUT: Duration = Duration::from_mins(1);

/// An action of the page.
#[derive(Debug, PartialEq)]
enum Action {
    Run { line: usize, command: String, output: String },
    Background { line: usize, command: String, until: String },
    Interrupt,
    Write { path: String, text: String },
}

/// Returns the actions of a page.
fn actions(page: &str) -> Vec<Action> {
    let lines: Vec<&str> = page.lines().collect();
    let mut actions = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let above = at.checked_sub(1).map_or("", |above| lines[above]);
        let directive = |name: &str| above.strip_prefix(name)?.strip_suffix(" -->");
        let start = at + 1;
        match lines[at] {
            "<!-- replay: interrupt -->" => actions.push(Action::Interrupt),
            opening @ ("```console" | "```rust") => {
                at += 1 + lines[start..].iter().position(|line| *line == "```").unwrap();
                let block = &lines[start..at];
                if let Some(path) = directive("<!-- all of: examples/game/") {
                    actions.push(Action::Write { path: path.to_owned(), text: block.join("\n") + "\n" });
                } else if opening == "```console" && directive("<!-- replay: skip, ").is_none() {
                    let until = directive("<!-- replay: in the background until \"")
                        .map(|text| text.trim_end_matches('"'));
                    commands(start, block, until, &mut actions);
                }
            }
            _ => {}
        }
        at += 1;
    }
    actions
}

/// Adds the commands of one block.
fn commands(start: usize, block: &[&str], until: Option<&str>, actions: &mut Vec<Action>) {
    for (at, line) in block.iter().enumerate() {
        let Some(command) = line.strip_prefix("$ ") else { continue };
        let (line, command) = (start + at + 1, command.to_owned());
        let rest = block[at + 1..].iter();
        let output: Vec<&str> = rest.copied().take_while(|line| !line.starts_with("$ ")).collect();
        actions.push(match until {
            Some(until) => Action::Background { line, command, until: until.to_owned() },
            None => Action::Run { line, command, output: output.join("\n") },
        });
    }
}

/// Returns true if the output is what the page shows.
fn is_as_shown(shown: &str, output: &str) -> bool {
    fn lines_match(shown: &[Vec<&str>], output: &[Vec<&str>]) -> bool {
        match shown.split_first() {
            None => output.is_empty(),
            Some((line, rest)) if line == &["…"] => {
                (0..=output.len()).any(|skip| lines_match(rest, &output[skip..]))
            }
            Some((line, rest)) => output
                .split_first()
                .is_some_and(|(first, others)| words_match(line, first) && lines_match(rest, others)),
        }
    }
    fn words_match(shown: &[&str], output: &[&str]) -> bool {
        match shown.split_first() {
            None => output.is_empty(),
            Some((&"…", rest)) => (0..=output.len()).any(|skip| words_match(rest, &output[skip..])),
            Some((word, rest)) => output.split_first().is_some_and(|(first, others)| {
                (word == first || is_age(word) && is_age(first)) && words_match(rest, others)
            }),
        }
    }
    fn is_age(word: &str) -> bool {
        word.strip_suffix('s')
            .is_some_and(|age| age.bytes().all(|byte| byte.is_ascii_digit() || byte == b'm'))
    }
    fn split(text: &str) -> Vec<Vec<&str>> {
        text.trim().lines().map(|line| line.split_whitespace().collect()).collect()
    }
    lines_match(&split(shown), &split(output))
}

/// Returns true if the page shows an error.
fn shows_error(shown: &str) -> bool {
    shown.lines().any(|line| line.starts_with("Error from server") || line.starts_with("error: "))
}

/// A shell with a directory of its own, in which `windlass` is the program of this workspace.
struct Shell {
    bash: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    directory: PathBuf,
    run: tempfile::TempDir,
    background: Vec<(String, PathBuf)>,
}

const END: &str = "end of a command, with status ";

impl Shell {
    fn new() -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("getting-started");
        let _ = fs::remove_dir_all(&directory);
        let programs = directory.join("bin");
        fs::create_dir_all(&programs).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_windlass"), programs.join("windlass")).unwrap();
        // Short: sockets are below it.
        let run = tempfile::Builder::new().prefix("wl").tempdir_in("/tmp").unwrap();
        let mut bash = Command::new("bash");
        // Without the variables of the Cargo that runs this test.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_"))
        {
            if name != "CARGO_HOME" {
                bash.env_remove(name);
            }
        }
        bash.env_remove("LD_LIBRARY_PATH").env_remove("KUBECONFIG");
        bash.env("WINDLASS_RUN_DIR", run.path())
            .env("CARGO_NET_OFFLINE", "true")
            .env("CARGO_INCREMENTAL", "0");
        // The dependencies of a project are those of this workspace, which are built already.
        bash.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap());
        bash.current_dir(&directory).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut bash = bash.spawn().unwrap();
        let input = bash.stdin.take().unwrap();
        let output = BufReader::new(bash.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok());
        });
        let mut shell = Self { bash, input, lines, directory, run, background: Vec::new() };
        // With job control, a command in the background can be interrupted with its children.
        shell.run("exec 2>&1; set -m; export PATH=\"$PWD/bin:$PATH\"");
        let (succeeded, built) = shell.run("windlass testenv build");
        assert!(succeeded, "{built}");
        let bin = built.trim().rsplit(' ').next().unwrap().to_owned();
        shell.run(&format!("export PATH=\"$PATH:{bin}\""));
        shell
    }

    /// Runs a command, and returns whether it succeeded, and its output.
    fn run(&mut self, command: &str) -> (bool, String) {
        writeln!(self.input, "{{ {command}\n}} </dev/null; printf '\\n{END}%s\\n' $?").unwrap();
        let mut output = String::new();
        loop {
            let line = self
                .lines
                .recv_timeout(COMMAND)
                .unwrap_or_else(|error| panic!("{command}: {error}\n{output}"));
            if let Some(status) = line.strip_prefix(END) {
                return (status == "0", output);
            }
            output.push_str(&line);
            output.push('\n');
        }
    }

    /// Runs a command of the page until its output is as shown.
    fn replay(&mut self, line: usize, command: &str, shown: &str) {
        let deadline = Instant::now() + OUTPUT;
        loop {
            let (succeeded, output) = self.run(command);
            let as_expected = succeeded != shows_error(shown);
            if as_expected && (shown.is_empty() || is_as_shown(shown, &output)) {
                return;
            }
            let again = command.starts_with("kubectl get") && Instant::now() < deadline;
            assert!(again, "line {line}: {command}\nshown:\n{shown}\n\nprinted:\n{output}");
            std::thread::yield_now();
        }
    }

    /// Starts a command that keeps running, and waits for a text in its output.
    fn start(&mut self, line: usize, command: &str, until: &str) {
        let log = self.directory.join(format!("line-{line}.log"));
        let started = format!("{command} >'{}' 2>&1 &", log.display());
        self.run(&started);
        let pid = self.run("echo $!").1.trim().to_owned();
        let deadline = Instant::now() + COMMAND;
        while !fs::read_to_string(&log).unwrap_or_default().contains(until) {
            let printed = || fs::read_to_string(&log).unwrap_or_default();
            assert!(
                Path::new("/proc").join(&pid).exists(),
                "line {line}: {command} has ended: {}",
                printed()
            );
            assert!(Instant::now() < deadline, "line {line}: {command}: {}", printed());
            std::thread::yield_now();
        }
        self.background.push((pid, log));
    }

    /// Presses Ctrl-C for the last command in the background, and waits until it has ended.
    fn interrupt(&mut self) {
        let (pid, log) = self.background.pop().unwrap();
        let ended = self.run(&format!("kill -INT -- -{pid}; wait {pid}"));
        assert!(ended.0, "{}", fs::read_to_string(log).unwrap());
    }

    /// Puts the lock file of this workspace into a new project: its versions are there without a network.
    fn lock_versions(&mut self, project: &str) {
        let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock").canonicalize().unwrap();
        assert!(self.run(&format!("cp '{}' {project}/", lock.display())).0);
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        while let Some((pid, _)) = self.background.pop() {
            let _ = Command::new("kill").args(["-INT", "--", &format!("-{pid}")]).status();
        }
        let mut down = Command::new(env!("CARGO_BIN_EXE_windlass"));
        let _ = down.args(["down", "--all"]).env("WINDLASS_RUN_DIR", self.run.path()).output();
        let _ = self.bash.kill();
        let _ = self.bash.wait();
    }
}

#[test]
fn every_command_of_getting_started_prints_what_the_page_shows() {
    let actions = actions(include_str!("../../../docs/getting-started.md"));
    assert!(actions.len() > 20, "the page has only {} actions", actions.len());
    let mut shell = Shell::new();
    for action in actions {
        match action {
            Action::Run { line, command, output } => {
                shell.replay(line, &command, &output);
                if let Some(words) = command.strip_prefix("windlass new operator ") {
                    shell.lock_versions(words.split(' ').next().unwrap());
                }
            }
            Action::Background { line, command, until } => shell.start(line, &command, &until),
            Action::Interrupt => shell.interrupt(),
            Action::Write { path, text } => {
                let directory = PathBuf::from(shell.run("pwd").1.trim());
                fs::write(directory.join(path), text).unwrap();
            }
        }
    }
}

#[test]
fn a_page_is_read_as_commands_files_and_directions() {
    let page = "# Page\n```console\n$ ls\na b\n\nc\n$ cd x\n```\n<!-- replay: skip, too slow -->\n```console\n$ rm\n```\n\
                <!-- all of: examples/game/src/a.rs -->\n```rust\nfn a() {}\n```\n<!-- from: b.rs -->\n```rust\nb\n```\n\
                <!-- replay: in the background until \"ready\" -->\n```console\n$ up\n```\n<!-- replay: interrupt -->\n";
    let run = |line, command: &str, output: &str| Action::Run {
        line,
        command: command.into(),
        output: output.into(),
    };
    assert_eq!(
        actions(page),
        [
            run(3, "ls", "a b\n\nc"),
            run(7, "cd x", ""),
            Action::Write { path: "src/a.rs".into(), text: "fn a() {}\n".into() },
            Action::Background { line: 23, command: "up".into(), until: "ready".into() },
            Action::Interrupt,
        ]
    );
}

#[test]
fn output_may_differ_in_ages_spaces_and_left_out_words_only() {
    assert!(is_as_shown("NAME   AGE\nweb    5s", "NAME AGE\nweb 2m10s\n"));
    assert!(is_as_shown("a … d\n…\nlast", "a b c d\nx\ny\nlast\n"));
    assert!(!is_as_shown("NAME AGE\nweb 5s", "NAME AGE\nweb 5s\nother 5s\n"));
    assert!(!is_as_shown("web Running 5s", "web Failed 5s"));
    assert!(shows_error("Error from server (Forbidden): no") && !shows_error("no Error from server"));
}
