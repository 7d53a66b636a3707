//! A dependency of a HarborCluster: its cache, database or storage.

use windlass::Planned;

/// A planned dependency: the settings that the Harbor gets, and the nodes that must be ready first.
#[derive(Debug)]
pub struct Dependency<T> {
    /// The settings for the Harbor, or the reason why they are not known yet.
    pub settings: Result<T, String>,
    /// The nodes that must be ready before the Harbor gets the settings.
    pub needs: Vec<Planned>,
}

impl<T> Dependency<T> {
    /// Returns an external dependency, which needs no nodes.
    pub fn external(settings: T) -> Self {
        Self { settings: Ok(settings), needs: Vec::new() }
    }
}
