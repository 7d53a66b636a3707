//! Output of the program: a spinner and a progress bar on a terminal, plain lines elsewhere, one JSON object
//! per line for machines.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use windlass_testenv::{Progress, Reporter};

use crate::failure::Failure;
use crate::output::Output;

/// Writes progress and results in the format of `--output`.
#[derive(Clone)]
pub(crate) struct Console {
    output: Output,
    bar: Option<Arc<ProgressBar>>,
}

impl Console {
    pub(crate) fn new(output: Output) -> Self {
        let bar = (output == Output::Human && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new_spinner().with_style(spinner());
            bar.enable_steady_tick(Duration::from_millis(100));
            Arc::new(bar)
        });
        Self { output, bar }
    }

    /// Returns a reporter that shows the progress of long operations.
    pub(crate) fn reporter(&self) -> Reporter {
        if self.output == Output::Human && self.bar.is_none() {
            let plain = Reporter::throttled(|line| {
                let _ = writeln!(std::io::stderr().lock(), "  {line}");
            });
            return plain;
        }
        let console = self.clone();
        Reporter::new(move |step| console.show(step))
    }

    fn show(&self, step: Progress) {
        match (&self.bar, step) {
            (Some(bar), Progress::Line(line)) => {
                bar.set_style(spinner());
                bar.println(format!("  {line}"));
            }
            (Some(bar), Progress::Building { done, total, elapsed }) => {
                if let Ok(style) = ProgressStyle::with_template("  {bar:40} {pos}/{len} packages, {msg}") {
                    bar.set_style(style);
                }
                bar.set_length(total);
                bar.set_position(done);
                bar.set_message(format!("{} s", elapsed.as_secs()));
            }
            // The program ends then, with an error message.
            (_, Progress::Gone(_)) => {}
            (None, Progress::Line(line)) => self.event("step", json!({"message": line})),
            (None, Progress::Building { done, total, elapsed }) => {
                self.event("building", json!({"done": done, "total": total, "seconds": elapsed.as_secs()}));
            }
        }
    }

    /// Prints the heading of the next phase.
    pub(crate) fn heading(&self, text: &str) {
        match (&self.bar, self.output) {
            (Some(bar), _) => bar.println(text),
            (None, Output::Human) => print_to_stderr(text),
            (None, Output::Json) => {}
        }
    }

    /// Prints a step that was completed.
    pub(crate) fn line(&self, text: &str) {
        match (&self.bar, self.output) {
            (Some(bar), _) => bar.println(format!("  {text}")),
            (None, Output::Human) => print_to_stderr(&format!("  {text}")),
            (None, Output::Json) => self.event("step", json!({"message": text})),
        }
    }

    /// Prints a result: text for people, a named object for machines.
    pub(crate) fn result(&self, name: &str, object: Value, text: &str) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        match self.output {
            Output::Human => print(text),
            Output::Json => self.event(name, object),
        }
    }

    fn event(&self, name: &str, mut object: Value) {
        if self.output == Output::Json {
            object["event"] = name.into();
            print(&object.to_string());
        }
    }
}

/// Style of the spinner that is shown while a step takes time.
fn spinner() -> ProgressStyle {
    ProgressStyle::with_template("  {spinner} {elapsed}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// Prints a result. A closed pipe is not an error.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}

fn print_to_stderr(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints an error to standard error, whatever the output format.
pub(crate) fn print_error(failure: &Failure) {
    print_to_stderr(&format!("error: {}", failure.text()));
}
