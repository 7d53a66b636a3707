//! The content of an input: as a digest, or readable.
//!
//! [`Hashed`] keeps 32 bytes of the object's content: the values pass through the decoder and are dropped.
//! Values are kept only if a plan reads them ([`Readable`]), and the whole object only if a plan reads all of
//! it ([`Whole`]).

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use windlass_runtime::cache::{Digest, Shape};
use windlass_runtime::intern::Str;
use windlass_runtime::meta::Meta;
use windlass_runtime::resource::ResourceType;

use super::kind::is_secret;
use super::object::{AsLive, Bare, Live, LiveSpec, LiveStatus};

/// The known content of an input.
pub(crate) trait AsContent: Send + Sync {
    fn live(&self) -> &Live;
    /// Returns the digest of everything except metadata and status.
    fn digest(&self) -> Digest;
    /// Returns the value of a key, if values are kept. The kind determines the encoding.
    fn value(&self, kind: &ResourceType, key: &str) -> Option<Vec<u8>>;
    /// Returns the keys of all values, if values are kept.
    fn keys(&self) -> Vec<String> {
        Vec::new()
    }
    /// Returns the whole object as JSON, if it is kept.
    fn object(&self) -> Option<&str> {
        None
    }
}

/// An object of which only the digest of the content is kept.
pub(crate) struct Hashed {
    live: Live,
    digest: Digest,
}

/// An object of which the `data` is kept.
pub(crate) struct Readable {
    hashed: Hashed,
    data: Values,
    encoded: Values,
}

/// Sorted by key; many objects share their keys. A map of two values would take half a kilobyte more.
type Values = Box<[(Str, Box<str>)]>;

fn value_of<'v>(values: &'v Values, key: &str) -> Option<&'v str> {
    let at = values.binary_search_by(|(known, _)| (**known).cmp(key)).ok()?;
    values.get(at).map(|(_, value)| &**value)
}

/// An object that is kept whole, except for its `managedFields`.
///
/// Kept as text: the tree of a Deployment takes ten times as much memory.
pub(crate) struct Whole {
    hashed: Hashed,
    object: Box<str>,
}

impl AsContent for Hashed {
    fn live(&self) -> &Live {
        &self.live
    }

    fn digest(&self) -> Digest {
        self.digest
    }

    fn value(&self, _: &ResourceType, _: &str) -> Option<Vec<u8>> {
        None
    }
}

/// An object that has the name of a planned one: only its existence matters.
impl AsContent for Bare {
    fn live(&self) -> &Live {
        AsLive::live(self)
    }

    fn digest(&self) -> Digest {
        Digest::default()
    }

    fn value(&self, _: &ResourceType, _: &str) -> Option<Vec<u8>> {
        None
    }
}

impl AsContent for Readable {
    fn live(&self) -> &Live {
        &self.hashed.live
    }

    fn digest(&self) -> Digest {
        self.hashed.digest
    }

    fn value(&self, kind: &ResourceType, key: &str) -> Option<Vec<u8>> {
        let decode = |text: &str| BASE64_STANDARD.decode(text).ok();
        match value_of(&self.data, key) {
            Some(text) if is_secret(kind) => decode(text),
            Some(text) => Some(text.as_bytes().to_vec()),
            None => value_of(&self.encoded, key).and_then(decode),
        }
    }

    fn keys(&self) -> Vec<String> {
        self.data.iter().chain(&self.encoded).map(|(key, _)| key.to_string()).collect()
    }
}

impl AsContent for Whole {
    fn live(&self) -> &Live {
        &self.hashed.live
    }

    fn digest(&self) -> Digest {
        self.hashed.digest
    }

    fn value(&self, _: &ResourceType, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn object(&self) -> Option<&str> {
        Some(&self.object)
    }
}

impl Shape for Hashed {
    fn meta(&self) -> &Meta {
        &self.live.metadata
    }
}

impl Shape for Readable {
    fn meta(&self) -> &Meta {
        &self.hashed.live.metadata
    }
}

impl Shape for Whole {
    fn meta(&self) -> &Meta {
        &self.hashed.live.metadata
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = Value::deserialize(deserializer)?;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let object = object.to_string();
        let mut hashed: Hashed = serde_json::from_slice(object.as_bytes()).map_err(D::Error::custom)?;
        hashed.live = serde_json::from_slice(object.as_bytes()).map_err(D::Error::custom)?;
        Ok(Self { hashed, object: object.into() })
    }
}

impl<'de> Deserialize<'de> for Hashed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Object { keep: false }).map(|readable| readable.hashed)
    }
}

impl<'de> Deserialize<'de> for Readable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Object { keep: true })
    }
}

struct Object {
    keep: bool,
}

