//! Runs test binaries many times on a busy machine: `cargo run -p xtask -- repeat`.
//!
//! A test that fails once in twenty runs is a defect of the test or of the product. This chore finds such
//! tests: every test binary of the workspace, or the named ones, runs N times beside processes that keep the
//! processors busy. Each run appends one line to a log file; a later call with the same log continues where
//! the log ends. A log belongs to one state of the code.
//!
//! Documentation tests are not binaries: this chore does not run them.

mod binaries;
mod busy;
mod log;
mod output;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;

pub(crate) use busy::spin;

use binaries::Binary;
use busy::BusyLoops;
use log::{Entry, RunResult};

const EXAMPLES: &str = "\
Examples:
  cargo run -p xtask -- repeat windlass-graph/run      one binary, 20 times
  cargo run -p xtask -- repeat cache_chaos --test seam --times 10
                                                       the tests of one binary that have `seam` in their names
  cargo run -p xtask -- repeat --log before-release.log
                                                       all binaries; call it again to continue

Log lines have six fields, separated by tabs: binary, filter (`*` for none), number of the run, result
(passed, FAILED or HUNG), seconds, and the tests that failed (`-` for none). A log belongs to one state of
the code: begin a new one after a change. The exit code is 1 if any run in the log failed.";

/// Run test binaries many times beside busy loops, and log one line per run
///
/// A test that fails once in many runs is a defect. The machine is kept busy, because most such tests depend
/// on timing. Only the packages of the named binaries are built. Documentation tests are not run.
#[derive(Debug, Parser)]
#[command(name = "cargo run -p xtask -- repeat", no_binary_name = true, after_help = EXAMPLES)]
struct Arguments {
    /// Binaries to run: `package`, `package/target` or `target` [default: all of the workspace]. The target
    /// of unit tests is `lib`, or `bin-<name>` for a program.
    #[arg(value_name = "BINARY")]
    binaries: Vec<String>,
    /// Run only tests whose names contain this text, and only binaries that have such a test
    #[arg(long, value_name = "TEXT")]
    test: Option<String>,
    /// Number of runs per binary, including those that the log already has
    #[arg(long, value_name = "N", default_value_t = 20)]
    times: u32,
    /// Number of busy loops beside the tests
    #[arg(long, value_name = "N", default_value_t = 2)]
    busy: usize,
    /// Log file. The output of every run that fails is kept in the directory `<FILE>.failed`
    #[arg(long, value_name = "FILE", default_value = "target/repeat.log")]
    log: PathBuf,
    /// Time after which a run is ended and counts as hung
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    patience: u64,
    /// Print the runs that are left to do, and run nothing
    #[arg(long)]
    list: bool,
}

/// Runs the binaries that the arguments name. Returns a summary, or the runs that failed.
pub(crate) fn run(words: impl Iterator<Item = String>) -> Result<String, Vec<String>> {
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        // Help is no error, and is printed as it is.
        Err(help) if !help.use_stderr() => return Ok(help.to_string()),
        Err(error) => return Err(vec![error.to_string()]),
    };
    let mut names = binaries::find(&arguments.binaries).map_err(|error| vec![error])?;
    let before = read_log(&arguments.log)?;
    let filter = arguments.test.as_deref().unwrap_or_default();
    // The names of tests are known only to a binary; without a filter, nothing is built just to list runs.
    let mut built = Vec::new();
    if !filter.is_empty() {
        built = binaries::build(&names).map_err(|error| vec![error])?;
        built.retain(|binary| output::names(&list_of(binary)).any(|name| name.contains(filter)));
        if built.is_empty() {
            return Err(vec![format!("no test of these binaries has {filter:?} in its name")]);
        }
        names = built.iter().map(|binary| binary.name.clone()).collect();
    }
    let left = log::left_to_do(&before, &names, filter, arguments.times);
    if arguments.list {
        let lines = left.iter().map(|(name, run)| format!("{name} run {run}"));
        return Ok(lines.chain([format!("{} runs left", left.len())]).collect::<Vec<_>>().join("\n"));
    }
    if built.is_empty() && !left.is_empty() {
        built = binaries::build(&names).map_err(|error| vec![error])?;
    }
    let mut entries = before;
    let busy = BusyLoops::start(arguments.busy).map_err(|error| vec![format!("busy loops: {error}")])?;
    let began = Instant::now();
    for (index, (name, run)) in left.iter().enumerate() {
        let Some(binary) = built.iter().find(|binary| binary.name == *name) else { continue };
        say(&progress(index, left.len(), began.elapsed(), name, *run));
        let entry = run_once(binary, &arguments, *run).map_err(|error| vec![format!("{name}: {error}")])?;
        if entry.outcome != RunResult::Passed {
            say(&format!("  {entry}"));
        }
        append(&arguments.log, &entry)?;
        entries.push(entry);
    }
    drop(busy);
    verdict(&entries, &names, filter, &arguments.log)
}

