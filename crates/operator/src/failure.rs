//! Failures of the program, and their exit codes for scripts.

use std::fmt;
use std::process::ExitCode;

/// The reason why the program ends without success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error occurred while the operator ran. Exit code 1.
    Running(String),
    /// Manifests are out of date. Exit code 1.
    Stale(String),
    /// A setting has an invalid value. Exit code 2, as for an invalid command line.
    Setting(String),
    /// The program could not start: something in its environment is missing, and the text says what to do.
    /// Exit code 3; 2 is for an invalid command line.
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