impl<'de> Visitor<'de> for Object {
    type Value = Readable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Readable, A::Error> {
        let (mut metadata, mut status) = (None, LiveStatus::default());
        let mut parts: BTreeMap<String, Digest> = BTreeMap::new();
        let (mut data, mut encoded) = (Values::default(), Values::default());
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
                    let kept =
                        values.into_iter().map(|(key, value)| (Str::from(key), value.into_boxed_str()));
                    *(if key == "data" { &mut data } else { &mut encoded }) = kept.collect();
                }
                _ => {
                    parts.insert(key, map.next_value()?);
                }
            }
        }
        let metadata = metadata.ok_or_else(|| A::Error::missing_field("metadata"))?;
        // Absent and null are equal; so are absent and empty, for the maps that hold values.
        let empty = Digest::of(&BTreeMap::<String, String>::new()).map_err(A::Error::custom)?;
        parts.retain(|_, digest| *digest != Digest::default() && *digest != empty);
        let parts: BTreeMap<String, String> =
            parts.into_iter().map(|(key, digest)| (key, digest.to_string())).collect();
        let digest = Digest::of(&parts).map_err(A::Error::custom)?;
        let live = Live { metadata, spec: LiveSpec::default(), status };
        Ok(Readable { hashed: Hashed { live, digest }, data, encoded })
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
        serde_json::from_value::<Hashed>(object).unwrap().digest()
    }

    #[test]
    fn the_digest_is_of_the_content_only() {
        let one = hashed(secret(json!({}), json!({"a": "eA=="})));
        assert_eq!(one, hashed(secret(json!({"x": "y"}), json!({"a": "eA=="}))));
        assert_ne!(one, hashed(secret(json!({}), json!({"a": "eQ=="}))));
        assert_ne!(one, hashed(secret(json!({}), json!({}))));
        assert_eq!(hashed(secret(json!({}), json!({}))), hashed(secret(json!({}), Value::Null)));
    }

    /// The digest of an input flows into the pod templates of the nodes after it: each of these values that
    /// changes restarts pods of every installation.
    #[test]
    fn the_digest_of_an_input_never_changes() {
        let secret = secret(json!({"x": "y"}), json!({"b": "eQ==", "a": "eA=="}));
        let map = json!({"metadata": {"name": "c"}, "data": {"a": "x"}, "binaryData": {"b": "eQ=="}});
        let custom = json!({"metadata": {"name": "k"}, "spec": {"replicas": 3, "ready": true, "hosts": ["a", null, "b"]},
            "status": {"phase": "x"}});
        let empty = json!({"metadata": {"name": "e"}, "data": {}});
        let golden = [
            (secret, "0547488b8d9b521e51b8ae842b3fa0170fc9036c2694e1a3dad9bbe6b9553808"),
            (map, "429f2bab6064dd267be489eb2d3ae374311464a4ca65a1d70c1e9e6f13805eac"),
            (custom, "5074ac4fa41ac0193aaf9b84ac6ff28c2a97b7b6a3bc1663b0583e3ac14db4f3"),
            (empty, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
        ];
        for (object, digest) in golden {
            assert_eq!(hashed(object.clone()).to_string(), digest, "{object}");
            let readable: Readable = serde_json::from_value(object.clone()).unwrap();
            assert_eq!(readable.digest().to_string(), digest, "{object}");
            let whole: Whole = serde_json::from_value(object.clone()).unwrap();
            assert_eq!(AsContent::digest(&whole).to_string(), digest, "{object}");
        }
    }

    #[test]
    fn the_digest_is_the_same_in_every_form() {
        let object = secret(json!({}), json!({"a": "eA=="}));
        let readable: Readable = serde_json::from_value(object.clone()).unwrap();
        let secrets = ResourceType::of::<Secret>();
        assert_eq!(readable.digest(), hashed(object));
        assert_eq!(readable.value(&secrets, "a").unwrap(), b"x");
        assert_eq!(readable.value(&secrets, "b"), None);
    }

    #[test]
    fn values_of_a_config_map_are_plain_or_encoded() {
        let object = json!({"metadata": {"name": "c"}, "data": {"a": "x"}, "binaryData": {"b": "eQ=="}});
        let readable: Readable = serde_json::from_value(object).unwrap();
        let maps = ResourceType::of::<ConfigMap>();
        assert_eq!(
            (readable.value(&maps, "a").unwrap(), readable.value(&maps, "b").unwrap()),
            (b"x".to_vec(), b"y".to_vec())
        );
    }

    #[test]
    fn a_whole_object_is_kept_unchanged_except_for_its_managed_fields() {
        let mut object = secret(json!({"x": "y"}), json!({"a": "eA=="}));
        object["metadata"]["managedFields"] = json!([{"manager": "m"}]);
        let whole: Whole = serde_json::from_value(object.clone()).unwrap();
        object["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(serde_json::from_str::<Value>(AsContent::object(&whole).unwrap()).unwrap(), object);
        assert_eq!(AsContent::digest(&whole), hashed(object));
    }
}
