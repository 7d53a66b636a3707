//! Side by side with Go: the same work through a Windlass program and a controller-runtime program, on the
//! same fresh control plane.
//!
//! ```console
//! $ cargo run --release -p bench -- all
//! ```
//!
//! Numbers belong here and not into tests: a test that asserts a time fails on a busy machine. Every run
//! asserts that the measured work is right: the module of each workload lists its guards, and what its
//! figures do not show.
//!
//! In the middle, pure: [`stats`], [`figure`], [`report`], [`table`], [`widgets`]. At the rim: [`plane`] (the
//! control plane), [`programs`] (the subjects), [`proc`] (their CPU and memory, from the kernel),
//! [`admin`] (the requests of the harness to the cluster).

#![allow(clippy::cast_precision_loss)] // figures of a few digits: a double holds them

mod admin;
mod bench;
mod cli;
mod expected;
mod figure;
mod machine;
mod micro;
mod plane;
mod proc;
mod programs;
mod progress;
mod report;
mod soak;
mod stats;
mod stub_cluster;
mod subject;
mod table;
mod w1;
mod w10;
mod w2;
mod w3;
mod w4;
mod w5;
mod w6;
mod w9;
mod widgets;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match cli::run(&cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
