//! Keys of nodes, and the numbers that tell one graph's keys from another's.

use std::sync::atomic::{AtomicU64, Ordering};

/// Tells the keys of one graph from those of another.
static NEXT_GRAPH: AtomicU64 = AtomicU64::new(0);

/// A number that no other graph of this process has.
pub(crate) fn next_graph() -> u64 {
    NEXT_GRAPH.fetch_add(1, Ordering::Relaxed)
}

/// A node's place in the graph that returned this key.
///
/// A key exists only once its node was added, and edges are made of keys when a node
/// is added: a node can come after earlier ones only, so a cycle cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub(crate) graph: u64,
    pub(crate) index: u32,
}

impl Key {
    /// The node's position in insertion order, from zero: for tables beside the graph.
    pub fn index(self) -> usize {
        self.index as usize
    }
}
