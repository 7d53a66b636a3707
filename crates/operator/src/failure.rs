//! Why the program ends without success, and what a script learns from that.

use std::fmt;
use std::process::ExitCode;

/// Why the program ends without success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It ran, and something failed. 1.
    Running(String),
    /// Manifests are not as they should be. 1.
    Stale(String),
    /// A setting cannot be what it is set to. 2, as for a wrong command line.
    Setting(String),
    /// It could not begin: something around it is missing, and the text says what to do. 3; 2 is for a wrong command line.
    Environment(String),
}

impl Failure {
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Running(_) | Self::Stale(_) => 1,
            Self::Setting(_) => 2,
            Self::Environment(_) => 3,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running(text) | Self::Stale(text) | Self::Setting(text) | Self::Environment(text) => {
                f.write_str(text)
            }
        }
    }
}
