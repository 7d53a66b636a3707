//! Measurements of the runtime alone, without a cluster and without Go: memory per Pod, decoding,
//! reconciling, idling.
//!
//! Promises: figures of one part at a time, in a minute, for the developers of that part. Each measurement
//! also checks that the measured work is right. It does not compare with other runtimes.

mod decode;
mod fixture;
mod idle;
mod memory;
mod process;
mod reconcile;
mod server;

use std::io::Write as _;

use anyhow::Result;
use clap::Subcommand;

/// One part of the runtime.
#[derive(Debug, Subcommand)]
pub(crate) enum Micro {
    /// Measure resident memory per cached Pod: a shape, metadata only, and the whole object
    Memory {
        /// Number of Pods to cache
        #[arg(long, default_value_t = 10_000)]
        objects: usize,
    },
    /// Measure CPU per decoded event of a 10 KB Pod
    Decode,
    /// Measure reconciles per second that do nothing
    Reconcile {
        /// Number of keys to send
        #[arg(long, default_value_t = 2_000_000)]
        keys: usize,
    },
    /// Measure resident memory of an operator with one controller that has nothing to do
    Idle,
    /// Run all measurements and print a table
    All,
    /// Measure one row of `memory` in a fresh process (used by it)
    #[command(hide = true)]
    MemoryRow {
        #[arg(value_enum)]
        form: memory::Form,
        url: String,
        objects: usize,
    },
    /// Measure `idle` in a fresh process (used by it)
    #[command(hide = true)]
    IdleRow { url: String },
    /// Serve an API with Pods to list (used by `memory` and `idle`)
    #[command(hide = true)]
    Serve { objects: usize },
}

pub(crate) fn run(micro: &Micro) -> Result<()> {
    match micro {
        Micro::Memory { objects } => print(&memory::measure(*objects)?),
        Micro::Decode => print(&decode::measure()?),
        Micro::Reconcile { keys } => print(&reconcile::measure(*keys)?),
        Micro::Idle => print(&idle::measure()?),
        Micro::All => {
            let mut rows = memory::measure(10_000)?;
            rows.extend(decode::measure()?);
            rows.extend(reconcile::measure(2_000_000)?);
            rows.extend(idle::measure()?);
            print(&rows);
        }
        Micro::MemoryRow { form, url, objects } => memory::row(*form, url, *objects)?,
        Micro::IdleRow { url } => idle::row(url)?,
        Micro::Serve { objects } => server::serve(*objects)?,
    }
    Ok(())
}

/// One measured figure.
struct Row {
    what: String,
    figure: String,
}

impl Row {
    fn new(what: impl Into<String>, figure: impl Into<String>) -> Self {
        Self { what: what.into(), figure: figure.into() }
    }
}

/// Prints a line for another process to read, and flushes it.
fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

fn print(rows: &[Row]) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "| what | figure |\n| --- | ---: |");
    for row in rows {
        let _ = writeln!(out, "| {} | {} |", row.what, row.figure);
    }
}
