//! The bare structure of a graph: names and edges, without the nodes' content.
//!
//! A [`Shape`] is shared between a graph and the reports of its runs, so a report
//! outlives its graph and costs no copy of names or edges. Rows of edges lie one
//! after another in one vector (compressed sparse rows): two words of bookkeeping
//! per node and half a word per edge, however the edges are spread.

use std::{collections::HashMap, sync::Arc};

use crate::GraphError;

/// "No node", where an index is expected.
pub(crate) const NONE: u32 = u32::MAX;

/// One row of nodes per node, all rows in one vector.
#[derive(Debug, Clone, Default)]
pub(crate) struct Csr {
    /// The end of each row; a row begins at the end of the row before.
    ends: Vec<u32>,
    targets: Vec<u32>,
}

impl Csr {
    /// The row of a node.
    pub(crate) fn row(&self, index: u32) -> &[u32] {
        let index = index as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.targets[start as usize..self.ends[index] as usize]
    }

    /// All rows, each with its index.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u32, &[u32])> {
        (0u32..).zip(&self.ends).map(|(index, _)| (index, self.row(index)))
    }

    /// Appends a row; takes none of it when the edges become too many.
    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = u32>) -> Result<(), GraphError> {
        let before = self.targets.len();
        self.targets.extend(row);
        match u32::try_from(self.targets.len()) {
            Ok(end) if end != NONE => {
                self.ends.push(end);
                Ok(())
            }
            _ => {
                self.targets.truncate(before);
                Err(GraphError::TooLarge)
            }
        }
    }

    /// The same edges seen from their other ends, each row in ascending order.
    pub(crate) fn transposed(&self) -> Csr {
        // The counting sort's usual three steps: lengths, then starts, then every
        // entry moves its row's cursor, which leaves each cursor at its row's end.
        let mut cursors = vec![0u32; self.ends.len()];
        for &target in &self.targets {
            cursors[target as usize] += 1;
        }
        let mut start = 0;
        for cursor in &mut cursors {
            start += std::mem::replace(cursor, start);
        }
        let mut targets = vec![0; self.targets.len()];
        for (index, row) in self.rows() {
            for &target in row {
                let cursor = &mut cursors[target as usize];
                targets[*cursor as usize] = index;
                *cursor += 1;
            }
        }
        Csr { ends: cursors, targets }
    }
}

/// Names and dependencies of all nodes, in insertion order.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    /// The identity of the graph, which its keys carry.
    pub(crate) graph: u64,
    ids: Vec<Arc<str>>,
    index: HashMap<Arc<str>, u32>,
    dependencies: Csr,
}

impl Shape {
    pub(crate) fn new(graph: u64) -> Self {
        Shape { graph, ids: Vec::new(), index: HashMap::new(), dependencies: Csr::default() }
    }

    /// The index the next node gets, if its identity is free and there is room.
    pub(crate) fn vacancy(&self, id: &str) -> Result<u32, GraphError> {
        if let Some((known, _)) = self.index.get_key_value(id) {
            return Err(GraphError::Duplicate { id: Arc::clone(known) });
        }
        match u32::try_from(self.ids.len()) {
            Ok(index) if index != NONE => Ok(index),
            _ => Err(GraphError::TooLarge),
        }
    }

    /// Adds a name, for which [`vacancy`](Self::vacancy) gave the index.
    pub(crate) fn name(&mut self, id: Arc<str>, index: u32) {
        self.ids.push(Arc::clone(&id));
        self.index.insert(id, index);
    }

    /// Sets the dependencies of the next node that has none set.
    pub(crate) fn depend(&mut self, row: impl IntoIterator<Item = u32>) -> Result<(), GraphError> {
        self.dependencies.push(row)
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn id(&self, index: u32) -> &Arc<str> {
        &self.ids[index as usize]
    }

    pub(crate) fn find(&self, id: &str) -> Option<u32> {
        self.index.get(id).copied()
    }

    pub(crate) fn indices(&self) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + use<> {
        // `vacancy` keeps the number of nodes below the sentinel.
        0..u32::try_from(self.ids.len()).unwrap_or(NONE)
    }

    pub(crate) fn dependencies(&self) -> &Csr {
        &self.dependencies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csr(rows: &[&[u32]]) -> Csr {
        let mut csr = Csr::default();
        for row in rows {
            csr.push(row.iter().copied()).unwrap();
        }
        csr
    }

    #[test]
    fn rows_come_back_as_they_were_pushed() {
        let csr = csr(&[&[], &[0], &[], &[2, 0, 1], &[]]);
        assert_eq!(csr.row(0), [] as [u32; 0]);
        assert_eq!(csr.row(1), [0]);
        assert_eq!(csr.row(3), [2, 0, 1]);
        assert_eq!(csr.row(4), [] as [u32; 0]);
    }

    #[test]
    fn the_transposed_rows_are_ascending() {
        let transposed = csr(&[&[], &[0], &[], &[2, 0, 1], &[0]]).transposed();
        let rows: Vec<&[u32]> = transposed.rows().map(|(_, row)| row).collect();
        assert_eq!(rows, [&[1, 3, 4][..], &[3], &[3], &[], &[]]);
    }
}
