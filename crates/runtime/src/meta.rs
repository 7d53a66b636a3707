//! Object metadata in a compact form for caches.
//!
//! Promises: [`Meta`] decodes from the `metadata` of any object, skips fields that were not requested
//! (`managedFields` above all) without allocating, and takes about 150 bytes plus the name where kube's
//! `ObjectMeta` takes kilobytes.
//!
//! Does not: keep annotations or managers' entries unless a [`Keep`] requests them; nor serialize itself:
//! what is applied is built by the caller, never round-tripped from a cache.

mod decode;
mod keep;
mod labels;
mod owner;
mod uid;
mod version;

pub use keep::{Keep, ManagedEntry};
pub use labels::Labels;
pub use owner::OwnerRef;
pub use uid::{InvalidUid, Uid};
pub use version::ResourceVersion;

pub(crate) use decode::{decode_managers, managers_wanted, take_stashed};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::intern::Str;
use crate::key::ObjectKey;

/// The metadata of a cached object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The uid of the object.
    pub uid: Uid,
    /// The resource version.
    pub resource_version: ResourceVersion,
    /// The generation, which counts changes of the spec; 0 if the kind has none.
    pub generation: i64,
    /// The creation time, in seconds since 1970; 0 if it is missing.
    pub created: i64,
    /// True if the object is marked for deletion (`deletionTimestamp` is set).
    pub deleting: bool,
    /// All labels of the object.
    pub labels: Labels,
    /// The annotations requested by [`Keep`].
    pub annotations: Labels,
    /// The owner references.
    pub owners: Box<[OwnerRef]>,
    /// The finalizers of the object.
    pub finalizers: Box<[Str]>,
    /// The `managedFields` entries of the manager requested by [`Keep`]: usually none or one.
    pub managed: Box<[ManagedEntry]>,
}

impl Meta {
    /// Returns the name of the object.
    pub fn name(&self) -> &str {
        self.key.name()
    }

    /// The namespace; `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        self.key.namespace()
    }

    /// The owner with `controller: true`, if there is one.
    pub fn controller(&self) -> Option<&OwnerRef> {
        self.owners.iter().find(|owner| owner.controller)
    }

    /// Returns the approximate heap size in bytes. Shared strings count as pointers.
    pub fn heap_size(&self) -> usize {
        self.key.name().len()
            + 16
            + (self.labels.len() + self.annotations.len()) * size_of::<(Str, Str)>()
            + self.owners.len() * size_of::<OwnerRef>()
            + self.finalizers.len() * size_of::<Str>()
            + self.managed.len() * size_of::<ManagedEntry>()
    }

    /// Converts a full object's metadata, without annotations and managers' entries.
    pub(crate) fn from_object_meta(meta: &ObjectMeta) -> Self {
        let key =
            ObjectKey::new(meta.namespace.as_ref().map(Str::from), meta.name.as_deref().unwrap_or_default());
        Self {
            key,
            uid: meta.uid.as_deref().and_then(|uid| uid.parse().ok()).unwrap_or_default(),
            resource_version: meta.resource_version.as_deref().map(ResourceVersion::from).unwrap_or_default(),
            generation: meta.generation.unwrap_or_default(),
            created: meta.creation_timestamp.as_ref().map(|time| time.0.as_second()).unwrap_or_default(),
            deleting: meta.deletion_timestamp.is_some(),
            labels: meta.labels.iter().flatten().map(|(k, v)| (Str::from(k), Str::from(v))).collect(),
            annotations: Labels::default(),
            owners: meta.owner_references.iter().flatten().map(OwnerRef::from).collect(),
            finalizers: meta.finalizers.iter().flatten().map(Str::from).collect(),
            managed: Box::default(),
        }
    }
}
