//! The command line, and what it sets going.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::bench::{Bench, Measured, Options, Workload};
use crate::micro::{self, Micro};
use crate::programs::Programs;
use crate::report::Report;
use crate::subject::Subject;
use crate::{table, w2, w3, w4, w6};

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

/// Measures Windlass side by side with Go's controller-runtime: the same work, the same control plane, in turns
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
    /// How often each cell is measured; the median counts
    #[arg(long, global = true, default_value_t = 3, value_name = "NUMBER")]
    runs: usize,
    /// Numbers of objects to measure with, separated by commas; otherwise the workload's own
    #[arg(long, global = true, value_delimiter = ',', value_name = "NUMBERS")]
    sizes: Option<Vec<usize>>,
    /// Who is measured, separated by commas
    #[arg(long, global = true, value_enum, value_delimiter = ',', default_values_t = Subject::ALL)]
    subjects: Vec<Subject>,
    /// Where results are written; otherwise bench/results
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
    /// Memory of a cached object: full, needed, metadata
    W2,
    /// No-op reconciles: throughput and CPU
    W3,
    /// Five children for every owner: create, change, quiet, delete
    W4,
    /// Footprint, start, stop, failover
    W6,
    /// Everything, one after the other (not the soak)
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

/// The workloads, in the order of `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Which {
    W2,
    W3,
    W4,
    W6,
}

impl Which {
    const ALL: &'static [Self] = &[Self::W2, Self::W3, Self::W4, Self::W6];

    fn workload(self) -> Workload {
        match self {
            Self::W2 => w2::WORKLOAD,
            Self::W3 => w3::WORKLOAD,
            Self::W4 => w4::WORKLOAD,
            Self::W6 => w6::WORKLOAD,
        }
    }

    async fn run(self, bench: &Bench) -> Result<Measured> {
        match self {
            Self::W2 => w2::run(bench).await,
            Self::W3 => w3::run(bench).await,
            Self::W4 => w4::run(bench).await,
            Self::W6 => w6::run(bench).await,
        }
    }
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    let root = root()?;
    let results = cli.options.results.clone().unwrap_or_else(|| root.join("bench/results"));
    let which: &[Which] = match &cli.command {
        Command::Micro { micro } => return micro::run(micro),
        Command::Tables => return write_tables(&results),
        Command::All | Command::Smoke => Which::ALL,
        Command::W2 => &[Which::W2],
        Command::W3 => &[Which::W3],
        Command::W4 => &[Which::W4],
        Command::W6 => &[Which::W6],
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
    programs.pin()?;
    let bench = Bench::new(&root, options, programs);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        for which in which {
            let name = which.workload().name;
            let measured = which.run(&bench).await.with_context(|| format!("{name} failed"))?;
            let report = bench.report(measured).await?;
            say(&table::workload(&report, which.workload().figures))?;
            if !smoke || cli.options.results.is_some() {
                report.write(&results)?;
                write_tables(&results)?;
            }
        }
        bench.progress.say("done");
        Ok(())
    })
}

/// Where this repository is.
fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here.parent().context("the repository of this program")?.to_owned())
}

/// What was typed, but for the way here.
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
    for which in Which::ALL {
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
