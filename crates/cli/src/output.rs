//! The format of reports: the value of `--output`.

use clap::ValueEnum;

/// How to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Output {
    /// For people: progress on a terminal, plain lines elsewhere
    #[default]
    Human,
    /// For machines: one JSON object a line
    Json,
}
