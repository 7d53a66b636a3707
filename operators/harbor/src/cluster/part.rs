//! One of the three parts: cache, database or storage.

use windlass::Planned;

/// What a Harbor is told of a part, and what must be ready before it is.
#[derive(Debug)]
pub struct Part<T> {
    /// Where it is; or why that is not known yet.
    pub told: Result<T, String>,
    /// What must be ready.
    pub needs: Vec<Planned>,
}

impl<T> Part<T> {
    /// One that others look after: it is what it is.
    pub fn external(told: T) -> Self {
        Self { told: Ok(told), needs: Vec::new() }
    }
}
