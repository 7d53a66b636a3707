//! The command line, and the runs that it starts.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand};

use crate::bench::{Bench, Measured, Options, Workload};
use crate::micro::{self, Micro};
use crate::programs::Programs;
use crate::report::Report;
use crate::subject::Subject;
use crate::{soak, table, w1, w2, w3, w4, w5, w6, w9, w10};

const AFTER: &str = "\
Each workload runs three subjects: windlass (bench/subject), go (bench/go, controller-runtime as it comes) and go-tuned (the same with \
stripped caches, no deep copies, and GOMEMLIMIT). Both programs are built first; only Rust and Go are needed. Then a control plane of \
this machine's own is started for each group of cells, on core 0 with this program; the subject has core 1.

A guard that fails ends the run with an error, so that no figures of wrong work are published. Raw data go to bench/results/<workload>.json, \
tables to bench/results/README.md.

Examples:
  cargo run --release -p bench -- smoke                      check that everything works, in under three minutes
  cargo run --release -p bench -- w4                         measure one workload
  cargo run --release -p bench -- w2 --sizes 1000 --runs 1   measure quickly
  cargo run --release -p bench -- all                        measure everything except the soak: hours, on an idle machine
  cargo run --release -p bench -- micro memory               measure the runtime alone";

/// Measure Windlass and Go's controller-runtime side by side, with the same work on the same control plane
#[derive(Debug, Parser)]
#[command(after_help = AFTER)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    options: Flags,
}

#[derive(Debug, Args)]
struct Flags {
    /// Number of measurements of each cell; the median counts
    #[arg(long, global = true, default_value_t = 3, value_name = "NUMBER")]
    runs: usize,
    /// Numbers of objects to measure with, separated by commas [default: the sizes of the workload]
    #[arg(long, global = true, value_delimiter = ',', value_name = "NUMBERS")]
    sizes: Option<Vec<usize>>,
    /// Subjects to measure, separated by commas
    #[arg(long, global = true, value_enum, value_delimiter = ',', default_values_t = Subject::ALL)]
    subjects: Vec<Subject>,
    /// Directory of the results [default: bench/results]
    #[arg(long, global = true, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Build the Windlass program without optimisation, to check only that it works
    #[arg(long, global = true, hide = true)]
    debug_subject: bool,
    /// Measure the smallest sizes once, to check the guards only
    #[arg(long, global = true, hide = true)]
    tiny: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    One(Which),
    /// Run all workloads one after the other, except the soak
    All,
    /// Check the guards of every workload with the smallest sizes, and write no results
    Smoke,
    /// Write the tables again from the raw data of earlier runs
    Tables,
    /// Measure parts of the runtime alone, without a cluster and without Go
    Micro {
        #[command(subcommand)]
        micro: Micro,
    },
}

/// The workload to run.
#[derive(Clone, Copy, Debug, Subcommand)]
enum Which {
    /// Measure the time and the peak memory to fill a cache
    W1,
    /// Measure the memory of a cached object: whole, only the fields that are read, only metadata
    W2,
    /// Measure throughput and CPU of reconciles that find nothing to do
    W3,
    /// Measure an operator with five children per owner: create, change, idle, delete
    W4,
    /// Measure the latency from a change to its reconcile
    W5,
    /// Measure binary size, idle memory, start, stop and failover
    W6,
    /// Measure the work queue alone, without a cluster
    W9,
    /// Measure growth with 1,000, 10,000 and 50,000 objects
    W10,
    /// Edit objects at random for a long time while the API server is killed again and again
    Soak {
        /// Duration of the soak in minutes
        #[arg(long, default_value_t = 20.0)]
        minutes: f64,
    },
}

impl Which {
    /// All workloads in the order of `all`: the most important come first.
    const ALL: [Self; 8] = [Self::W2, Self::W3, Self::W4, Self::W6, Self::W1, Self::W5, Self::W9, Self::W10];
    const SOAK: Self = Self::Soak { minutes: 20.0 };

    fn workload(self) -> Workload {
        match self {
            Self::W1 => w1::WORKLOAD,
            Self::W2 => w2::WORKLOAD,
            Self::W3 => w3::WORKLOAD,
            Self::W4 => w4::WORKLOAD,
            Self::W5 => w5::WORKLOAD,
            Self::W6 => w6::WORKLOAD,
            Self::W9 => w9::WORKLOAD,
            Self::W10 => w10::WORKLOAD,
            Self::Soak { .. } => soak::WORKLOAD,
        }
    }

