//! The command line, and what it sets going.

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

A guard that does not hold ends the run with an error: there are no figures of wrong work. Raw data go to bench/results/<workload>.json, \
tables to bench/results/README.md.

Examples:
  cargo run --release -p bench -- smoke                      does everything work? under three minutes
  cargo run --release -p bench -- w4                         one workload
  cargo run --release -p bench -- w2 --sizes 1000 --runs 1   quickly
  cargo run --release -p bench -- all                        everything but the soak: hours, on a machine that does nothing else
  cargo run --release -p bench -- micro memory               the runtime alone";

/// Measures Windlass side by side with Go's controller-runtime: the same work, the same control plane, in
/// turns
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
    /// Numbers of objects to measure with, separated by commas; otherwise the workload's own
    #[arg(long, global = true, value_delimiter = ',', value_name = "NUMBERS")]
    sizes: Option<Vec<usize>>,
    /// Subjects to measure, separated by commas
    #[arg(long, global = true, value_enum, value_delimiter = ',', default_values_t = Subject::ALL)]
    subjects: Vec<Subject>,
    /// Directory of the results [default: bench/results]
    #[arg(long, global = true, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Build our subject without optimisation: to see whether it works
    #[arg(long, global = true, hide = true)]
    debug_subject: bool,
    /// Do as little as possible: guards only
    #[arg(long, global = true, hide = true)]
    tiny: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    One(Which),
    /// All workloads, one after the other (except the soak)
    All,
    /// Every workload, tiny: guards and correctness only, nothing is written
    Smoke,
    /// Write the tables again from the raw data
    Tables,
    /// Parts of the runtime alone, without a cluster and without Go
    Micro {
        #[command(subcommand)]
        micro: Micro,
    },
}

/// The workload to run.
#[derive(Clone, Copy, Debug, Subcommand)]
enum Which {
    /// Time and peak memory from an empty to a full cache
    W1,
    /// Memory of a cached object: full, needed, metadata
    W2,
    /// No-op reconciles: throughput and CPU
    W3,
    /// Five children for every owner: create, change, quiet, delete
    W4,
    /// Latency from a change to its reconcile
    W5,
    /// Footprint, start, stop, failover
    W6,
    /// The queue alone
    W9,
    /// Growth with 1,000, 10,000 and 50,000 objects
    W10,
    /// Random edits while the API server is killed, for a long time
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
        // Where no time is looked at, all cores are for everybody.
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

/// One workload after the other; each has its table as soon as it is done.
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

/// The lanes that run at the same time: one lane where times are measured. In a smoke test, what needs no
/// control plane runs beside what does; there is one control plane at a time.
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

/// All tables, from whatever raw data there are.
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
