//! Graphs from declarations: edges by name, in any order.
//!
//! Here a cycle can be written, so it is looked for, and named.

use std::sync::Arc;

use crate::{
    Graph, GraphError, Node,
    shape::{Csr, NONE, Shape},
};

impl<N: Node> Graph<N> {
    /// Builds a graph from nodes that name what they come after.
    ///
    /// A node may name one that is declared later. Insertion order is the order of
    /// declaration.
    ///
    /// ```
    /// use windlass_graph::{Graph, GraphError};
    ///
    /// let graph = Graph::from_declared([("server", vec!["config"]), ("config", vec![])])?;
    /// assert_eq!(graph.len(), 2);
    ///
    /// let cycle = Graph::from_declared([("a", ["b"]), ("b", ["c"]), ("c", ["b"])]);
    /// assert_eq!(cycle.err(), Some(GraphError::Cycle { path: vec!["b".into(), "c".into()] }));
    /// # Ok::<(), GraphError>(())
    /// ```
    pub fn from_declared<I, D>(declared: I) -> Result<Self, GraphError>
    where
        I: IntoIterator<Item = (N, D)>,
        D: IntoIterator<Item: AsRef<str>>,
    {
        let mut graph = Graph::new();
        let mut shape = Shape::new(graph.shape.graph);
        let mut named = Vec::new();
        for (node, dependencies) in declared {
            let id: Arc<str> = node.id().into();
            let index = shape.vacancy(&id)?;
            shape.name(id, index);
            graph.push(node);
            named.push(dependencies);
        }
        for (index, dependencies) in shape.indices().zip(named) {
            let mut row = Vec::new();
            for name in dependencies {
                let name = name.as_ref();
                row.push(shape.find(name).ok_or_else(|| GraphError::UnknownDependency {
                    id: Arc::clone(shape.id(index)),
                    dependency: name.into(),
                })?);
            }
            shape.depend(graph.distinct(index, row.into_iter()))?;
        }
        if let Some(cycle) = find_cycle(shape.dependencies()) {
            let path = cycle.into_iter().map(|index| Arc::clone(shape.id(index))).collect();
            return Err(GraphError::Cycle { path });
        }
        graph.shape = Arc::new(shape);
        Ok(graph)
    }
}

/// One cycle, each node depending on the next, beginning with its smallest index.
fn find_cycle(dependencies: &Csr) -> Option<Vec<u32>> {
    let dependents = dependencies.transposed();
    let mut pending: Vec<usize> = dependencies.rows().map(|(_, row)| row.len()).collect();
    let mut free: Vec<u32> =
        dependencies.rows().filter(|(_, row)| row.is_empty()).map(|(index, _)| index).collect();
    while let Some(index) = free.pop() {
        for &dependent in dependents.row(index) {
            pending[dependent as usize] -= 1;
            if pending[dependent as usize] == 0 {
                free.push(dependent);
            }
        }
    }

    // What is left is on a cycle or behind one. Each such node depends on another, so
    // walking along those must come back to where it has been.
    let stuck = |index: u32| pending[index as usize] > 0;
    let mut at = dependencies.rows().map(|(index, _)| index).find(|&index| stuck(index))?;
    let mut walked: Vec<u32> = Vec::new();
    let mut step = vec![NONE; pending.len()];
    while step[at as usize] == NONE {
        step[at as usize] = u32::try_from(walked.len()).ok()?;
        walked.push(at);
        at = dependencies.row(at).iter().copied().find(|&dependency| stuck(dependency))?;
    }
    let mut cycle = walked.split_off(step[at as usize] as usize);
    let first = cycle.iter().enumerate().min_by_key(|(_, index)| **index).map_or(0, |(place, _)| place);
    cycle.rotate_left(first);
    Some(cycle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declare(nodes: &[(&'static str, &[&str])]) -> Result<Graph<&'static str>, GraphError> {
        Graph::from_declared(nodes.iter().map(|(id, after)| (*id, after.iter())))
    }

    fn cycle_of(nodes: &[(&'static str, &[&str])]) -> Vec<Arc<str>> {
        match declare(nodes) {
            Err(GraphError::Cycle { path }) => path,
            other => panic!("no cycle but {other:?}"),
        }
    }

    #[test]
    fn edges_may_name_what_is_declared_later() {
        let graph = declare(&[("c", &["b", "a", "b"]), ("b", &["a"]), ("a", &[])]).unwrap();
        assert_eq!(format!("{graph:?}"), r#"{"c": ["b", "a"], "b": ["a"], "a": []}"#);
        let c = graph.key("c").unwrap();
        assert_eq!(graph.get(c), Some(&"c"));
    }

    #[test]
    fn a_declared_graph_takes_more_nodes() {
        let mut graph = declare(&[("b", &["a"]), ("a", &[])]).unwrap();
        let b = graph.key("b").unwrap();
        let c = graph.add_after("c", &[b, b]).unwrap();
        assert_eq!(graph.dependencies(c).collect::<Vec<_>>(), [b]);
    }

    #[test]
    fn nothing_declared_is_an_empty_graph() {
        assert!(declare(&[]).unwrap().is_empty());
    }

    #[test]
    fn a_name_that_nobody_declares_is_an_error() {
        let error = declare(&[("a", &["b"])]).unwrap_err();
        assert_eq!(error, GraphError::UnknownDependency { id: "a".into(), dependency: "b".into() });
    }

    #[test]
    fn a_duplicate_declaration_is_an_error() {
        let error = declare(&[("a", &[]), ("a", &[])]).unwrap_err();
        assert_eq!(error, GraphError::Duplicate { id: "a".into() });
    }

    #[test]
    fn a_node_after_itself_is_a_cycle_of_one() {
        assert_eq!(cycle_of(&[("b", &[]), ("a", &["b", "a"])]), ["a".into()]);
    }

    #[test]
    fn a_cycle_is_named_without_what_leads_into_it_or_out_of_it() {
        let path = cycle_of(&[
            ("behind", &["z"]),
            ("x", &["y", "free"]),
            ("z", &["x"]),
            ("y", &["free", "z"]),
            ("free", &[]),
        ]);
        assert_eq!(path, ["x".into(), "y".into(), "z".into()]);
    }
}
