//! The content of an input, as a digest, or to be read.
//!
//! [`Hashed`] keeps 32 bytes of whatever the object holds: the values pass through the decoder and are gone. Only where a plan
//! reads them they are kept ([`Readable`]), and only where it looks at the whole object that is ([`Whole`]).

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use windlass_runtime::cache::{Digest, Shape};
use windlass_runtime::meta::Meta;
use windlass_runtime::resource::ResourceType;

use crate::desired::{Kind, is_secret};
use crate::live::{Live, LiveSpec, LiveStatus};

/// What is known of an input.
pub(crate) trait AsContent: Send + Sync {
    fn live(&self) -> &Live;
    /// Of everything but metadata and status.
    fn digest(&self) -> Digest;
    /// The value of a key, if this is read at all.
    fn value(&self, key: &str) -> Option<Vec<u8>>;
    /// The names of all values, if they are read at all.
    fn keys(&self) -> Vec<String> {
        Vec::new()
    }
    /// The whole of it, if it is kept whole.
    fn object(&self) -> Option<&Value> {
        None
    }
}

/// A `K` of whose content only the digest is kept.
pub(crate) struct Hashed<K> {
    live: Live,
    digest: Digest,
    kind: PhantomData<fn() -> K>,
}

/// A `K` whose `data` is kept.
pub(crate) struct Readable<K> {
    hashed: Hashed<K>,
    data: BTreeMap<String, String>,
    encoded: BTreeMap<String, String>,
}

/// A `K` that is kept whole, but for what the server writes of managers.
pub(crate) struct Whole<K> {
    live: Live,
    hashed: Hashed<K>,
    object: Value,
}

impl<K: Kind> AsContent for Hashed<K> {
    fn live(&self) -> &Live {
        &self.live
    }

    fn digest(&self) -> Digest {
        self.digest
    }

    fn value(&self, _: &str) -> Option<Vec<u8>> {
        None
    }
}

impl<K: Kind> AsContent for Readable<K> {
    fn live(&self) -> &Live {
        &self.hashed.live
    }

    fn digest(&self) -> Digest {
        self.hashed.digest
    }

    fn value(&self, key: &str) -> Option<Vec<u8>> {
        let decode = |text: &String| BASE64_STANDARD.decode(text).ok();
        match self.data.get(key) {
            Some(text) if is_secret(&ResourceType::of::<K>()) => decode(text),
            Some(text) => Some(text.clone().into_bytes()),
            None => self.encoded.get(key).and_then(decode),
        }
    }

    fn keys(&self) -> Vec<String> {
        self.data.keys().chain(self.encoded.keys()).cloned().collect()
    }
}

impl<K: Kind> AsContent for Whole<K> {
    fn live(&self) -> &Live {
        &self.live
    }

    fn digest(&self) -> Digest {
        self.hashed.digest
    }

    fn value(&self, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn object(&self) -> Option<&Value> {
        Some(&self.object)
    }
}

impl<K: Kind> Shape for Hashed<K> {
    fn resource() -> ResourceType {
        ResourceType::of::<K>()
    }

    fn meta(&self) -> &Meta {
        &self.live.metadata
    }
}

impl<K: Kind> Shape for Readable<K> {
    fn resource() -> ResourceType {
        ResourceType::of::<K>()
    }

    fn meta(&self) -> &Meta {
        &self.hashed.live.metadata
    }
}

impl<K: Kind> Shape for Whole<K> {
    fn resource() -> ResourceType {
        ResourceType::of::<K>()
    }

    fn meta(&self) -> &Meta {
        &self.live.metadata
    }
}

impl<'de, K> Deserialize<'de> for Whole<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = Value::deserialize(deserializer)?;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let hashed = Hashed::deserialize(&object).map_err(D::Error::custom)?;
        let live = Live::deserialize(&object).map_err(D::Error::custom)?;
        Ok(Self { live, hashed, object })
    }
}

impl<'de, K> Deserialize<'de> for Hashed<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_map(Object { keep: false, kind: PhantomData::<K> })
            .map(|readable| readable.hashed)
    }
}

