//! The graph: nodes, their identities, and their dependencies.
//!
//! Every graph that can be built can be run: it has no cycle, no dangling edge, and
//! no two nodes of one name. Nodes can be added, but never changed or removed.

use std::{fmt, sync::Arc};

use crate::{
    Direction, GraphError, Key, Node, Outcome, Report,
    key::next_graph,
    schedule::Order,
    shape::{NONE, Shape},
};

/// Nodes and the order among them.
///
/// ```
/// use windlass_graph::{Graph, GraphError};
///
/// let mut graph = Graph::new();
/// let config = graph.add("config")?;
/// let secret = graph.add("secret")?;
/// let server = graph.add_after("server", &[config, secret])?;
/// assert_eq!(graph.dependencies(server).collect::<Vec<_>>(), [config, secret]);
///
/// // What is wrong is said when it is written, and changes nothing.
/// assert_eq!(graph.add("config"), Err(GraphError::Duplicate { id: "config".into() }));
/// assert_eq!(graph.len(), 3);
/// # Ok::<(), GraphError>(())
/// ```
///
/// [`run`](Graph::run) and [`run_reverse`](Graph::run_reverse) visit the nodes.
pub struct Graph<N> {
    pub(crate) nodes: Vec<N>,
    /// Shared with the reports of runs; copied when a node is added while one is kept.
    pub(crate) shape: Arc<Shape>,
    /// For each node, the last node that was added after it. Finds a repeated dependency in constant time.
    claimed: Vec<u32>,
}

impl<N> Graph<N> {
    /// A graph without nodes. Running it is a success.
    pub fn new() -> Self {
        Graph { nodes: Vec::new(), shape: Arc::new(Shape::new(next_graph())), claimed: Vec::new() }
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns true if the graph has no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node of a key, if it is one of this graph.
    pub fn get(&self, key: Key) -> Option<&N> {
        self.owns(key).then(|| &self.nodes[key.index()])
    }

    /// The key of the node with that identity.
    pub fn key(&self, id: &str) -> Option<Key> {
        self.shape.find(id).map(|index| self.key_at(index))
    }

    /// The identity of a node, if the key is one of this graph.
    pub fn id(&self, key: Key) -> Option<&str> {
        self.owns(key).then(|| &**self.shape.id(key.index))
    }

    /// All nodes with their keys, in insertion order.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &N)> {
        self.shape.indices().map(|index| self.key_at(index)).zip(&self.nodes)
    }

    /// The dependencies of a node, in the order in which they were declared, each once.
    ///
    /// Nothing, for a key of another graph.
    pub fn dependencies(&self, key: Key) -> impl Iterator<Item = Key> {
        let row = if self.owns(key) { self.shape.dependencies().row(key.index) } else { &[] };
        row.iter().map(|&index| self.key_at(index))
    }

    fn owns(&self, key: Key) -> bool {
        key.graph == self.shape.graph
    }

    fn key_at(&self, index: u32) -> Key {
        Key { graph: self.shape.graph, index }
    }

    /// Takes a node whose name the shape has already.
    pub(crate) fn push(&mut self, node: N) {
        self.nodes.push(node);
        self.claimed.push(NONE);
    }

    /// The dependencies that are new to the node `index`, in order.
    pub(crate) fn distinct(&mut self, index: u32, dependencies: impl Iterator<Item = u32>) -> Vec<u32> {
        dependencies
            .filter(|&dependency| std::mem::replace(&mut self.claimed[dependency as usize], index) != index)
            .collect()
    }
}

impl<N: Node> Graph<N> {
    /// Adds a node that comes after nothing.
    pub fn add(&mut self, node: N) -> Result<Key, GraphError> {
        self.add_after(node, &[])
    }

    /// Adds a node that comes after those of the keys.
    ///
    /// A key given twice counts once.
    pub fn add_after(&mut self, node: N, after: &[Key]) -> Result<Key, GraphError> {
        let id: Arc<str> = node.id().into();
        let index = self.shape.vacancy(&id)?;
        if after.iter().any(|&key| !self.owns(key)) {
            return Err(GraphError::ForeignKey { id });
        }
        let dependencies = self.distinct(index, after.iter().map(|key| key.index));
        let shape = Arc::make_mut(&mut self.shape);
        if let Err(error) = shape.depend(dependencies.iter().copied()) {
            // The next node gets the same index: it must not find its claims made.
            for dependency in dependencies {
                self.claimed[dependency as usize] = NONE;
            }
            return Err(error);
        }
        shape.name(id, index);
        self.push(node);
        Ok(self.key_at(index))
    }
}

