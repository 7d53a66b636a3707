//! Command line of `windlass`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::output::Output;

/// Build and run Kubernetes operators in Rust, on a real control plane.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 success, 1 a failure while running, 2 wrong usage, 3 something is missing on this machine.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a local control plane with an example operator, and keep both running until Ctrl-C
    #[command(after_help = UP_EXAMPLES)]
    Up(Up),
    /// Stop the control plane that `up --detach` started
    Down(Down),
    /// Manage the control plane that tests use
    #[command(subcommand)]
    Testenv(Testenv),
    /// Write the manifests for installing an operator of this workspace: CRDs, RBAC, Deployment
    #[command(after_help = MANIFESTS_EXAMPLES)]
    Manifests(Ask),
    /// Show the planned objects and their order for a manifest of an operator of this workspace, without a
    /// cluster
    #[command(after_help = GRAPH_EXAMPLES)]
    Graph(Ask),
    /// Create a new operator project
    #[command(subcommand)]
    New(crate::new::New),
    /// Print shell completions for this program
    #[command(after_help = COMPLETIONS)]
    Completions {
        /// Shell to complete commands for
        shell: clap_complete::Shell,
    },
    /// Run the operator of an example in this process, as a child of `up`
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

/// An operator of this workspace, and the arguments for its command.
#[derive(Debug, Args)]
pub(crate) struct Ask {
    /// Package of the operator; default: the package of the current directory
    #[arg(long, short = 'p', value_name = "NAME")]
    pub(crate) package: Option<String>,
    /// Arguments for the operator's own command (see its --help)
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<std::ffi::OsString>,
}

/// Name of an example, and arguments for its operator.
#[derive(Debug, Args)]
pub(crate) struct Operate {
    pub(crate) example: Example,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<std::ffi::OsString>,
}

/// An example operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Example {
    /// Harbor as a HarborCluster with built-in database, cache and storage
    Harbor,
    /// The 2048 game: a blueprint, webhooks, a scale subresource
    Game,
    /// The sample controller: a reconciler written by hand
    Foo,
    /// No operator, only the control plane
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
    /// Install and run the example on the cluster of this kubeconfig instead of the embedded control plane
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Install and run the example on the cluster of this kubeconfig context
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Port of the embedded API server; 0 picks a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    /// Number of simulated nodes (KWOK)
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) nodes: u16,
    /// Example operator to run, with a sample object
    #[arg(long, value_enum, default_value_t = Example::Harbor)]
    pub(crate) example: Example,
    /// Start the control plane without an example and return; `windlass down` stops it
    #[arg(long, conflicts_with_all = ["kubeconfig", "context"])]
    pub(crate) detach: bool,
    /// Output format of progress and results
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Down {
    /// Also stop the control planes of tests
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Testenv {
    /// Build the control plane from its Go modules, unless it is already built
    Build {
        /// Build the control plane again
        #[arg(long)]
        force: bool,
        /// Output format of progress and results
        #[arg(long, value_enum, default_value_t)]
        output: Output,
    },
    /// Show built binaries and running control planes
    Status {
        /// Output format of progress and results
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

    #[test]
    fn commands_and_flags_can_be_understood_alone() {
        windlass_operator::check_help(&Cli::command()).unwrap();
    }
}
