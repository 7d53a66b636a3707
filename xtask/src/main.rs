//! Chores that cargo does not do by itself: `cargo run -p xtask -- <chore>`.

mod arrows;
mod dependencies;
mod docs;
mod repeat;
mod static_binary;
mod suites;

use std::io::Write as _;
use std::process::ExitCode;

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
        Some("static") => static_binary::build(words.next()),
        _ => Err(vec![
            "usage: cargo run -p xtask -- arrows [--help]|dependencies|docs|repeat [--help]|static <package>|suites"
                .to_owned(),
        ]),
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
