//! Cycles in a small directed graph.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Nodes that reach each other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Knot {
    /// All of them.
    pub(super) nodes: BTreeSet<usize>,
    /// A shortest way from one of them back to itself, without the repeated end.
    pub(super) cycle: Vec<usize>,
}

/// Finds the cycles of a graph: one knot for each set of nodes that reach each other.
pub(super) fn knots(edges: impl IntoIterator<Item = (usize, usize)>) -> Vec<Knot> {
    let mut next: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (from, to) in edges {
        next.entry(from).or_default().insert(to);
    }
    let mut seen = BTreeSet::new();
    let mut knots = Vec::new();
    for node in next.keys() {
        if seen.contains(node) || way_back(&next, *node).is_none() {
            continue;
        }
        let reached = reachable(&next, *node);
        let nodes: BTreeSet<usize> =
            reached.into_iter().filter(|other| reachable(&next, *other).contains(node)).collect();
        let cycle = nodes.iter().filter_map(|node| way_back(&next, *node)).min_by_key(Vec::len);
        seen.extend(nodes.iter().copied());
        knots.extend(cycle.map(|cycle| Knot { nodes, cycle }));
    }
    knots
}

fn reachable(next: &BTreeMap<usize, BTreeSet<usize>>, start: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = vec![start];
    while let Some(node) = open.pop() {
        open.extend(next.get(&node).into_iter().flatten().copied().filter(|node| reached.insert(*node)));
    }
    reached
}

/// The shortest way from a node back to itself.
fn way_back(next: &BTreeMap<usize, BTreeSet<usize>>, start: usize) -> Option<Vec<usize>> {
    let mut before = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(node) = open.pop_front() {
        for after in next.get(&node).into_iter().flatten() {
            if *after == start {
                let mut way: Vec<usize> =
                    std::iter::successors(Some(node), |node| before.get(node).copied()).collect();
                way.reverse();
                return Some(way);
            }
            if !before.contains_key(after) {
                before.insert(*after, node);
                open.push_back(*after);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_without_cycles_has_no_knots() {
        assert!(knots([(1, 2), (1, 3), (2, 4), (3, 4)]).is_empty());
    }

    #[test]
    fn a_knot_has_all_its_nodes_and_a_shortest_cycle() {
        let found = knots([(0, 1), (1, 2), (2, 3), (3, 1), (3, 2), (3, 9), (5, 6), (6, 5)]);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], Knot { nodes: [1, 2, 3].into(), cycle: vec![2, 3] });
        assert_eq!(found[1], Knot { nodes: [5, 6].into(), cycle: vec![5, 6] });
    }
}
