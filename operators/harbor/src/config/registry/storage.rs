//! The storage driver of the registry.
//!
//! These settings locate the images: a change for an existing installation loses its images.

use windlass_operator::yaml::{Map, Node};

use super::super::confidential::Confidential;
use super::STORAGE_DIR;

/// A storage driver of the registry: its name and its parameters, as in Distribution's documentation.
#[derive(Debug, Clone)]
pub struct Storage {
    driver: &'static str,
    parameters: Map,
    secrets: Vec<(&'static str, Confidential)>,
}

impl Storage {
    /// Returns a driver without parameters.
    pub fn new(driver: &'static str) -> Self {
        Self { driver, parameters: Map::new(), secrets: Vec::new() }
    }

    /// Returns the file system driver for a volume mounted at [`STORAGE_DIR`], with at most this many open
    /// files.
    pub fn filesystem(max_threads: u32) -> Self {
        Self::new("filesystem").with("rootdirectory", STORAGE_DIR).with("maxthreads", max_threads)
    }

    /// Returns the in-memory driver, for tests.
    pub fn in_memory() -> Self {
        Self::new("inmemory")
    }

    /// Adds a parameter to the file.
    #[must_use]
    pub fn with(mut self, parameter: &str, value: impl Into<Node>) -> Self {
        self.parameters = self.parameters.with(parameter, value);
        self
    }

    /// Adds a parameter to the file if it has a value.
    #[must_use]
    pub(crate) fn with_some(self, parameter: &str, value: Option<impl Into<Node>>) -> Self {
        match value {
            Some(value) => self.with(parameter, value),
            None => self,
        }
    }

    /// Adds a parameter that the registry reads from its environment, if it has a value.
    #[must_use]
    pub fn secret(mut self, parameter: &'static str, value: Option<Confidential>) -> Self {
        self.secrets.extend(value.map(|value| (parameter, value)));
        self
    }

    /// Returns the name of the driver, which is the key of its parameters in the file.
    pub(super) const fn driver(&self) -> &'static str {
        self.driver
    }

    /// Returns the parameters in the file.
    pub(super) fn parameters(&self) -> Map {
        self.parameters.clone()
    }

    /// Returns the secret parameters with their environment variables.
    pub(super) fn secrets(&self) -> impl Iterator<Item = (String, &Confidential)> {
        let variable =
            |parameter: &str| format!("REGISTRY_STORAGE_{}_{parameter}", self.driver).to_uppercase();
        self.secrets.iter().map(move |(parameter, value)| (variable(parameter), value))
    }
}
