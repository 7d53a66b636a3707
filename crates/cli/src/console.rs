//! What the program shows: a spinner and a bar on a terminal, plain lines
//! elsewhere, one JSON object a line for machines.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use windlass_testenv::{Progress, Reporter};

use crate::failure::Failure;
use crate::output::Output;

/// Where progress and results go.
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

    /// Shows the steps of long work.
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
            // It ends the program, with an error of its own.
            (_, Progress::Gone(_)) => {}
            (None, Progress::Line(line)) => self.event("step", json!({"message": line})),
            (None, Progress::Building { done, total, elapsed }) => {
                self.event("building", json!({"done": done, "total": total, "seconds": elapsed.as_secs()}));
            }
        }
    }

    /// A headline for what begins now.
    pub(crate) fn heading(&self, text: &str) {
        match (&self.bar, self.output) {
            (Some(bar), _) => bar.println(text),
            (None, Output::Human) => say(text),
            (None, Output::Json) => {}
        }
    }

    /// A step that is done.
    pub(crate) fn line(&self, text: &str) {
        match (&self.bar, self.output) {
            (Some(bar), _) => bar.println(format!("  {text}")),
            (None, Output::Human) => say(&format!("  {text}")),
            (None, Output::Json) => self.event("step", json!({"message": text})),
        }
    }

    /// A result: text for people, a named object for machines.
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

/// What shows that work goes on between two lines.
fn spinner() -> ProgressStyle {
    ProgressStyle::with_template("  {spinner} {elapsed}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// A result line. A closed pipe is no failure of ours.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Errors go to standard error, whatever the output.
pub(crate) fn complain(failure: &Failure) {
    say(&format!("error: {}", failure.text()));
}
