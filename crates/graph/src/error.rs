//! Errors in the declaration of a graph, found while it is built.
//!
//! Running a graph has no errors of its own: what happens to a node is that node's
//! [`Outcome`](crate::Outcome).

use std::{fmt, sync::Arc};

/// A graph that cannot be built as asked.
///
/// The graph is as it was before the call that returned this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// Two nodes have the same identity.
    #[error("the graph already has a node `{id}`: each node needs an identity of its own")]
    Duplicate {
        /// The identity that was there already.
        id: Arc<str>,
    },
    /// A key was made by another graph.
    #[error("`{id}` is to come after a node of another graph: use keys that this graph's `add` returned")]
    ForeignKey {
        /// The node that was to be added.
        id: Arc<str>,
    },
    /// A declared node names a dependency that nobody declared.
    #[error("`{id}` is to come after `{dependency}`, which is not declared: declare it, or correct the name")]
    UnknownDependency {
        /// The node with the dependency.
        id: Arc<str>,
        /// The name that leads nowhere.
        dependency: Arc<str>,
    },
    /// Declared nodes wait for each other.
    #[error("the dependencies form a cycle, {}: remove one of them", Arrows(.path))]
    Cycle {
        /// The nodes of one cycle: each is to come after the next, the last after the first.
        ///
        /// It begins with the one that was declared first.
        path: Vec<Arc<str>>,
    },
    /// More nodes or edges than 32 bits can number.
    #[error("the graph is too large: it holds at most 4,294,967,294 nodes and as many edges")]
    TooLarge,
}

/// The message shows only the beginning of a long cycle; the error keeps all of it.
const SHOWN: usize = 12;

struct Arrows<'a>(&'a [Arc<str>]);

impl fmt::Display for Arrows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.0.first() else { return Ok(()) };
        write!(f, "`{first}`")?;
        for id in self.0.iter().take(SHOWN).skip(1) {
            write!(f, " after `{id}`")?;
        }
        if self.0.len() > SHOWN {
            write!(f, " after {} more", self.0.len() - SHOWN)?;
        }
        write!(f, " after `{first}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_is_named_from_its_first_node_back_to_it() {
        let error = GraphError::Cycle { path: vec!["a".into(), "b".into()] };
        assert_eq!(
            error.to_string(),
            "the dependencies form a cycle, `a` after `b` after `a`: remove one of them"
        );
    }

    #[test]
    fn a_long_cycle_is_shortened_in_the_message_only() {
        let path: Vec<Arc<str>> = (0..100).map(|i| i.to_string().into()).collect();
        let message = GraphError::Cycle { path }.to_string();
        assert!(message.contains("`11` after 88 more after `0`"), "{message}");
    }
}
