//! Digests for content that is only compared.
//!
//! A field of type [`Digest`] accepts any JSON value and keeps 32 bytes of it: SHA-256 over a canonical form,
//! computed while the object is decoded. Promises: equal values have equal digests, whatever the order of
//! keys, the white space or the spelling of a number, so a server that changes the order of its fields in an
//! upgrade causes no difference. Does not: hide the content of a short secret, which can be guessed; digests
//! that leave the process must be keyed.
//!
//! The canonical form: every value starts with a tag byte; keys are sorted by their bytes; members that are
//! `null` are left out, as the API treats `null` and absent alike; `1.0` equals `1`; strings and keys carry
//! their length, so that no two values have the same form.

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use sha2::{Digest as _, Sha256};

/// The digest of a JSON value. The default is the digest of `null`, which a missing field has too.
///
/// ```
/// use windlass_runtime::cache::Digest;
///
/// let a: Digest = serde_json::from_str(r#"{"x": 1, "y": [true, null]}"#).unwrap();
/// let b: Digest = serde_json::from_str(r#"{"y":[true,null],"z":null,"x":1.0}"#).unwrap();
/// assert_eq!(a, b);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Computes the digest of a value in memory, equal to the one computed while its JSON is decoded.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(&serde_json::to_vec(value)?)
    }

    /// The bytes of the digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Default for Digest {
    fn default() -> Self {
        Self(Sha256::digest([NULL]).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut form = Vec::with_capacity(256);
        Canonical(&mut form).deserialize(deserializer)?;
        Ok(Self(Sha256::digest(&form).into()))
    }
}

const NULL: u8 = b'n';
const FALSE: u8 = b'f';
const TRUE: u8 = b't';
const INTEGER: u8 = b'i';
const FLOAT: u8 = b'd';
const STRING: u8 = b's';
const ARRAY: u8 = b'[';
const OBJECT: u8 = b'{';
const END: u8 = b'}';

/// Appends the canonical form of the value that it serializes or decodes.
struct Canonical<'a>(&'a mut Vec<u8>);

impl Canonical<'_> {
    fn text(&mut self, text: &str) {
        self.0.push(STRING);
        self.0.extend_from_slice(&(text.len() as u64).to_be_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn integer(&mut self, number: i128) {
        self.0.push(INTEGER);
        self.0.extend_from_slice(&number.to_be_bytes());
    }
}

impl<'de> DeserializeSeed<'de> for Canonical<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Canonical<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.push(NULL);
        Ok(())
    }

    fn visit_none<E>(self) -> Result<(), E> {
        self.0.push(NULL);
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.0.push(if value { TRUE } else { FALSE });
        Ok(())
    }

    fn visit_i64<E>(mut self, value: i64) -> Result<(), E> {
        self.integer(value.into());
        Ok(())
    }

    fn visit_u64<E>(mut self, value: u64) -> Result<(), E> {
        self.integer(value.into());
        Ok(())
    }

    fn visit_f64<E>(mut self, value: f64) -> Result<(), E> {
        // Within this range every integer is exact in both forms.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if value.fract() == 0.0 && value.abs() <= EXACT {
            #[allow(clippy::cast_possible_truncation)]
            self.integer(value as i128);
        } else {
            self.0.push(FLOAT);
            self.0.extend_from_slice(&value.to_bits().to_be_bytes());
        }
        Ok(())
    }

    fn visit_str<E>(mut self, value: &str) -> Result<(), E> {
        self.text(value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.0.push(ARRAY);
        while seq.next_element_seed(Canonical(self.0))?.is_some() {}
        self.0.push(END);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let form = self.0;
        form.push(OBJECT);
        let start = form.len();
        let mut members: Vec<(String, Range<usize>)> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let from = form.len();
            Canonical(form).text(&key);
            let value_at = form.len();
            map.next_value_seed(Canonical(form))?;
            if form[value_at..] == [NULL] {
                form.truncate(from);
            } else {
                members.push((key, from..form.len()));
            }
        }
        // API servers nearly always send keys sorted: then the bytes are already in place.
        if !members.is_sorted_by(|(a, _), (b, _)| a < b) {
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            if members.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                return Err(de::Error::custom("a key appears twice in one object"));
            }
            let sorted: Vec<u8> =
                members.iter().flat_map(|(_, at)| form[at.clone()].iter().copied()).collect();
            form.truncate(start);
            form.extend_from_slice(&sorted);
        }
        form.push(END);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn digest(text: &str) -> Digest {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_digest_does_not_depend_on_key_order_and_white_space() {
        assert_eq!(digest(r#"{"a":{"x":1,"y":2},"b":[]}"#), digest(r#" { "b":[ ],"a":{"y":2,"x":1}} "#));
    }

    #[test]
    fn a_null_member_equals_an_absent_one_but_null_in_an_array_counts() {
        assert_eq!(digest(r#"{"a":null}"#), digest("{}"));
        assert_ne!(digest("[null]"), digest("[]"));
        assert_eq!(digest("null"), Digest::default());
    }

    #[test]
    fn values_that_differ_have_different_digests() {
        let texts = [
            "{}",
            "[]",
            "\"\"",
            "null",
            "true",
            "false",
            "0",
            "1",
            "1.5",
            "\"1\"",
            r#"{"a":"b"}"#,
            r#"{"ab":""}"#,
            r#"["a","b"]"#,
            r#"["ab"]"#,
            r#"[["a"],"b"]"#,
            r#"[["a","b"]]"#,
            "-1",
        ];
        let digests: std::collections::HashSet<Digest> = texts.iter().map(|text| digest(text)).collect();
        assert_eq!(digests.len(), texts.len());
    }

    #[test]
    fn the_canonical_form_never_changes_because_digests_may_be_persisted() {
        assert_eq!(
            digest(r#"{"b":[1,"x",null],"a":true}"#).to_string(),
            "027e33159d6feea1cc02a44b12b9cea3aa185fd3b63a8a380cfa097cd7920f3f"
        );
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-c]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[a-c]{0,2}", inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Writes a value with the keys of every object in reverse order.
    fn reversed(value: &Value) -> String {
        match value {
            Value::Object(members) => {
                let inner: Vec<String> =
                    members.iter().rev().map(|(k, v)| format!("{}:{}", json!(k), reversed(v))).collect();
                format!("{{{}}}", inner.join(","))
            }
            Value::Array(items) => format!("[{}]", items.iter().map(reversed).collect::<Vec<_>>().join(",")),
            leaf => leaf.to_string(),
        }
    }

    proptest! {
        #[test]
        fn a_digest_never_depends_on_the_order_of_keys(value in any_json()) {
            prop_assert_eq!(Digest::of(&value).unwrap(), digest(&reversed(&value)));
        }
    }
}
