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
    /// From a change to its reconcile
    Latency,
    /// The queue alone
    Queue,
    /// What this is
    Version,
}

#[derive(Debug, Args)]
pub(crate) struct Common {
    /// The kubeconfig
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// How many objects are reconciled at the same time
    #[arg(long, global = true, default_value_t = 1)]
    pub(crate) workers: usize,
    /// Threads of the runtime
    #[arg(long, global = true, default_value_t = 1)]
    pub(crate) threads: usize,
    /// For the Go program; nothing is tuned here
    #[arg(long, global = true)]
    pub(crate) tuned: bool,
    /// Where /healthz is served; 0: only beside the metrics
    #[arg(long, global = true, default_value = "0", value_parser = address)]
    pub(crate) health: Address,
    /// Where metrics are served; 0: nowhere
    #[arg(long, global = true, default_value = "127.0.0.1:0", value_parser = address)]
    pub(crate) metrics: Address,
}

#[derive(Debug, Args)]
pub(crate) struct CacheArgs {
    /// What of each object is kept
    #[arg(long, value_enum)]
    pub(crate) form: Form,
    /// Which kind
    #[arg(long, value_enum, default_value_t = CachedKind::Widget)]
    pub(crate) kind: CachedKind,
    /// List page by page rather than in one piece
    #[arg(long)]
    pub(crate) page: bool,
    /// How many controllers share the cache
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

/// What of an object is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// All of it
    Full,
    /// All of it, kept as JSON
    Packed,
    /// What a reconcile reads
    Needed,
    /// Metadata
    Metadata,
}

/// Which kind is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CachedKind {
    /// The custom resource
    Widget,
    /// A built-in kind
    Configmap,
}

/// Where to listen; `None`: nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) Option<SocketAddr>);

fn address(text: &str) -> Result<Address, String> {
    match text {
        "0" => Ok(Address(None)),
        text => text.parse().map(|address| Address(Some(address))).map_err(|error| format!("{error}")),
    }
}
