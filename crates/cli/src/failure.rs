//! Failures, and what a calling script learns from them.

use std::process::ExitCode;

use windlass_testenv::Error;

/// Why the program ends without success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something that worked before, or should, did not.
    Running(String),
    /// This machine lacks something; the text says what and how to get it.
    Environment(String),
}

impl Failure {
    pub(crate) fn code(&self) -> ExitCode {
        match self {
            Self::Running(_) => ExitCode::from(1),
            // 2 is clap's, for wrong usage.
            Self::Environment(_) => ExitCode::from(3),
        }
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Running(text) | Self::Environment(text) => text,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Start(_)
            | Error::Lost(_)
            | Error::Refused(_)
            | Error::Api { .. }
            | Error::TimedOut { .. } => Self::Running(text),
            _ => Self::Environment(text),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Running(error.to_string())
    }
}
