//! A node that cannot be drawn yet.

use futures::future::{BoxFuture, FutureExt as _};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use crate::live::Kind;
use crate::live::kind::id;
use crate::plan::node::{Node, Place, Sketched, Visit, Visited, Wait};
use crate::plan::{Plan, Planned};

impl Plan {
    /// Adds an object that cannot be drawn yet, because something that it depends on is not known. It keeps
    /// its place: nodes that come after it wait, and an existing object is left as it is. The plan is
    /// incomplete as long as a node is pending: nothing is pruned.
    ///
    /// For an object that is deliberately left as it is, use [`keep`](Self::keep).
    pub fn pending<K: Kind>(&mut self, name: impl AsRef<str>, why: impl Into<String>) -> Planned {
        let resource = ResourceType::of::<K>();
        let key = self.key(&resource, name.as_ref());
        self.node(id(&resource, &key, self.namespace()), Pending { resource, key, why: why.into() })
    }
}

struct Pending {
    resource: ResourceType,
    key: ObjectKey,
    why: String,
}

impl Node for Pending {
    fn describe(&self) -> String {
        format!("pending: {}", self.why)
    }

    fn object(&self) -> Option<(&ResourceType, &ObjectKey)> {
        Some((&self.resource, &self.key))
    }

    fn sketch(&self) -> Sketched<'_> {
        Sketched::Waits(&self.why)
    }

    fn is_incomplete(&self) -> bool {
        true
    }

    fn visit<'a>(&'a self, _: &'a Place, _: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        async { Ok(Wait::new(self.why.clone()).into()) }.boxed()
    }
}
