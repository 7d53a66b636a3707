//! Object keys: namespace and name.
//!
//! Promises: cheap to clone, hash and order; prints as `namespace/name`, or `name` for a cluster-scoped
//! object. Does not: contain the kind (queues and caches are of one kind) or the uid.

use std::fmt;
use std::sync::Arc;

use crate::intern::Str;

/// Namespace and name of an object. Ordered by namespace first, so that the objects of one namespace are
/// adjacent.
///
/// ```
/// use windlass_runtime::key::ObjectKey;
///
/// let key = ObjectKey::namespaced("shop", "web");
/// assert_eq!(key.to_string(), "shop/web");
/// assert_eq!(ObjectKey::cluster("node-1").to_string(), "node-1");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    namespace: Option<Str>,
    // Names are nearly unique within a kind: shared between key and object, but not interned.
    name: Arc<str>,
}

impl ObjectKey {
    /// Creates the key of a namespaced object.
    pub fn namespaced(namespace: impl Into<Str>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: Some(namespace.into()), name: name.into() }
    }

    /// Creates the key of a cluster-scoped object.
    pub fn cluster(name: impl Into<Arc<str>>) -> Self {
        Self { namespace: None, name: name.into() }
    }

    /// The namespace, which can be cloned without copying the text.
    pub(crate) fn shared_namespace(&self) -> Option<&Str> {
        self.namespace.as_ref()
    }

    /// Creates a key from an optional namespace and a name, as in an object's metadata.
    pub fn new(namespace: Option<Str>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace, name: name.into() }
    }

    /// The namespace; `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Returns the name of the object.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_by_namespace_then_name_and_cluster_scoped_first() {
        let mut keys = [
            ObjectKey::namespaced("b", "a"),
            ObjectKey::namespaced("a", "b"),
            ObjectKey::cluster("z"),
            ObjectKey::namespaced("a", "a"),
        ];
        keys.sort();
        let text: Vec<String> = keys.iter().map(ToString::to_string).collect();
        assert_eq!(text, ["z", "a/a", "a/b", "b/a"]);
    }
}
