//! A node that cannot be drawn yet.

use futures::future::{BoxFuture, FutureExt as _};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use crate::live::Kind;
use crate::live::kind::id;
use crate::plan::node::{Node, Place, Sketched, Visit, Visited, Wait};
use crate::plan::{Plan, Planned};

impl Plan {
    /// An object that cannot be drawn yet, because something that it depends on is not known. It keeps its place: nodes that
    /// come after it wait, and if the object exists, it is left as it is. The plan is incomplete as long as something is
    /// pending: nothing is pruned.
    ///
    /// If the object is left alone on purpose, [`keep`](Self::keep) it.
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
