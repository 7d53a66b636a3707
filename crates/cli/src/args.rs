//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    /// Start a control plane on this machine and keep it running (Ctrl-C stops it)
    Up(Up),
    /// Stop what `up --detach` left running
    Down(Down),
    /// The control plane that tests run against
    #[command(subcommand)]
    Testenv(Testenv),
    /// Make a new project
    #[command(subcommand)]
    New(crate::new::New),
    /// Print what a shell needs to complete commands of this program
    #[command(after_help = COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
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
    /// Leave it running and return; `windlass down` ends it
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

/// How to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Output {
    /// For people: progress on a terminal, plain lines elsewhere
    #[default]
    Human,
    /// For machines: one JSON object a line
    Json,
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
