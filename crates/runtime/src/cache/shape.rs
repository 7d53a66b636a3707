//! Shapes: the fields of a kind that a reader needs.
//!
//! A shape is a plain struct that serde decodes from an object's JSON. Other fields are skipped while
//! scanning, never allocated. It needs one field of type [`Meta`], and three lines that name its kind
//! ([`OfKind`]):
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use serde::Deserialize;
//! use windlass_runtime::cache::{Digest, OfKind, Shape};
//! use windlass_runtime::intern::Str;
//! use windlass_runtime::meta::Meta;
//! use windlass_runtime::resource::ResourceType;
//!
//! /// What the scheduler view of this operator needs of a Pod.
//! #[derive(Debug, Deserialize)]
//! struct PodShape {
//!     metadata: Meta,
//!     #[serde(default)]
//!     spec: Spec,
//!     #[serde(default)]
//!     status: Status,
//! }
//!
//! #[derive(Debug, Default, Deserialize)]
//! #[serde(rename_all = "camelCase", default)]
//! struct Spec {
//!     /// Interned: every Pod of a node shares it.
//!     node_name: Option<Str>,
//!     /// Only ever compared: 32 bytes instead of the containers.
//!     containers: Digest,
//! }
//!
//! #[derive(Debug, Default, Deserialize)]
//! #[serde(default)]
//! struct Status {
//!     phase: Option<Str>,
//! }
//!
//! impl Shape for PodShape {
//!     fn meta(&self) -> &Meta {
//!         &self.metadata
//!     }
//! }
//!
//! impl OfKind for PodShape {
//!     fn resource() -> ResourceType {
//!         ResourceType::of::<Pod>()
//!     }
//! }
//! ```
//!
//! A shape that fits many kinds (all have `status.conditions`) has no kind of its own: it is read with
//! [`Cache::reader_of`](super::Cache::reader_of), and its code is compiled once.
//!
//! Three shapes are provided. [`MetadataOnly<K>`] requests only metadata from the server, so that the content
//! of a Secret never enters the process; [`Full<K>`] keeps the whole typed object without its
//! `managedFields`; [`Packed<K>`](super::Packed) keeps the same as JSON, in less than half of the memory, and
//! decodes it on demand.
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use windlass_runtime::cache::{Full, MetadataOnly, Shape};
//!
//! type SecretMetadata = MetadataOnly<Secret>;
//! type WholeConfigMap = Full<ConfigMap>;
//! assert!(!SecretMetadata::needs_body() && WholeConfigMap::needs_body());
//! ```

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use kube::Resource;
use serde::de::{Deserialize, DeserializeOwned, Deserializer};

use super::strip_managed_fields::WithoutManagedFields;
use crate::meta::{Meta, take_stashed};
use crate::resource::{ResourceType, ScopeKind};

/// The fields of a kind that a reader needs. The [module](self) shows how to write one.
pub trait Shape: DeserializeOwned + Send + Sync + 'static {
    /// The object's metadata.
    fn meta(&self) -> &Meta;

    /// Returns true if the shape has fields beside metadata. If no reader of a watch needs them, the server
    /// sends only metadata.
    fn needs_body() -> bool {
        true
    }

    /// Returns the approximate size of one object in bytes, for the cache's size metric. Override it for
    /// shapes that hold much on the heap.
    fn approximate_size(&self) -> usize {
        size_of::<Self>() + self.meta().heap_size()
    }
}

/// A shape of exactly one kind.
pub trait OfKind: Shape {
    /// The kind of this shape.
    fn resource() -> ResourceType;
}

/// Only the metadata of a `K`; the server sends nothing else.
pub struct MetadataOnly<K> {
    meta: Meta,
    kind: PhantomData<fn() -> K>,
}

impl<K> Deref for MetadataOnly<K> {
    type Target = Meta;

    fn deref(&self) -> &Meta {
        &self.meta
    }
}

impl<K> fmt::Debug for MetadataOnly<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.meta.fmt(f)
    }
}

impl<'de, K> Deserialize<'de> for MetadataOnly<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        struct Object {
            metadata: Meta,
        }

        Ok(Self { meta: Object::deserialize(deserializer)?.metadata, kind: PhantomData })
    }
}