impl<N> Graph<N> {
    /// A report of the graph before anybody runs it: `what` says of each node what a visit would be.
    ///
    /// ```
    /// use windlass_graph::{Graph, Report};
    ///
    /// let mut graph = Graph::new();
    /// let config = graph.add("config")?;
    /// graph.add_after("server", &[config])?;
    /// let outline: Report<String> = graph.outline(|name| format!("apply {name}"));
    /// assert_eq!(outline.text().to_string(), "2 planned\n└─ config: planned: apply config\n   └─ server: planned: apply server\n");
    /// # Ok::<(), windlass_graph::GraphError>(())
    /// ```
    pub fn outline<E, W>(&self, what: impl Fn(&N) -> W) -> Report<E, W> {
        let outcomes = self.nodes.iter().map(|node| Outcome::Planned(what(node))).collect();
        Report {
            order: Order::new(Arc::clone(&self.shape), Direction::Forward),
            outcomes,
            durations: vec![None; self.len()],
            blockers: vec![NONE; self.len()],
            elapsed: std::time::Duration::ZERO,
        }
    }
}

impl<N> Default for Graph<N> {
    fn default() -> Self {
        Graph::new()
    }
}

impl<N> fmt::Debug for Graph<N> {
    /// Identities and edges; the nodes themselves may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |row: &[u32]| row.iter().map(|&index| &**self.shape.id(index)).collect::<Vec<_>>();
        let rows = self.shape.dependencies().rows();
        f.debug_map().entries(rows.map(|(index, row)| (self.shape.id(index), names(row)))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_another_graph_is_an_error_and_changes_nothing() {
        let mut other = Graph::new();
        let foreign = other.add("a").unwrap();
        let mut graph = Graph::new();
        let own = graph.add("a").unwrap();

        assert_ne!(own, foreign, "same place, another graph");
        let refused = graph.add_after("b", &[own, foreign]);
        assert_eq!(refused, Err(GraphError::ForeignKey { id: "b".into() }));
        assert_eq!(graph.len(), 1);
        assert_eq!(graph.get(foreign), None);
        assert_eq!(graph.id(foreign), None);
        assert_eq!(graph.dependencies(foreign).count(), 0);

        let b = graph.add_after("b", &[own]).unwrap();
        assert_eq!(graph.get(b), Some(&"b"), "the refused node left no trace");
    }

    #[test]
    fn a_duplicate_identity_is_an_error_and_changes_nothing() {
        let mut graph = Graph::new();
        let first = graph.add(("a", 1)).unwrap();
        assert_eq!(graph.add(("a", 2)), Err(GraphError::Duplicate { id: "a".into() }));
        assert_eq!(graph.get(first), Some(&("a", 1)));
        assert_eq!(graph.len(), 1);
    }

    #[test]
    fn a_dependency_given_twice_counts_once() {
        let mut graph = Graph::new();
        let a = graph.add("a").unwrap();
        let b = graph.add("b").unwrap();
        let c = graph.add_after("c", &[b, a, b, a]).unwrap();
        assert_eq!(graph.dependencies(c).collect::<Vec<_>>(), [b, a]);
        let d = graph.add_after("d", &[b]).unwrap();
        assert_eq!(graph.dependencies(d).collect::<Vec<_>>(), [b]);
    }

    #[test]
    fn nodes_are_found_by_identity_and_listed_in_insertion_order() {
        let mut graph = Graph::new();
        let b = graph.add("b".to_owned()).unwrap();
        let a = graph.add_after("a".to_owned(), &[b]).unwrap();
        assert_eq!(graph.key("a"), Some(a));
        assert_eq!(graph.key("c"), None);
        assert_eq!(graph.iter().map(|(key, _)| key).collect::<Vec<_>>(), [b, a]);
        assert_eq!((b.index(), a.index()), (0, 1));
        assert_eq!(format!("{graph:?}"), r#"{"b": [], "a": ["b"]}"#);
    }
}
