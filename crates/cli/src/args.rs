//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::output::Output;

/// Kubernetes operators in Rust, on a real control plane.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 success, 1 a failure while running, 2 wrong usage, 3 something is missing on this machine.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a control plane on this machine with an example operator, and keep both running (Ctrl-C stops them)
    #[command(after_help = UP_EXAMPLES)]
    Up(Up),
    /// Stop what `up --detach` left running
    Down(Down),
    /// The control plane that tests run against
    #[command(subcommand)]
    Testenv(Testenv),
    /// Write what a cluster needs to run an operator of this workspace: CRDs, rights, Deployment
    #[command(after_help = MANIFESTS_EXAMPLES)]
    Manifests(Ask),
    /// Show what an operator of this workspace would do for a manifest, and in which order; without a cluster
    #[command(after_help = GRAPH_EXAMPLES)]
    Graph(Ask),
    /// Make a new project
    #[command(subcommand)]
    New(crate::new::New),
    /// Print what a shell needs to complete commands of this program
    #[command(after_help = COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Run the operator of an example in this process: what `up` starts as a child
    #[command(hide = true)]
    Operate(Operate),
}

const UP_EXAMPLES: &str = "\
Examples:
  windlass up                         a control plane, the Harbor operator, and a Harbor
  windlass up --example game          the same with the 2048 game
  windlass up --example foo           the same with the sample controller
  windlass up --example none          a control plane and nothing else
  windlass up --detach                the same, and return; `windlass down` ends it";

const MANIFESTS_EXAMPLES: &str = "\
Examples:
  windlass manifests -p game                         to standard output
  windlass manifests -p game --out deploy            into a directory, as a kustomize base
  windlass manifests -p game --check deploy          fail if what is there is out of date, for CI";

const GRAPH_EXAMPLES: &str = "\
Examples:
  windlass graph -p game game-sample.yaml            a tree
  windlass graph -p game game-sample.yaml -o dot     for Graphviz; also mermaid and json";

/// An operator of this workspace, and what to ask of it.
#[derive(Debug, Args)]
pub(crate) struct Ask {
    /// The package of the operator; otherwise the one of this directory
    #[arg(long, short = 'p', value_name = "NAME")]
    pub(crate) package: Option<String>,
    /// What the operator's own command takes (see its --help)
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<std::ffi::OsString>,
}

/// Which example, and its operator's own arguments.
#[derive(Debug, Args)]
pub(crate) struct Operate {
    pub(crate) example: Example,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<std::ffi::OsString>,
}

/// An example operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Example {
    /// Harbor, with a database, a cache and a storage of its own: a HarborCluster with built-in parts
    Harbor,
    /// The 2048 game: a blueprint, webhooks, a scale subresource
    Game,
    /// The sample controller: a reconciler written by hand
    Foo,
    /// Nothing but the control plane
    None,
}

impl std::fmt::Display for Example {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Harbor => "harbor",
            Self::Game => "game",
            Self::Foo => "foo",
            Self::None => "none",
        })
    }
}

const COMPLETIONS: &str = "Examples:
  windlass completions bash > ~/.local/share/bash-completion/completions/windlass
  windlass completions zsh > \"${fpath[1]}/_windlass\"
  windlass completions fish > ~/.config/fish/completions/windlass.fish";

#[derive(Debug, Args)]
pub(crate) struct Up {
    /// Use the cluster of this kubeconfig instead of the embedded control plane
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Use the cluster of this kubeconfig context instead of the embedded control plane
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Port of the embedded API server; 0 picks a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    /// Number of nodes that KWOK plays
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) nodes: u16,
    /// The operator to run on it, with a sample object
    #[arg(long, value_enum, default_value_t = Example::Harbor)]
    pub(crate) example: Example,
    /// Leave the control plane running and return, without an example; `windlass down` ends it
    #[arg(long)]
    pub(crate) detach: bool,
    /// How to report
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Down {
    /// Stop the control planes of tests too
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Testenv {
    /// Build the control plane from its Go modules, if that is not done yet
    Build {
        /// Build it again
        #[arg(long)]
        force: bool,
        /// How to report
        #[arg(long, value_enum, default_value_t)]
        output: Output,
    },
    /// Show what is built and what runs
    Status {
        /// How to report
        #[arg(long, value_enum, default_value_t)]
        output: Output,
    },
    /// Print the path of the running control plane's kubeconfig, and nothing else
    Kubeconfig,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
