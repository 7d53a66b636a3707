//! The command line, with the same commands and flags as the Go program.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

#[derive(Debug, Parser)]
#[command(version, about = "Run the Windlass side of the benchmark, in one mode per workload")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) mode: Mode,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Mode {
    /// Cache a kind, report its content and answer reads
    Cache(CacheArgs),
    /// Reconcile from the caches alone, and flood the queue on request
    Noop,
    /// Reconcile five children and the status of every Widget
    Fanout(FanoutArgs),
    /// Start, stop, lead and fail over on request
    Life(LifeArgs),
    /// Run like `life`, with no Widgets to reconcile
    Idle(LifeArgs),
    /// Measure the latency from a change to its reconcile
    Latency,
    /// Measure the work queue alone, without a cluster
    Queue,
    /// Print the version as a JSON line
    Version,
}

#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Path of the kubeconfig file
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Number of objects reconciled at the same time
    #[arg(long, global = true, default_value_t = 1)]
    pub(crate) workers: usize,
    /// Number of worker threads of the async runtime
    #[arg(long, global = true, default_value_t = 1)]
    pub(crate) threads: usize,
    /// Accepted because the Go program has this flag; without effect here
    #[arg(long, global = true)]
    pub(crate) tuned: bool,
    /// Address that serves /healthz; 0 serves it only at the address of the metrics
    #[arg(long, global = true, default_value = "0", value_parser = address)]
    pub(crate) health: Address,
    /// Address that serves the metrics; 0 serves none
    #[arg(long, global = true, default_value = "127.0.0.1:0", value_parser = address)]
    pub(crate) metrics: Address,
}

#[derive(Debug, Args)]
pub(crate) struct CacheArgs {
    /// The cached form of each object
    #[arg(long, value_enum)]
    pub(crate) form: Form,
    /// The kind to cache: `widget` or `configmap`
    #[arg(long, value_enum, default_value_t = CachedKind::Widget)]
    pub(crate) kind: CachedKind,
    /// Use paged lists instead of one unpaged list
    #[arg(long)]
    pub(crate) page: bool,
    /// Number of controllers that share the cache
    #[arg(long, default_value_t = 0)]
    pub(crate) controllers: usize,
}

#[derive(Debug, Args)]
pub(crate) struct FanoutArgs {
    /// Put a finalizer on every Widget
    #[arg(long)]
    pub(crate) finalizer: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LifeArgs {
    /// Name of the Lease for leader election; if unset, work begins at once
    #[arg(long, requires = "namespace")]
    pub(crate) lease: Option<String>,
    /// Namespace of the Lease of `--lease`
    #[arg(long)]
    pub(crate) namespace: Option<String>,
    /// Take a second to reconcile Widgets of color "slow"
    #[arg(long)]
    pub(crate) slow: bool,
}

/// The cached form of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// The whole object as a typed value
    Full,
    /// The whole object, stored as JSON text
    Packed,
    /// The fields that a reconcile reads
    Needed,
    /// The metadata of the object only
    Metadata,
}

/// The kind of the cached objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CachedKind {
    /// The custom resource of the benchmark
    Widget,
    /// The built-in kind ConfigMap
    Configmap,
}

/// The address to listen on; `None` serves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) Option<SocketAddr>);

fn address(text: &str) -> Result<Address, String> {
    match text {
        "0" => Ok(Address(None)),
        text => text.parse().map(|address| Address(Some(address))).map_err(|error| format!("{error}")),
    }
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