impl<'de, K> Deserialize<'de> for Readable<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Object { keep: true, kind: PhantomData::<K> })
    }
}

struct Object<K> {
    keep: bool,
    kind: PhantomData<K>,
}

impl<'de, K> Visitor<'de> for Object<K> {
    type Value = Readable<K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Readable<K>, A::Error> {
        let (mut metadata, mut status) = (None, LiveStatus::default());
        let mut parts: BTreeMap<String, Digest> = BTreeMap::new();
        let (mut data, mut encoded) = (BTreeMap::new(), BTreeMap::new());
        while let Some(key) = map.next_key::<String>()? {
            match &*key {
                "apiVersion" | "kind" => {
                    map.next_value::<IgnoredAny>()?;
                }
                "metadata" => metadata = Some(map.next_value()?),
                "status" => status = map.next_value()?,
                "data" | "binaryData" if self.keep => {
                    let values = map.next_value::<Option<BTreeMap<String, String>>>()?.unwrap_or_default();
                    parts.insert(key.clone(), Digest::of(&values).map_err(A::Error::custom)?);
                    *(if key == "data" { &mut data } else { &mut encoded }) = values;
                }
                _ => {
                    parts.insert(key, map.next_value()?);
                }
            }
        }
        let metadata = metadata.ok_or_else(|| A::Error::missing_field("metadata"))?;
        // Absent and null are one; so are absent and empty, for the maps that hold values.
        let empty = Digest::of(&BTreeMap::<String, String>::new()).map_err(A::Error::custom)?;
        parts.retain(|_, digest| *digest != Digest::default() && *digest != empty);
        let parts: BTreeMap<String, String> =
            parts.into_iter().map(|(key, digest)| (key, digest.to_string())).collect();
        let digest = Digest::of(&parts).map_err(A::Error::custom)?;
        let live = Live { metadata, spec: LiveSpec::default(), status };
        Ok(Readable { hashed: Hashed { live, digest, kind: PhantomData }, data, encoded })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use serde_json::json;

    fn secret(labels: Value, data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": labels}, "type": "Opaque", "data": data})
    }

    fn hashed(object: Value) -> Digest {
        serde_json::from_value::<Hashed<Secret>>(object).unwrap().digest()
    }

    #[test]
    fn the_digest_is_of_the_content_only() {
        let one = hashed(secret(json!({}), json!({"a": "eA=="})));
        assert_eq!(one, hashed(secret(json!({"x": "y"}), json!({"a": "eA=="}))));
        assert_ne!(one, hashed(secret(json!({}), json!({"a": "eQ=="}))));
        assert_ne!(one, hashed(secret(json!({}), json!({}))));
        assert_eq!(hashed(secret(json!({}), json!({}))), hashed(secret(json!({}), Value::Null)));
    }

    #[test]
    fn read_or_not_the_digest_is_the_same() {
        let object = secret(json!({}), json!({"a": "eA=="}));
        let readable: Readable<Secret> = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(readable.digest(), hashed(object));
        assert_eq!(readable.value("a").unwrap(), b"x");
        assert_eq!(readable.value("b"), None);
    }

    #[test]
    fn values_of_a_config_map_are_plain_or_encoded() {
        let object = json!({"metadata": {"name": "c"}, "data": {"a": "x"}, "binaryData": {"b": "eQ=="}});
        let readable: Readable<ConfigMap> = serde_json::from_value(object).unwrap();
        assert_eq!(
            (readable.value("a").unwrap(), readable.value("b").unwrap()),
            (b"x".to_vec(), b"y".to_vec())
        );
    }

    #[test]
    fn what_is_kept_whole_is_as_it_was_but_for_its_managers() {
        let mut object = secret(json!({"x": "y"}), json!({"a": "eA=="}));
        object["metadata"]["managedFields"] = json!([{"manager": "m"}]);
        let whole: Whole<Secret> = serde_json::from_value(object.clone()).unwrap();
        object["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(AsContent::object(&whole), Some(&object));
        assert_eq!(AsContent::digest(&whole), hashed(object));
    }
}
