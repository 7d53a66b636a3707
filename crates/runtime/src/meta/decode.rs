//! Decoding of [`Meta`] directly from the bytes.
//!
//! The fields to keep ([`Keep`]) are a reader's choice at run time, and serde's derived code cannot pass such
//! a choice to the one field that needs it. So the choice is put into a thread-local for the time of one
//! synchronous decode ([`Keep::scope`]).

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Keep, Labels, ManagedEntry, Meta, OwnerRef, ResourceVersion, Uid};
use crate::intern::Str;
use crate::key::ObjectKey;

thread_local! {
    static KEEP: RefCell<Keep> = const { RefCell::new(Keep { annotations: Vec::new(), manager: None }) };
    static STASHED: Cell<Option<StashManagers>> = const { Cell::new(None) };
}

impl Keep {
    /// Decodes something while [`Meta`] keeps these fields.
    pub fn scope<T>(&self, decode: impl FnOnce() -> T) -> T {
        /// Restores the former choice, also when `decode` panics.
        struct Restore(Keep);

        impl Drop for Restore {
            fn drop(&mut self) {
                KEEP.with_borrow_mut(|keep| std::mem::swap(keep, &mut self.0));
            }
        }

        let _restore = Restore(KEEP.replace(self.clone()));
        decode()
    }
}

/// The entries that an adapter around a full type's decoder found in `metadata`.
#[derive(Default)]
pub(crate) struct StashManagers {
    pub(crate) managed: Box<[ManagedEntry]>,
    pub(crate) annotations: Labels,
}

/// Returns true if the present scope needs anything that `ObjectMeta` alone would not supply cheaply.
pub(crate) fn managers_wanted() -> bool {
    KEEP.with_borrow(|keep| keep.manager.is_some())
}

/// Decodes `managedFields` and keeps the requested entries until [`take_stashed`].
pub(crate) fn decode_managers<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    let managed = map.next_value::<Managed>()?.0;
    let mut stashed = STASHED.take().unwrap_or_default();
    stashed.managed = managed;
    STASHED.set(Some(stashed));
    Ok(())
}

/// Returns the entries that [`decode_managers`] kept, and the annotations of `all` that the scope requests.
pub(crate) fn take_stashed<'a>(all: impl Iterator<Item = (&'a String, &'a String)>) -> StashManagers {
    let mut stashed = STASHED.take().unwrap_or_default();
    stashed.annotations = KEEP.with_borrow(|keep| {
        all.filter(|(key, _)| keep.wants_annotation(key)).map(|(k, v)| (Str::from(k), Str::from(v))).collect()
    });
    stashed
}

impl Keep {
    fn wants_annotation(&self, key: &str) -> bool {
        self.annotations.binary_search_by(|known| (**known).cmp(key)).is_ok()
    }
}

/// A JSON string, borrowed if it has no escapes.
struct Text<'de>(Cow<'de, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowing;

        impl<'de> Visitor<'de> for Borrowing {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(Borrowing)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Field {
    Name,
    Namespace,
    Uid,
    ResourceVersion,
    Generation,
    CreationTimestamp,
    DeletionTimestamp,
    Labels,
    Annotations,
    OwnerReferences,
    Finalizers,
    ManagedFields,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetaVisitor)
    }
}

struct MetaVisitor;

impl<'de> Visitor<'de> for MetaVisitor {
    type Value = Meta;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object's metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Meta, A::Error> {
        let mut name = None;
        let mut namespace: Option<Str> = None;
        let mut meta = Meta {
            key: ObjectKey::cluster(""),
            uid: Uid::default(),
            resource_version: ResourceVersion::default(),
            generation: 0,
            created: 0,
            deleting: false,
            labels: Labels::default(),
            annotations: Labels::default(),
            owners: Box::default(),
            finalizers: Box::default(),
            managed: Box::default(),
        };
        while let Some(field) = map.next_key()? {
            match field {
                Field::Name => name = map.next_value::<Option<Text<'_>>>()?,
                Field::Namespace => namespace = map.next_value()?,
                Field::Uid => meta.uid = map.next_value::<Option<_>>()?.unwrap_or_default(),
                Field::ResourceVersion => {
                    meta.resource_version = map.next_value::<Option<_>>()?.unwrap_or_default();
                }
                Field::Generation => meta.generation = map.next_value::<Option<_>>()?.unwrap_or_default(),
                Field::CreationTimestamp => {
                    meta.created = map
                        .next_value::<Option<Text<'_>>>()?
                        .and_then(|text| text.0.parse::<jiff::Timestamp>().ok())
                        .map(jiff::Timestamp::as_second)
                        .unwrap_or_default();
                }
                Field::DeletionTimestamp => meta.deleting = map.next_value::<Option<IgnoredAny>>()?.is_some(),
                Field::Labels => meta.labels = map.next_value()?,
                Field::Annotations => meta.annotations = map.next_value::<Annotations>()?.0,
                Field::OwnerReferences => {
                    meta.owners =
                        map.next_value::<Option<Vec<OwnerRef>>>()?.unwrap_or_default().into_boxed_slice();
                }
                Field::Finalizers => {
                    meta.finalizers =
                        map.next_value::<Option<Vec<Str>>>()?.unwrap_or_default().into_boxed_slice();
                }
                Field::ManagedFields if managers_wanted() => meta.managed = map.next_value::<Managed>()?.0,
                Field::ManagedFields | Field::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        // Some servers write an empty namespace for none.
        let namespace = namespace.filter(|namespace| !namespace.is_empty());
        meta.key = ObjectKey::new(namespace, name.map(|text| text.0).as_deref().unwrap_or_default());
        Ok(meta)
    }
}

/// The annotations that the scope requests; the values of others are skipped.
struct Annotations(Labels);

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Wanted;

