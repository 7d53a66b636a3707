//! The command line of `windlass new`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::names::{CrateName, Group, Kind, Plural, Version, WindlassVersion};
use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum New {
    /// Make a crate for an operator: a kind, what is done about it, tests, CI and manifests
    #[command(after_help = EXAMPLES)]
    Operator(Box<Operator>),
}

const EXAMPLES: &str = "\
Examples:
  windlass new operator shop --group example.com --version v1alpha1 --kind Shop
  windlass new operator shop --group example.com --version v1 --kind Shop --webhook mutate,validate
  windlass new operator census --group example.com --version v1 --kind Census --style reconciler

After an upgrade of Windlass, the same command with --refresh rewrites the files that are Windlass's, and none of yours.";

#[derive(Debug, Args)]
pub(crate) struct Operator {
    /// The operator's name, and its crate's: lower-case letters, digits and dashes
    pub(crate) name: CrateName,
    /// The API group of its kind: a domain of yours, such as shop.example.com
    #[arg(long, value_name = "DOMAIN")]
    pub(crate) group: Group,
    /// The version of its kind: v1, v1alpha1, v1beta1, v2
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: Version,
    /// Its kind, in CamelCase: Shop
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Kind,
    /// The kind's plural, if it is not the usual one (shops, proxies, classes)
    #[arg(long, value_name = "WORD")]
    pub(crate) plural: Option<Plural>,
    /// How it is written
    #[arg(long, value_enum, default_value_t)]
    pub(crate) style: Style,
    /// The webhooks that it has, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WEBHOOK")]
    pub(crate) webhook: Vec<Webhook>,
    /// Where to put it; otherwise a directory of its name, here
    #[arg(long, value_name = "DIR")]
    pub(crate) path: Option<PathBuf>,
    /// Build on this checkout of Windlass
    #[arg(long, value_name = "DIR", conflicts_with = "windlass_version")]
    pub(crate) windlass_path: Option<PathBuf>,
    /// Build on this release of Windlass; otherwise on the one of this program
    #[arg(long, value_name = "VERSION")]
    pub(crate) windlass_version: Option<WindlassVersion>,
    /// In a project that is there already, rewrite the files that are Windlass's, and no others
    #[arg(long)]
    pub(crate) refresh: bool,
    /// How to report
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

/// How an operator is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Style {
    /// Declare the resources and their order; the rest is done for you
    #[default]
    Blueprint,
    /// Write the reconcile by hand
    Reconciler,
}

/// What the API server asks the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Webhook {
    /// Fill in what a user left out
    Mutate,
    /// Refuse what is wrong
    Validate,
}
