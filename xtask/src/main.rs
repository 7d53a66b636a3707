//! Chores that cargo does not do by itself: `cargo run -p xtask -- <chore>`.

mod dependencies;
mod docs;

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let chore = std::env::args().nth(1);
    let result = match chore.as_deref() {
        Some("dependencies") => dependencies::check(),
        Some("docs") => docs::check(),
        _ => Err(vec!["usage: cargo run -p xtask -- dependencies|docs".to_owned()]),
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
