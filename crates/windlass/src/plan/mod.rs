//! The plan: the resources of an owner, and their order.
//!
//! It promises: drawing twice gives the same plan; errors in a plan (a duplicate, an object without a name)
//! are found when the plan is [finished](Plan::finish), before anything is written; a cyclic order cannot be
//! expressed; this module does no I/O.
//!
//! The methods that add nodes to a plan, and the behaviour of each kind of node, are in `nodes`.

pub(crate) mod desired;
pub(crate) mod digest;
pub(crate) mod draft;
pub(crate) mod draw;
pub(crate) mod drawn;
pub(crate) mod kinds;
pub(crate) mod needs;
pub(crate) mod node;
pub(crate) mod options;
pub(crate) mod owner;
mod planned;
mod random;
mod takeover;

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use parking_lot::Mutex;
use windlass_runtime::intern::Str;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

pub use self::desired::Desired;
pub use self::digest::DigestKey;

pub use self::kinds::Kinds;
pub use self::needs::Needs;
pub use self::node::Wait;
pub use self::options::{Conflicts, Immutable};
pub use self::planned::Planned;
pub use self::random::Random;
pub use self::takeover::{Predecessor, Takeover};

use self::draft::{Draft, Index};
use self::drawn::Drawn;
use self::node::{Node, Place, Visit, Visited};
use crate::error::{NodeError, PlanError, Reason};

/// The result of drawing a blueprint: nodes, and the order between them.
///
/// Every method that adds a node returns a handle, for [ordering](Planned::after) and for the node's options.
pub struct Plan {
    drafts: Drafts,
    namespace: Option<String>,
}

/// The nodes of a plan that is being drawn, shared by the plan, by its needs and by all handles.
pub(crate) type Drafts = Arc<Mutex<Drafting>>;

#[derive(Default)]
pub(crate) struct Drafting {
    pub(crate) needs: Vec<Draft>,
    pub(crate) planned: Vec<Draft>,
    /// The errors in the plan, in the order in which they were found.
    pub(crate) errors: Vec<PlanError>,
    /// Advice for the user: settings that work but should be changed.
    pub(crate) advice: Vec<String>,
}

impl Drafting {
    pub(crate) fn get(&self, index: Index) -> Option<&Draft> {
        match index {
            Index::Need(at) => self.needs.get(at),
            Index::Planned(at) => self.planned.get(at),
        }
    }

    pub(crate) fn get_mut(&mut self, index: Index) -> Option<&mut Draft> {
        match index {
            Index::Need(at) => self.needs.get_mut(at),
            Index::Planned(at) => self.planned.get_mut(at),
        }
    }
}

impl Plan {
    /// Returns an empty plan; objects without a namespace are placed in this one. Blueprints get their plan
    /// from the controller.
    pub fn new(namespace: Option<&str>) -> Self {
        Self { drafts: Arc::default(), namespace: namespace.map(str::to_owned) }
    }

    /// Advises the user about a setting that works but should be changed. Say what to do; never include a
    /// secret. The status shows it as the condition `Advice` as long as the plan gives it, and nothing waits
    /// for it.
    pub fn advise(&mut self, advice: impl Into<String>) {
        self.drafts.lock().advice.push(advice.into());
    }

    /// Returns the namespace of objects that name none.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Adds a node.
    pub(crate) fn node(&mut self, id: String, node: impl Node) -> Planned {
        let mut drafts = self.drafts.lock();
        drafts.planned.push(Draft::new(id, Box::new(node)));
        Planned::new(Arc::clone(&self.drafts), Index::Planned(drafts.planned.len() - 1))
    }

    /// Adds a node that may be an error: the error fails the plan when it is finished.
    pub(crate) fn node_or(&mut self, node: Result<(String, impl Node), PlanError>) -> Planned {
        match node {
            Ok((id, node)) => self.node(id, node),
            Err(error) => {
                self.drafts.lock().errors.push(error);
                self.node("broken".to_owned(), Broken)
            }
        }
    }

    /// Returns the key of an object of the plan.
    pub(crate) fn key(&self, resource: &ResourceType, name: &str) -> ObjectKey {
        let namespace = self.namespace.as_deref().filter(|_| resource.namespaced).map(Str::new);
        ObjectKey::new(namespace, name)
    }

    pub(crate) fn drafts(&self) -> &Drafts {
        &self.drafts
    }

    /// Returns the nodes and edges, or all errors in them.
    pub(crate) fn finish(self) -> Result<Drawn, PlanError> {
        drawn::finish(std::mem::take(&mut *self.drafts.lock()))
    }
}

/// The node of an object that could not be described; its error fails the plan.
struct Broken;

impl Node for Broken {
    fn describe(&self) -> String {
        "broken".to_owned()
    }

    fn visit<'a>(&'a self, _: &'a Place, _: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        async { Err(NodeError::terminal(Reason::DrawFailed, "it could not be drawn")) }.boxed()
    }
}
