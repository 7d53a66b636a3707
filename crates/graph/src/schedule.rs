//! The schedule of a run: which node may start, and which node holds back another. Kahn's algorithm, without
//! I/O.
//!
//! Each node counts what it comes after and is not settled yet. The last of those to
//! settle decides: all ready, and the node may start; else it is held back and settles
//! itself, which goes on to its own dependents. Every node and edge is looked at once.
//!
//! Because a node is judged only when everything before it is settled, whom it is said
//! to be held back by does not depend on who was faster.

use std::sync::Arc;

use crate::{
    ready::ReadySet,
    shape::{Csr, NONE, Shape},
};

/// The direction in which a graph is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Dependencies before dependents.
    Forward,
    /// Dependents before dependencies.
    Reverse,
}

/// A shape, and the direction to walk it in.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) shape: Arc<Shape>,
    pub(crate) direction: Direction,
    dependents: Csr,
    /// The last node's index; of no meaning without nodes.
    last: u32,
}

impl Order {
    pub(crate) fn new(shape: Arc<Shape>, direction: Direction) -> Self {
        let dependents = shape.dependencies().transposed();
        let last = shape.indices().next_back().unwrap_or_default();
        Order { shape, direction, dependents, last }
    }

    /// The nodes before a node in this direction, most significant first.
    pub(crate) fn before(&self, index: u32) -> &[u32] {
        match self.direction {
            Direction::Forward => self.shape.dependencies().row(index),
            Direction::Reverse => self.dependents.row(index),
        }
    }

    /// The nodes after a node in this direction.
    pub(crate) fn after(&self, index: u32) -> &[u32] {
        match self.direction {
            Direction::Forward => self.dependents.row(index),
            Direction::Reverse => self.shape.dependencies().row(index),
        }
    }

    /// A node's place in the start order; applied twice, the node again.
    fn rank(&self, index: u32) -> u32 {
        match self.direction {
            Direction::Forward => index,
            Direction::Reverse => self.last - index,
        }
    }
}

/// The state of a node in a run. A later variant is worse: the worst one names the culprit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NodeState {
    /// The node has not been settled.
    Open,
    Ready,
    /// Held back by another.
    Held,
    Waiting,
    Failed,
}

/// The state of a run: what is settled, what may start.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) order: Order,
    /// For each node, the number of nodes before it that are not settled.
    pending: Vec<u32>,
    states: Vec<NodeState>,
    /// For a held node, the node that directly holds it; `NONE` otherwise.
    pub(crate) blockers: Vec<u32>,
    /// For a held node, the root cause; for a node that waits or failed, the node itself; `NONE` otherwise.
    culprits: Vec<u32>,
    ready: ReadySet,
    /// Settled nodes whose dependents are still to be told. Empty between calls.
    news: Vec<u32>,
}

impl Schedule {
    pub(crate) fn new(order: Order) -> Self {
        let nodes = order.shape.len();
        let mut pending = vec![0u32; nodes];
        let mut ready = ReadySet::new(nodes);
        for index in order.shape.indices() {
            for _ in order.before(index) {
                pending[index as usize] += 1;
            }
            if pending[index as usize] == 0 {
                ready.insert(order.rank(index));
            }
        }
        Schedule {
            order,
            pending,
            states: vec![NodeState::Open; nodes],
            blockers: vec![NONE; nodes],
            culprits: vec![NONE; nodes],
            ready,
            news: Vec::new(),
        }
    }