        impl<'de> Visitor<'de> for Wanted {
            type Value = Annotations;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("annotations")
            }

            fn visit_unit<E>(self) -> Result<Annotations, E> {
                Ok(Annotations(Labels::default()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Annotations, A::Error> {
                let mut pairs = Vec::new();
                while let Some(key) = map.next_key::<Text<'_>>()? {
                    if KEEP.with_borrow(|keep| keep.wants_annotation(&key.0)) {
                        pairs.push((Str::new(&key.0), map.next_value()?));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Annotations(pairs.into_iter().collect()))
            }
        }

        deserializer.deserialize_any(Wanted)
    }
}

/// The entries of the requested manager in `managedFields`.
struct Managed(Box<[ManagedEntry]>);

impl<'de> Deserialize<'de> for Managed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The server sorts `fieldsV1` before `manager`, so each entry is read completely, but only as raw
        /// bytes.
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Entry<'a> {
            #[serde(borrow, default)]
            manager: Option<Text<'a>>,
            #[serde(borrow, default)]
            operation: Option<Text<'a>>,
            #[serde(borrow, default)]
            subresource: Option<Text<'a>>,
            #[serde(borrow, default)]
            api_version: Option<Text<'a>>,
            #[serde(borrow, default, rename = "fieldsV1")]
            fields: Option<&'a RawValue>,
        }

        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Managed;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("managed fields")
            }

            fn visit_unit<E>(self) -> Result<Managed, E> {
                Ok(Managed(Box::default()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Managed, A::Error> {
                let mut kept = Vec::new();
                while let Some(entry) = entries.next_element::<Entry<'_>>()? {
                    let is = |field: &Option<Text<'_>>, wanted: &str| {
                        field.as_ref().map_or("", |text| &*text.0) == wanted
                    };
                    let ours = KEEP.with_borrow(|keep| {
                        keep.manager.as_deref().is_some_and(|manager| is(&entry.manager, manager))
                    });
                    if ours && is(&entry.operation, "Apply") && is(&entry.subresource, "") {
                        kept.push(ManagedEntry::new(
                            entry.api_version.as_ref().map_or("", |text| &text.0),
                            entry.fields.map_or("{}", RawValue::get),
                        ));
                    }
                }
                Ok(Managed(kept.into_boxed_slice()))
            }
        }

        deserializer.deserialize_any(Entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = r#"{
        "name":"web-0","namespace":"shop","uid":"0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d","resourceVersion":"42",
        "generation":3,"creationTimestamp":"2026-01-02T03:04:05Z","deletionTimestamp":"2026-01-02T03:05:05Z",
        "labels":{"app":"web"},"annotations":{"keep":"me","drop":"me"},"finalizers":["a/b"],
        "ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"web","controller":true,
          "blockOwnerDeletion":true,"uid":"11111111-2222-3333-4444-555555555555"}],
        "managedFields":[
          {"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:k":{}}},"manager":"ours","operation":"Apply","time":"x"},
          {"apiVersion":"v1","fieldsV1":{"f:status":{}},"manager":"ours","operation":"Apply","subresource":"status"},
          {"apiVersion":"v1","fieldsV1":{"f:x":{}},"manager":"ours","operation":"Update"},
          {"apiVersion":"v1","fieldsV1":{"f:y":{}},"manager":"theirs","operation":"Apply"}]}"#;

    #[test]
    fn metadata_decodes_and_skips_fields_that_were_not_requested() {
        let meta: Meta = serde_json::from_str(POD).unwrap();
        assert_eq!(meta.key, ObjectKey::namespaced("shop", "web-0"));
        assert_eq!(meta.uid.to_string(), "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d");
        assert_eq!(meta.resource_version, ResourceVersion::number(42));
        assert_eq!((meta.generation, meta.created, meta.deleting), (3, 1_767_323_045, true));
        assert_eq!(meta.labels.get("app").unwrap(), "web");
        assert_eq!(meta.controller().unwrap().kind, "StatefulSet");
        assert_eq!(&*meta.finalizers, [Str::new("a/b")]);
        assert!(meta.annotations.is_empty() && meta.managed.is_empty());
    }

    #[test]
    fn the_apply_entry_of_a_manager_and_chosen_annotations_are_kept_on_request() {
        let keep = Keep::default().annotation("keep").manager("ours");
        let meta: Meta = keep.scope(|| serde_json::from_str(POD)).unwrap();
        assert_eq!(meta.annotations.len(), 1);
        assert_eq!(meta.annotations.get("keep").unwrap(), "me");
        let entries: Vec<_> = meta.managed.iter().map(ManagedEntry::fields).collect();
        assert_eq!(entries, [r#"{"f:data":{"f:k":{}}}"#]);
    }

    #[test]
    fn the_kept_fields_are_reset_after_their_scope_even_after_a_panic() {
        let keep = Keep::default().manager("ours");
        let panicked = std::panic::catch_unwind(|| keep.scope(|| panic!("while decoding")));
        assert!(panicked.is_err());
        assert!(!managers_wanted());
    }

    #[test]
    fn metadata_without_a_namespace_is_cluster_scoped() {
        for text in [r#"{"name":"n"}"#, r#"{"name":"n","namespace":""}"#, r#"{"name":"n","namespace":null}"#]
        {
            let meta: Meta = serde_json::from_str(text).unwrap();
            assert_eq!(meta.key, ObjectKey::cluster("n"), "{text}");
        }
    }
}
