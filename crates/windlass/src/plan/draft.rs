//! A node while the plan is drawn.

use super::node::Node;
use super::options::Options;

/// A node of a plan that is not finished.
pub(crate) struct Draft {
    pub(crate) id: String,
    pub(crate) node: Box<dyn Node>,
    pub(crate) after: Vec<Edge>,
    pub(crate) options: Options,
    pub(crate) enabled: bool,
    /// The nodes that replace it, if it is not planned.
    pub(crate) replaced_by: Option<Vec<Index>>,
}

/// A node that another one comes after.
#[derive(Clone, Copy)]
pub(crate) struct Edge {
    pub(crate) to: Index,
    /// True if the content of the earlier node flows into the later one.
    pub(crate) content: bool,
}

/// The position of a node. The objects that a plan asks for come before everything that it plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Index {
    /// An object that the plan asks for.
    Need(usize),
    /// A node that was planned.
    Planned(usize),
}

impl Draft {
    pub(crate) fn new(id: String, node: Box<dyn Node>) -> Self {
        Self { id, node, after: Vec::new(), options: Options::default(), enabled: true, replaced_by: None }
    }
}
