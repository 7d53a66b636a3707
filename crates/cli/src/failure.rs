//! Failures and their exit codes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use windlass_testenv::{Error, dirs};

/// Reason why the program ends without success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An operation failed.
    Running(String),
    /// A prerequisite is missing on this machine; the text says which, and how to get it.
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
        let text = match &error {
            Error::File { path, .. } => format!("cannot use {error}{}", remedy(path)),
            _ => error.to_string(),
        };
        match error {
            Error::Start(_)
            | Error::Lost(_)
            | Error::Refused(_)
            | Error::ForeignDirectory { .. }
            | Error::Api { .. }
            | Error::TimedOut { .. } => Self::Running(text),
            _ => Self::Environment(text),
        }
    }
}

/// Returns the messages of an error and its sources, without those that repeat the one before.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let message = cause.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        source = cause.source();
    }
    text
}

/// Returns a remedy for a file that cannot be used, if it is in a directory that a variable chooses.
fn remedy(path: &Path) -> &'static str {
    let is_below = |dir: Result<PathBuf, Error>| dir.is_ok_and(|dir| path.starts_with(dir));
    if is_below(dirs::cache()) {
        ": the control plane is built there; make it writable, or set XDG_CACHE_HOME to another directory"
    } else if is_below(dirs::run()) {
        ": running control planes keep their data there; make it writable, or set WINDLASS_RUN_DIR to another \
         directory"
    } else {
        ""
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Running(error.to_string())
    }
}
