//! Command line of `windlass new`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::names::{CrateName, GitUrl, Group, Kind, Plural, Version, WindlassVersion};
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum New {
    /// Create a crate for an operator: a kind, its controller, tests, CI and manifests
    #[command(after_help = EXAMPLES)]
    Operator(Box<Operator>),
}

const EXAMPLES: &str = "\
Examples:
  windlass new operator shop --group example.com --version v1alpha1 --kind Shop
  windlass new operator shop --group example.com --version v1 --kind Shop --webhook mutate,validate
  windlass new operator census --group example.com --version v1 --kind Census --style reconciler
  windlass new operator shop --group example.com --version v1 --kind Shop --windlass-git https://github.com/windlass-dev/windlass

After an upgrade of Windlass, the same command with --refresh rewrites the files that belong to Windlass, and no others.";

#[derive(Debug, Args)]
pub(crate) struct Operator {
    /// Name of the operator and its crate: lower-case letters, digits and dashes
    pub(crate) name: CrateName,
    /// API group of the kind: a domain that you own, such as shop.example.com
    #[arg(long, value_name = "DOMAIN")]
    pub(crate) group: Group,
    /// API version of the kind: v1, v1alpha1, v1beta1, v2
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: Version,
    /// Name of the kind, in CamelCase: Shop
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Kind,
    /// Plural of the kind, in lower case; default: formed by the rules of English (shops, proxies, classes)
    #[arg(long, value_name = "WORD")]
    pub(crate) plural: Option<Plural>,
    /// Programming style of the controller
    #[arg(long, value_enum, default_value_t)]
    pub(crate) style: Style,
    /// Webhooks of the operator, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WEBHOOK")]
    pub(crate) webhook: Vec<Webhook>,
    /// Directory to create; default: the name of the operator, in the current directory
    #[arg(long, value_name = "DIR")]
    pub(crate) path: Option<PathBuf>,
    /// Depend on this checkout of Windlass; default: the checkout that this program was built from
    #[arg(long, value_name = "DIR", group = "source")]
    pub(crate) windlass_path: Option<PathBuf>,
    /// Depend on the Windlass in this Git repository, named by its URL
    #[arg(long, value_name = "URL", group = "source")]
    pub(crate) windlass_git: Option<GitUrl>,
    /// Depend on this release of Windlass in a registry
    #[arg(long, value_name = "VERSION", group = "source")]
    pub(crate) windlass_version: Option<WindlassVersion>,
    /// Rewrite the files that belong to Windlass in an existing project, and no others
    #[arg(long)]
    pub(crate) refresh: bool,
    /// Output format of progress and results
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

/// Programming style of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Style {
    /// Declare the objects and their order; Windlass does the rest
    #[default]
    Blueprint,
    /// Write the reconcile function by hand
    Reconciler,
}

/// Admission webhooks of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Webhook {
    /// Fill in defaults that a user left out
    Mutate,
    /// Reject objects that are invalid
    Validate,
}