impl<K> Shape for MetadataOnly<K>
where
    K: Resource<DynamicType = (), Scope: ScopeKind> + 'static,
{
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn needs_body() -> bool {
        false
    }
}

impl<K> OfKind for MetadataOnly<K>
where
    K: Resource<DynamicType = (), Scope: ScopeKind> + 'static,
{
    fn resource() -> ResourceType {
        ResourceType::of::<K>()
    }
}

/// A whole `K`, without `managedFields`: they are skipped while decoding, which halves time and memory.
pub struct Full<K> {
    meta: Meta,
    object: K,
}

impl<K> Full<K> {
    /// Returns the whole object.
    pub fn object(&self) -> &K {
        &self.object
    }

    pub(super) fn into_parts(self) -> (Meta, K) {
        (self.meta, self.object)
    }
}

impl<K> Deref for Full<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.object
    }
}

// The object may be a Secret, so its content is not part of the Debug output.
impl<K> fmt::Debug for Full<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Full").field("meta", &self.meta).finish_non_exhaustive()
    }
}

impl<'de, K> Deserialize<'de> for Full<K>
where
    K: Resource + Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = K::deserialize(WithoutManagedFields(deserializer));
        // Taken also on failure: it must not be left for the next object.
        let annotations = object.as_ref().ok().and_then(|object| object.meta().annotations.as_ref());
        let kept = take_stashed(annotations.into_iter().flatten());
        let object = object?;
        let mut meta = Meta::from_object_meta(object.meta());
        meta.managed = kept.managed;
        meta.annotations = kept.annotations;
        Ok(Self { meta, object })
    }
}

impl<K> Shape for Full<K>
where
    K: Resource<DynamicType = (), Scope: ScopeKind> + DeserializeOwned + Send + Sync + 'static,
{
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl<K> OfKind for Full<K>
where
    K: Resource<DynamicType = (), Scope: ScopeKind> + DeserializeOwned + Send + Sync + 'static,
{
    fn resource() -> ResourceType {
        ResourceType::of::<K>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::Keep;
    use k8s_openapi::api::core::v1::ConfigMap;

    const CONFIG: &str = r#"{"apiVersion":"v1","kind":"ConfigMap",
        "metadata":{"name":"c","namespace":"n","uid":"0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d","resourceVersion":"7",
          "annotations":{"a":"1","b":"2"},
          "managedFields":[{"manager":"m","operation":"Apply","apiVersion":"v1","fieldsV1":{"f:data":{}}}]},
        "data":{"k":"v"}}"#;

    #[test]
    fn a_full_object_equals_plain_decoding_except_for_managed_fields() {
        let full: Full<ConfigMap> = serde_json::from_str(CONFIG).unwrap();
        let mut plain: ConfigMap = serde_json::from_str(CONFIG).unwrap();
        assert!(plain.metadata.managed_fields.take().is_some());
        assert_eq!(*full.object(), plain);
        assert_eq!(full.meta().resource_version.to_string(), "7");
    }

    #[test]
    fn full_and_metadata_only_shapes_have_the_same_metadata() {
        let keep = Keep::default().annotation("b").manager("m");
        let full: Full<ConfigMap> = keep.scope(|| serde_json::from_str(CONFIG)).unwrap();
        let slim: MetadataOnly<ConfigMap> = keep.scope(|| serde_json::from_str(CONFIG)).unwrap();
        assert_eq!(full.meta(), slim.meta());
        assert_eq!(slim.managed.len(), 1);
        assert_eq!(slim.annotations.get("b").unwrap(), "2");
    }

    #[test]
    fn metadata_kept_by_a_failed_decode_does_not_reach_the_next_object() {
        let keep = Keep::default().manager("m");
        let broken = CONFIG.replace(r#"{"k":"v"}"#, "7");
        keep.scope(|| serde_json::from_str::<Full<ConfigMap>>(&broken)).unwrap_err();
        let next: Full<ConfigMap> =
            keep.scope(|| serde_json::from_str(r#"{"metadata":{"name":"x"}}"#)).unwrap();
        assert!(next.meta().managed.is_empty());
    }

    #[test]
    fn debug_output_of_a_full_object_holds_no_content() {
        let full: Full<ConfigMap> = serde_json::from_str(CONFIG).unwrap();
        assert!(!format!("{full:?}").contains("\"v\""));
    }
}
