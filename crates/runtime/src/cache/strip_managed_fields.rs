//! A decoder adapter that hides `metadata.managedFields` from the type that is decoded.
//!
//! Promises: a type decoded through [`WithoutManagedFields`] sees the same object without that one field,
//! whose bytes are only scanned. Does not: touch a `managedFields` anywhere else in the object.

use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::meta::{decode_managers, managers_wanted};

/// Decodes the whole object: passes everything through, and filters the value of `metadata`.
pub(crate) struct WithoutManagedFields<D>(pub(crate) D);

/// Decodes the value of `metadata`: everything but `managedFields`.
struct MetadataWithoutManagedFields<D>(D);

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Object,
    Metadata,
}

macro_rules! filtering_deserializer {
    ($name:ident, $level:expr) => {
        impl<'de, D: Deserializer<'de>> Deserializer<'de> for $name<D> {
            type Error = D::Error;

            fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
                self.0.deserialize_any(Filter { visitor, level: $level })
            }

            fn deserialize_struct<V: Visitor<'de>>(
                self,
                name: &'static str,
                fields: &'static [&'static str],
                visitor: V,
            ) -> Result<V::Value, D::Error> {
                self.0.deserialize_struct(name, fields, Filter { visitor, level: $level })
            }

            fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
                self.0.deserialize_map(Filter { visitor, level: $level })
            }

            fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
                self.0.deserialize_option(Filter { visitor, level: $level })
            }

            forward_to_deserialize_any! {
                bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
                unit_struct newtype_struct seq tuple tuple_struct enum identifier ignored_any
            }
        }
    };
}

filtering_deserializer!(WithoutManagedFields, Level::Object);
filtering_deserializer!(MetadataWithoutManagedFields, Level::Metadata);

struct Filter<V> {
    visitor: V,
    level: Level,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Filter<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(FilteredMap { map, level: self.level, at_metadata: false })
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        match self.level {
            Level::Object => self.visitor.visit_some(WithoutManagedFields(deserializer)),
            Level::Metadata => self.visitor.visit_some(MetadataWithoutManagedFields(deserializer)),
        }
    }
}

struct FilteredMap<A> {
    map: A,
    level: Level,
    /// True if the last key was `metadata` of the whole object.
    at_metadata: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for FilteredMap<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        loop {
            let Some(key) = self.map.next_key_seed(KeyText)? else {
                return Ok(None);
            };
            match self.level {
                Level::Metadata if key.is("managedFields") => {
                    if managers_wanted() {
                        decode_managers(&mut self.map)?;
                    } else {
                        self.map.next_value::<IgnoredAny>()?;
                    }
                }
                Level::Metadata => return key.hand_to(seed).map(Some),
                Level::Object => {
                    self.at_metadata = key.is("metadata");
                    return key.hand_to(seed).map(Some);
                }
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        if self.at_metadata {
            self.map.next_value_seed(MetadataSeed(seed))
        } else {
            self.map.next_value_seed(seed)
        }
    }
}

struct MetadataSeed<V>(V);

impl<'de, V: DeserializeSeed<'de>> DeserializeSeed<'de> for MetadataSeed<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.deserialize(MetadataWithoutManagedFields(deserializer))
    }
}

/// A key, borrowed from the input if it has no escapes.
enum Key<'de> {
    Borrowed(&'de str),
    Owned(String),
}

impl<'de> Key<'de> {
    fn is(&self, text: &str) -> bool {
        match self {
            Self::Borrowed(key) => *key == text,
            Self::Owned(key) => key == text,
        }
    }

    fn hand_to<K: DeserializeSeed<'de>, E: serde::de::Error>(self, seed: K) -> Result<K::Value, E> {
        match self {
            Self::Borrowed(key) => seed.deserialize(BorrowedStrDeserializer::new(key)),
            Self::Owned(key) => seed.deserialize(StrDeserializer::new(&key)),
        }
    }
}

struct KeyText;

impl<'de> DeserializeSeed<'de> for KeyText {
    type Value = Key<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key<'de>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeyText {
    type Value = Key<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
        Ok(Key::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
        Ok(Key::Owned(key.to_owned()))
    }
}
