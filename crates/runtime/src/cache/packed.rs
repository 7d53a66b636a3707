//! Whole objects, kept as JSON text to save memory.
//!
//! A typed object is mostly overhead: every string and every list has a header and an allocation of its own,
//! every absent field takes space. [`Packed`] keeps the decoded object as one piece of JSON instead, and
//! decodes it again on demand. Use it for kinds with many objects of which few are read: a reconcile reads
//! one. Where a few fields are enough, a [shape](super::shape) with these fields is smaller still and needs
//! no decoding.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;

use kube::Resource;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _};
use serde::ser::Serialize;

use super::shape::{Full, OfKind, Shape};
use crate::meta::Meta;
use crate::resource::{ResourceType, ScopeKind};

/// A whole `K` without its `managedFields`, like [`Full`], kept as JSON.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass_runtime::cache::{Packed, Shape};
///
/// let text = r#"{"metadata": {"name": "settings"}, "data": {"color": "blue"}}"#;
/// let packed: Packed<ConfigMap> = serde_json::from_str(text)?;
/// assert_eq!(packed.meta().name(), "settings");
/// assert_eq!(packed.object()?.data.unwrap()["color"], "blue");
/// # Ok::<_, serde_json::Error>(())
/// ```
pub struct Packed<K> {
    meta: Meta,
    json: Box<[u8]>,
    kind: PhantomData<fn() -> K>,
}

impl<K: DeserializeOwned> Packed<K> {
    /// Decodes the object; each call decodes it again.
    ///
    /// # Errors
    /// Fails if `K` cannot decode its own JSON.
    pub fn object(&self) -> serde_json::Result<K> {
        serde_json::from_slice(&self.json)
    }
}

// As for `Full`: the object may be a Secret.
impl<K> fmt::Debug for Packed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packed").field("meta", &self.meta).finish_non_exhaustive()
    }
}

impl<'de, K> Deserialize<'de> for Packed<K>
where
    K: Resource + Deserialize<'de> + Serialize,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        thread_local! {
            /// The JSON is written here first and then copied at its exact length: truncating a longer buffer
            /// leaves gaps in the heap.
            static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        let (meta, object) = Full::<K>::deserialize(deserializer)?.into_parts();
        let json = SCRATCH.with_borrow_mut(|scratch| {
            scratch.clear();
            serde_json::to_writer(&mut *scratch, &object).map(|()| Box::from(&**scratch))
        });
        Ok(Self { meta, json: json.map_err(D::Error::custom)?, kind: PhantomData })
    }
}

impl<K> Shape for Packed<K>
where
    K: Resource<DynamicType = (), Scope: ScopeKind> + DeserializeOwned + Serialize + 'static,
{
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn approximate_size(&self) -> usize {
        size_of::<Self>() + self.meta.heap_size() + self.json.len()
    }
}

impl<K> OfKind for Packed<K>
where
    K: Resource<DynamicType = (), Scope: ScopeKind> + DeserializeOwned + Serialize + 'static,
{
    fn resource() -> ResourceType {
        ResourceType::of::<K>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::Keep;
    use k8s_openapi::api::core::v1::Secret;

    const SECRET: &str = r#"{"apiVersion":"v1","kind":"Secret",
        "metadata":{"name":"s","namespace":"n","uid":"0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d","resourceVersion":"7",
          "annotations":{"a":"1","b":"2"},
          "managedFields":[{"manager":"m","operation":"Apply","apiVersion":"v1","fieldsV1":{"f:data":{}}}]},
        "data":{"k":"aGlkZGVu"}}"#;

    #[test]
    fn an_unpacked_object_equals_that_of_a_full_shape() {
        let keep = Keep::default().annotation("b").manager("m");
        let packed: Packed<Secret> = keep.scope(|| serde_json::from_str(SECRET)).unwrap();
        let full: Full<Secret> = keep.scope(|| serde_json::from_str(SECRET)).unwrap();
        assert_eq!(packed.object().unwrap(), *full.object());
        assert_eq!(packed.meta(), full.meta());
        assert_eq!(packed.meta().managed.len(), 1);
    }

    #[test]
    fn a_packed_object_has_no_managed_fields() {
        let packed: Packed<Secret> = serde_json::from_str(SECRET).unwrap();
        assert!(!String::from_utf8_lossy(&packed.json).contains("managedFields"));
    }

    #[test]
    fn a_short_object_packed_after_a_long_one_contains_nothing_of_it() {
        let long = SECRET.replace("aGlkZGVu", &"aGlkZGVu".repeat(100));
        let long: Packed<Secret> = serde_json::from_str(&long).unwrap();
        let short: Packed<Secret> = serde_json::from_str(SECRET).unwrap();
        assert!(long.approximate_size() > short.approximate_size() + 700);
        assert_eq!(short.object().unwrap().data.unwrap()["k"].0, b"hidden");
    }

    #[test]
    fn the_debug_output_of_a_packed_object_has_no_content() {
        let packed: Packed<Secret> = serde_json::from_str(SECRET).unwrap();
        let shown = format!("{packed:?}");
        assert!(shown.starts_with("Packed") && shown.contains("n/s"), "{shown}");
        assert!(!shown.contains("aGlkZGVu") && !shown.contains("hidden"), "{shown}");
    }
}
