//! The format of reports: the value of `--output`.

use clap::ValueEnum;

/// Output format of progress and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Output {
    /// Text for people: progress on a terminal, plain lines elsewhere
    #[default]
    Human,
    /// JSON for machines: one object per line
    Json,
}
