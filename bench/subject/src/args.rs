//! The command line: the same words as those of the Go program.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

#[derive(Debug, Parser)]
#[command(version, about = "The Windlass side of the benchmark")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) mode: Mode,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Mode {
    /// Cache a kind, say what is in it, answer reads
    Cache(CacheArgs),
    /// Reconcile from caches alone; floods on request
    Noop,
    /// Five children for every Widget, and its status
    Fanout(FanoutArgs),
    /// Start, stop, lead and take over
    Life(LifeArgs),
    /// The same, with nothing to do
    Idle(LifeArgs),
    /// Measure the latency from a change to its reconcile
    Latency,
    /// The queue alone
    Queue,
    /// Print the version
    Version,
}

#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Path of the kubeconfig
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Number of objects reconciled at the same time
    #[arg(long, global = true, default_value_t = 1)]
    pub(crate) workers: usize,
    /// Threads of the runtime
    #[arg(long, global = true, default_value_t = 1)]
    pub(crate) threads: usize,
    /// Accepted for symmetry with the Go program; tunes nothing here
    #[arg(long, global = true)]
    pub(crate) tuned: bool,
    /// Address of /healthz; 0 serves it only beside the metrics
    #[arg(long, global = true, default_value = "0", value_parser = address)]
    pub(crate) health: Address,
    /// Address of the metrics; 0 serves none
    #[arg(long, global = true, default_value = "127.0.0.1:0", value_parser = address)]
    pub(crate) metrics: Address,
}

#[derive(Debug, Args)]
pub(crate) struct CacheArgs {
    /// The cached form of each object
    #[arg(long, value_enum)]
    pub(crate) form: Form,
    /// The cached kind
    #[arg(long, value_enum, default_value_t = CachedKind::Widget)]
    pub(crate) kind: CachedKind,
    /// List page by page rather than in one piece
    #[arg(long)]
    pub(crate) page: bool,
    /// Number of controllers that share the cache
    #[arg(long, default_value_t = 0)]
    pub(crate) controllers: usize,
}

#[derive(Debug, Args)]
pub(crate) struct FanoutArgs {
    /// Hold each Widget by a finalizer
    #[arg(long)]
    pub(crate) finalizer: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LifeArgs {
    /// The Lease to be elected by; without it, work begins at once
    #[arg(long, requires = "namespace")]
    pub(crate) lease: Option<String>,
    /// The Lease's namespace
    #[arg(long)]
    pub(crate) namespace: Option<String>,
    /// Widgets of color "slow" take a second
    #[arg(long)]
    pub(crate) slow: bool,
}

/// The cached form of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// The whole object
    Full,
    /// The whole object, kept as JSON
    Packed,
    /// The fields that a reconcile reads
    Needed,
    /// The metadata only
    Metadata,
}

/// The cached kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CachedKind {
    /// The custom resource
    Widget,
    /// A built-in kind
    Configmap,
}

/// The address to listen on; `None` for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) Option<SocketAddr>);

fn address(text: &str) -> Result<Address, String> {
    match text {
        "0" => Ok(Address(None)),
        text => text.parse().map(|address| Address(Some(address))).map_err(|error| format!("{error}")),
    }
}
