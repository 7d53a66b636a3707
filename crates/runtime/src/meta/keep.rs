//! What of the metadata is kept beyond the usual.

use std::sync::Arc;

use crate::intern::Str;

/// What a reader wants kept of an object's metadata beyond what every [`Meta`](super::Meta) has.
///
/// ```
/// use windlass_runtime::meta::Keep;
///
/// let keep = Keep::default().annotation("windlass.dev/digest").manager("harbor-core");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Keep {
    pub(super) annotations: Vec<Arc<str>>,
    pub(super) manager: Option<Arc<str>>,
}

impl Keep {
    /// Keep the annotation with this key.
    #[must_use]
    pub fn annotation(mut self, key: &str) -> Self {
        if let Err(at) = self.annotations.binary_search_by(|known| (**known).cmp(key)) {
            self.annotations.insert(at, key.into());
        }
        self
    }

    /// Keep the entries in `managedFields` that this manager wrote by server-side apply on the object itself
    /// (operation `Apply`, no subresource).
    #[must_use]
    pub fn manager(mut self, name: &str) -> Self {
        self.manager = Some(name.into());
        self
    }
}

/// What one field manager owns of an object, as the server wrote it down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedEntry {
    /// The `apiVersion` in whose terms [`fields`](Self::fields) is written.
    pub api_version: Str,
    /// `fieldsV1`: compact JSON, byte for byte. Interned: objects of one template own the same fields.
    pub fields: Str,
}
