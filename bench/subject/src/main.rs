//! The Windlass side of the benchmark: one program, a mode for each workload.
//!
//! It promises what its Go counterpart promises: the same command line, JSON lines on standard output (each
//! with an `event`), the log on standard error, commands on standard input where a mode says so, and an
//! orderly end at SIGTERM. Each mode is written as the author of an operator would write it, with nothing
//! that the crates do not offer to everybody.
//!
//! It reports only figures that the harness cannot measure from outside.

mod api;
mod args;
mod cache;
mod cpu;
mod fanout;
mod latency;
mod life;
mod noop;
mod program;
mod queue;
mod wire;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Mode};

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            wire::complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    windlass_runtime::log::init_with(windlass_runtime::log::Format::Json, "info")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cli.common.threads)
        .enable_all()
        .build()?;
    // As a task, not on this thread: a future in `block_on` runs beside the one worker, and the two threads
    // would wake each other all the time, while Go's goroutines share the one processor that they may use.
    let done = runtime.block_on(runtime.spawn(work(cli)))?;
    // A task may still be blocked in a read of standard input, which cannot be interrupted.
    runtime.shutdown_background();
    done
}

async fn work(cli: Cli) -> anyhow::Result<()> {
    let common = cli.common;
    match cli.mode {
        Mode::Cache(args) => cache::run(&common, &args).await,
        Mode::Noop => noop::run(&common).await,
        Mode::Fanout(args) => fanout::run(&common, &args).await,
        Mode::Life(args) | Mode::Idle(args) => life::run(&common, &args).await,
        Mode::Latency => latency::run(&common).await,
        Mode::Queue => queue::run().await,
        Mode::Version => wire::say(&serde_json::json!({
            "event": "version", "name": "windlass", "version": env!("CARGO_PKG_VERSION"),
            "toolchain": concat!("rustc ", env!("CARGO_PKG_RUST_VERSION")),
        })),
    }
}
