//! What an object says of itself, in the little room that a cache has.
//!
//! Promises: [`Meta`] decodes from the `metadata` of any object, skips what nobody asked for (`managedFields`
//! above all) without allocating, and holds about 150 bytes plus the name where kube's `ObjectMeta` holds kilobytes.
//!
//! Does not: keep annotations or managers' entries unless a [`Keep`] asks for them; nor write itself back: what is
//! applied is built by its author, never round-tripped from a cache.

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
    /// Which incarnation of that name.
    pub uid: Uid,
    /// Which version of that incarnation.
    pub resource_version: ResourceVersion,
    /// Counts changes of the spec; 0 where the kind does not count.
    pub generation: i64,
    /// When it was created, in seconds since 1970; 0 where not given.
    pub created: i64,
    /// Whether deletion was asked for (`deletionTimestamp` is set).
    pub deleting: bool,
    /// All labels.
    pub labels: Labels,
    /// The annotations that [`Keep`] asked for.
    pub annotations: Labels,
    /// Who owns it.
    pub owners: Box<[OwnerRef]>,
    /// Who must finish before it goes.
    pub finalizers: Box<[Str]>,
    /// The entries of the manager that [`Keep`] asked for: usually none or one.
    pub managed: Box<[ManagedEntry]>,
}

impl Meta {
    /// The name.
    pub fn name(&self) -> &str {
        self.key.name()
    }

    /// The namespace, `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        self.key.namespace()
    }

    /// The owner with `controller: true`, if there is one.
    pub fn controller(&self) -> Option<&OwnerRef> {
        self.owners.iter().find(|owner| owner.controller)
    }

    /// About how many bytes this takes on the heap. Shared strings count as pointers.
    pub fn heap_size(&self) -> usize {
        self.key.name().len()
            + 16
            + (self.labels.len() + self.annotations.len()) * size_of::<(Str, Str)>()
            + self.owners.len() * size_of::<OwnerRef>()
            + self.finalizers.len() * size_of::<Str>()
            + self.managed.len() * size_of::<ManagedEntry>()
    }

    /// From a full object's metadata, keeping no annotations and no managers' entries.
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