    async fn run(self, bench: &Bench) -> Result<Measured> {
        match self {
            Self::W1 => w1::run(bench).await,
            Self::W2 => w2::run(bench).await,
            Self::W3 => w3::run(bench).await,
            Self::W4 => w4::run(bench).await,
            Self::W5 => w5::run(bench).await,
            Self::W6 => w6::run(bench).await,
            Self::W9 => w9::run(bench).await,
            Self::W10 => w10::run(bench).await,
            Self::Soak { minutes } => soak::run(bench, minutes).await,
        }
    }
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    let root = root()?;
    let results = cli.options.results.clone().unwrap_or_else(|| root.join("bench/results"));
    let which: Vec<Which> = match &cli.command {
        Command::Micro { micro } => return micro::run(micro),
        Command::Tables => return write_tables(&results),
        Command::All => Which::ALL.to_vec(),
        Command::Smoke => Which::ALL.into_iter().chain([Which::SOAK]).collect(),
        Command::One(which) => vec![*which],
    };
    let smoke = matches!(cli.command, Command::Smoke) || cli.options.tiny;
    let options = Options {
        runs: if smoke { 1 } else { cli.options.runs.max(1) },
        sizes: cli.options.sizes.clone(),
        subjects: cli.options.subjects.clone(),
        smoke,
        command: command(),
    };
    let mut programs = Programs::build(&root, &options.subjects, cli.options.debug_subject)?;
    if !smoke {
        // A smoke run measures no times, so its programs may use all cores.
        programs.pin()?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let writes = !smoke || cli.options.results.is_some();
    runtime.block_on(async {
        let lanes = lanes(which, smoke).into_iter().map(|lane| {
            let bench = Bench::new(&root, options.clone(), programs.clone());
            in_turn(bench, lane, writes.then_some(&*results))
        });
        futures::future::try_join_all(lanes).await
    })?;
    Ok(())
}

/// Runs one workload after the other, and writes the table of each as soon as it is done.
async fn in_turn(bench: Bench, lane: Vec<Which>, results: Option<&Path>) -> Result<()> {
    for which in lane {
        let workload = which.workload();
        let measured = which.run(&bench).await.with_context(|| format!("{} failed", workload.name))?;
        let report = bench.report(measured).await?;
        say(&table::workload(&report, workload.figures))?;
        if let Some(results) = results {
            report.write(results)?;
            write_tables(results)?;
        }
        bench.progress.say(&format!("{} done", workload.name));
    }
    Ok(())
}

/// Returns the lanes that run at the same time: one lane where times are measured. In a smoke run, workloads
/// without a control plane run beside those with one; there is one control plane at a time.
fn lanes(which: Vec<Which>, smoke: bool) -> Vec<Vec<Which>> {
    if !smoke {
        return vec![which];
    }
    let (alone, others) = which.into_iter().partition(|which| matches!(which, Which::W9));
    vec![alone, others]
}

/// The root directory of this repository.
fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here.parent().context("the repository of this program")?.to_owned())
}

/// The arguments as they were typed, without the path of the program.
fn command() -> String {
    let words: Vec<String> = std::env::args().skip(1).collect();
    format!("cargo run --release -p bench -- {}", words.join(" "))
}

/// Writes all tables for which there are raw data.
fn write_tables(results: &Path) -> Result<()> {
    let mut text = "# Side by side with Go\n\n\
        The same work by Windlass and by Go's controller-runtime, on the same control plane, in turns. `go` is controller-runtime as it \
        comes, `go-tuned` has stripped caches, no deep copies and GOMEMLIMIT. A ratio below 1 means that Windlass needs less. The raw data \
        are beside this file; `cargo run --release -p bench -- --help` says how to repeat it.\n"
        .to_owned();
    for which in Which::ALL.into_iter().chain([Which::SOAK]) {
        if let Some(report) = Report::read(results, which.workload().name)? {
            let _ = write!(text, "\n{}", table::workload(&report, which.workload().figures));
        }
    }
    std::fs::create_dir_all(results)?;
    Ok(std::fs::write(results.join("README.md"), text)?)
}

fn say(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn commands_and_flags_can_be_understood_alone() {
        windlass_operator::check_help(&Cli::command()).unwrap();
    }
}