    /// Returns true if a node can start.
    pub(crate) fn has_next(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next node to start: of those that may, the first in insertion order.
    pub(crate) fn next(&mut self) -> Option<u32> {
        self.ready.take_first().map(|rank| self.order.rank(rank))
    }

    /// Takes note of how a started node ended.
    pub(crate) fn settle(&mut self, index: u32, state: NodeState) {
        self.states[index as usize] = state;
        if state != NodeState::Ready {
            self.culprits[index as usize] = index;
        }
        self.news.push(index);
        while let Some(settled) = self.news.pop() {
            for &next in self.order.after(settled) {
                self.pending[next as usize] -= 1;
                if self.pending[next as usize] > 0 {
                    continue;
                }
                if let Some(blocker) = self.worst_before(next) {
                    self.states[next as usize] = NodeState::Held;
                    self.blockers[next as usize] = blocker;
                    self.culprits[next as usize] = self.culprits[blocker as usize];
                    self.news.push(next);
                } else {
                    self.ready.insert(self.order.rank(next));
                }
            }
        }
    }

    /// The node that holds another back: a failed one rather than a waiting one, then the first declared.
    fn worst_before(&self, index: u32) -> Option<u32> {
        let mut worst = None;
        for &before in self.order.before(index) {
            if self.states[before as usize] == NodeState::Ready {
                continue;
            }
            let root = self.states[self.culprits[before as usize] as usize];
            if worst.is_none_or(|(known, _)| root > known) {
                worst = Some((root, before));
            }
        }
        worst.map(|(_, blocker)| blocker)
    }

    /// Held nodes, each with the root of it.
    pub(crate) fn held(&self) -> impl Iterator<Item = (u32, u32)> {
        let states = (0u32..).zip(&self.states).zip(&self.culprits);
        states
            .filter(|((_, state), _)| **state == NodeState::Held)
            .map(|((index, _), culprit)| (index, *culprit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Graph;

    fn schedule(nodes: &[(&'static str, &[&str])], direction: Direction) -> Schedule {
        let graph = Graph::from_declared(nodes.iter().map(|(id, after)| (*id, after.iter()))).unwrap();
        Schedule::new(Order::new(graph.shape, direction))
    }

    fn startable(schedule: &mut Schedule) -> Vec<u32> {
        std::iter::from_fn(|| schedule.next()).collect()
    }

    const DIAMOND: &[(&str, &[&str])] =
        &[("top", &[]), ("left", &["top"]), ("right", &["top"]), ("bottom", &["right", "left"])];

    #[test]
    fn nodes_start_in_insertion_order_and_backwards_in_reverse() {
        let mut forward = schedule(&[("a", &[]), ("b", &[]), ("c", &[])], Direction::Forward);
        assert_eq!(startable(&mut forward), [0, 1, 2]);
        let mut reverse = schedule(&[("a", &[]), ("b", &[]), ("c", &[])], Direction::Reverse);
        assert_eq!(startable(&mut reverse), [2, 1, 0]);
    }

    #[test]
    fn a_node_starts_when_the_last_before_it_is_ready() {
        let mut schedule = schedule(DIAMOND, Direction::Forward);
        assert_eq!(startable(&mut schedule), [0]);
        schedule.settle(0, NodeState::Ready);
        assert_eq!(startable(&mut schedule), [1, 2]);
        schedule.settle(2, NodeState::Ready);
        assert!(!schedule.has_next());
        schedule.settle(1, NodeState::Ready);
        assert_eq!(startable(&mut schedule), [3]);
    }

    #[test]
    fn in_reverse_the_dependents_go_first() {
        let mut schedule = schedule(DIAMOND, Direction::Reverse);
        assert_eq!(startable(&mut schedule), [3]);
        schedule.settle(3, NodeState::Ready);
        assert_eq!(startable(&mut schedule), [2, 1]);
        schedule.settle(1, NodeState::Waiting);
        schedule.settle(2, NodeState::Ready);
        assert_eq!(schedule.held().collect::<Vec<_>>(), [(0, 1)]);
    }

    #[test]
    fn a_failure_is_named_before_a_wait_whoever_came_first() {
        for order in [[1, 2], [2, 1]] {
            let mut schedule = schedule(DIAMOND, Direction::Forward);
            schedule.settle(0, NodeState::Ready);
            for index in order {
                schedule.settle(index, if index == 1 { NodeState::Failed } else { NodeState::Waiting });
            }
            assert_eq!(schedule.held().collect::<Vec<_>>(), [(3, 1)]);
        }
    }

    #[test]
    fn among_equals_the_first_declared_dependency_is_named() {
        let mut schedule = schedule(DIAMOND, Direction::Forward);
        schedule.settle(0, NodeState::Ready);
        schedule.settle(1, NodeState::Failed);
        schedule.settle(2, NodeState::Failed);
        assert_eq!(schedule.held().collect::<Vec<_>>(), [(3, 2)], "`bottom` names `right` first");
    }

    #[test]
    fn a_held_node_passes_on_the_root_and_its_weight() {
        let nodes: &[(&str, &[&str])] =
            &[("waits", &[]), ("fails", &[]), ("held", &["fails"]), ("last", &["waits", "held"])];
        let mut schedule = schedule(nodes, Direction::Forward);
        schedule.settle(0, NodeState::Waiting);
        schedule.settle(1, NodeState::Failed);
        assert_eq!(schedule.held().collect::<Vec<_>>(), [(2, 1), (3, 1)]);
        assert_eq!(schedule.blockers, [NONE, NONE, 1, 2]);
    }
}