/// The summary of a log, or a line for each run that failed.
fn verdict(entries: &[Entry], names: &[String], filter: &str, log: &Path) -> Result<String, Vec<String>> {
    let of_these: Vec<&Entry> =
        entries.iter().filter(|entry| names.contains(&entry.binary) && entry.filter == filter).collect();
    let failed: Vec<String> =
        of_these.iter().filter(|entry| entry.outcome != RunResult::Passed).map(ToString::to_string).collect();
    if failed.is_empty() {
        Ok(format!("{} runs of {} binaries, none failed: {}", of_these.len(), names.len(), log.display()))
    } else {
        let kept = failed_directory(log);
        let output = format!("the output of these runs is in {}", kept.display());
        Err(failed.into_iter().chain([output]).collect())
    }
}

/// One line before a run: how many are done, and about how long the rest takes.
fn progress(done: usize, all: usize, elapsed: Duration, name: &str, run: u32) -> String {
    let rest = u32::try_from(done).ok().filter(|done| *done > 0).map(|done| {
        let left = u32::try_from(all).unwrap_or(u32::MAX).saturating_sub(done);
        format!(", about {} min left", (elapsed / done * left).as_secs().div_ceil(60))
    });
    format!("[{}/{all}{}] {name} run {run}", done + 1, rest.unwrap_or_default())
}

fn run_once(binary: &Binary, arguments: &Arguments, run: u32) -> std::io::Result<Entry> {
    let directory = failed_directory(&arguments.log);
    fs::create_dir_all(&directory)?;
    let filter = arguments.test.as_deref().unwrap_or_default();
    let path = directory.join(format!("{}-{run}.txt", binary.name.replace('/', "-")));
    let file = fs::File::create(&path)?;
    let began = Instant::now();
    let mut child = binary
        .command()
        .args(arguments.test.as_deref())
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()?;
    let patience = Duration::from_secs(arguments.patience);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if began.elapsed() > patience {
            child.kill()?;
            child.wait()?;
            break None;
        }
        thread::sleep(Duration::from_millis(50));
    };
    let seconds = began.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
    let (outcome, failed) = match status {
        Some(status) if status.success() => (RunResult::Passed, Vec::new()),
        Some(_) => (RunResult::Failed, output::failed(&text)),
        None => (RunResult::Hung, output::unfinished(&text)),
    };
    if outcome == RunResult::Passed {
        fs::remove_file(&path)?;
        // Fails, and rightly so, if the directory has the output of another run.
        let _ = fs::remove_dir(&directory);
    }
    Ok(Entry { binary: binary.name.clone(), filter: filter.to_owned(), run, outcome, seconds, failed })
}

fn list_of(binary: &Binary) -> String {
    let output = binary.command().args(["--list", "--format", "terse"]).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

fn failed_directory(log: &Path) -> PathBuf {
    let mut directory = log.as_os_str().to_owned();
    directory.push(".failed");
    directory.into()
}

/// The entries of the log. A log that does not exist yet has none.
fn read_log(path: &Path) -> Result<Vec<Entry>, Vec<String>> {
    match fs::read_to_string(path) {
        Ok(text) => log::parse(&text).map_err(|error| vec![format!("{}: {error}", path.display())]),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(vec![format!("{}: {error}", path.display())]),
    }
}

fn append(path: &Path, entry: &Entry) -> Result<(), Vec<String>> {
    let write = || {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        // One call, so that an end in between leaves no half line.
        file.write_all(format!("{entry}\n").as_bytes())
    };
    write().map_err(|error: std::io::Error| vec![format!("{}: {error}", path.display())])
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The cargo that runs this chore.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn entry(binary: &str, run: u32, outcome: RunResult) -> Entry {
        let failed = Vec::new();
        Entry { binary: binary.to_owned(), filter: String::new(), run, outcome, seconds: 1.0, failed }
    }

    #[test]
    fn the_command_line_has_documented_defaults() {
        let none: [&str; 0] = [];
        let arguments = Arguments::try_parse_from(none).unwrap();
        assert_eq!((arguments.times, arguments.busy), (20, 2));
        assert!(arguments.binaries.is_empty() && arguments.test.is_none());
        let help = run(["--help".to_owned()].into_iter()).unwrap();
        assert!(
            help.contains("--times") && help.contains("log one line per run") && help.contains("Examples:"),
            "{help}"
        );
        assert!(run(["--tims".to_owned()].into_iter()).is_err());
    }

    #[test]
    fn the_help_can_be_understood_alone() {
        windlass_operator::check_help(&Arguments::command()).unwrap();
    }

    #[test]
    fn a_failed_run_of_an_earlier_sitting_still_counts() {
        let entries = [entry("a/lib", 1, RunResult::Failed), entry("a/lib", 2, RunResult::Passed)];
        let of = |entries: &[Entry], name: &str| verdict(entries, &[name.to_owned()], "", Path::new("x"));
        let failed = of(&entries, "a/lib").unwrap_err();
        assert_eq!(failed, [entries[0].to_string(), "the output of these runs is in x.failed".to_owned()]);
        assert!(of(&entries[1..], "a/lib").is_ok());
        assert!(of(&entries, "b/lib").is_ok(), "others were not asked for");
    }

    #[test]
    fn progress_estimates_the_rest_from_what_is_done() {
        assert_eq!(progress(0, 40, Duration::ZERO, "a/lib", 1), "[1/40] a/lib run 1");
        let line = progress(10, 40, Duration::from_mins(5), "a/lib", 2);
        assert_eq!(line, "[11/40, about 15 min left] a/lib run 2");
    }
}
