//! Measurements of the runtime, one command each:
//!
//! ```console
//! $ cargo run --release -p bench -- all
//! ```
//!
//! Numbers belong here and not into tests: a test that asserts a time fails on a busy
//! machine. Each workload checks that what it measured is also right.

#![allow(clippy::cast_precision_loss)] // figures of a few digits: a double holds them

mod decode;
mod fixture;
mod idle;
mod memory;
mod process;
mod reconcile;
mod server;

use std::io::Write as _;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// To compare: `--features mimalloc`. The default is the system's allocator, which measured better
/// for what an operator does: shapes leave little to allocate.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures the runtime.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Subcommand)]
enum Workload {
    /// Resident memory per cached Pod: a shape, metadata only, and the whole object
    Memory {
        /// How many Pods
        #[arg(long, default_value_t = 10_000)]
        objects: usize,
    },
    /// CPU per decoded event of a 10 KB Pod
    Decode,
    /// Reconciles per second that do nothing
    Reconcile {
        /// How many keys are sent
        #[arg(long, default_value_t = 2_000_000)]
        keys: usize,
    },
    /// Resident memory of an operator with one controller that has nothing to do
    Idle,
    /// All of them, as a table
    All,
    /// A fresh process for one row of `memory` (used by it)
    #[command(hide = true)]
    MemoryRow {
        #[arg(value_enum)]
        form: memory::Form,
        url: String,
        objects: usize,
    },
    /// A fresh process for `idle` (used by it)
    #[command(hide = true)]
    IdleRow { url: String },
    /// An API server with Pods to list (used by `memory` and `idle`)
    #[command(hide = true)]
    Serve { objects: usize },
}

fn main() -> Result<()> {
    match Cli::parse().workload {
        Workload::Memory { objects } => print(&memory::measure(objects)?),
        Workload::Decode => print(&decode::measure()?),
        Workload::Reconcile { keys } => print(&reconcile::measure(keys)?),
        Workload::Idle => print(&idle::measure()?),
        Workload::All => {
            let mut rows = memory::measure(10_000)?;
            rows.extend(decode::measure()?);
            rows.extend(reconcile::measure(2_000_000)?);
            rows.extend(idle::measure()?);
            print(&rows);
        }
        Workload::MemoryRow { form, url, objects } => memory::row(form, &url, objects)?,
        Workload::IdleRow { url } => idle::row(&url)?,
        Workload::Serve { objects } => server::serve(objects)?,
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

/// For processes that are read by another.
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
