//! An object that is deliberately left as it is.

use futures::future::{BoxFuture, FutureExt as _};
use windlass_graph::Progress;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use crate::live::Kind;
use crate::live::kind::id;
use crate::plan::node::{Node, Place, Visit, Visited};
use crate::plan::{Plan, Planned};

impl Plan {
    /// Adds an owned object that is deliberately left as it is, such as a StatefulSet that left the spec and
    /// still has members: it is neither written nor pruned. Unlike a [pending](Self::pending) object it is
    /// known, so the plan is complete, and nodes that come after it do not wait.
    pub fn keep<K: Kind>(&mut self, name: impl AsRef<str>) -> Planned {
        let resource = ResourceType::of::<K>();
        let key = self.key(&resource, name.as_ref());
        self.node(id(&resource, &key, self.namespace()), Keep { resource, key })
    }
}

struct Keep {
    resource: ResourceType,
    key: ObjectKey,
}

impl Node for Keep {
    fn describe(&self) -> String {
        "keep as it is".to_owned()
    }

    fn object(&self) -> Option<(&ResourceType, &ObjectKey)> {
        Some((&self.resource, &self.key))
    }

    fn visit<'a>(&'a self, _: &'a Place, _: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        async { Ok(Progress::Ready) }.boxed()
    }
}
