//! Chores that cargo does not do by itself: `cargo run -p xtask -- <chore>`.

mod arrows;
mod dependencies;
mod docs;
mod links;
mod repeat;
mod static_binary;
mod suites;
mod words;

use std::io::Write as _;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo run -p xtask -- <chore>

Chores:
  arrows [--help]        check that the modules of every crate depend on each other in one direction
  dependencies           check licences and banned crates
  docs                   check the code, the commands and the links of the book
  repeat [--help]        run test binaries many times on a busy machine
  static <package>       build a program without shared libraries, and report its size
  suites                 check that every test file is part of a test binary
  words                  check the width and the summary lines of comments";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let chore = words.next();
    let result = match chore.as_deref() {
        Some("arrows") => arrows::check(words),
        Some("dependencies") => dependencies::check(),
        Some("docs") => docs::check(),
        Some("repeat") => repeat::run(words),
        Some("spin") => repeat::spin(),
        Some("suites") => suites::check(),
        Some("words") => words::check(),
        Some("static") => static_binary::build(words.next()),
        Some("--help" | "-h" | "help") => Ok(USAGE.to_owned()),
        Some(other) => Err(vec![format!("there is no chore {other:?}\n{USAGE}")]),
        None => Err(vec![format!("name a chore\n{USAGE}")]),
    };
    match result {
        Ok(summary) => {
            let _ = writeln!(std::io::stdout(), "{summary}");
            ExitCode::SUCCESS
        }
        Err(complaints) => {
            for complaint in complaints {
                let _ = writeln!(std::io::stderr(), "error: {complaint}");
            }
            ExitCode::FAILURE
        }
    }
}
