//! The error of an owner that cannot be decoded as its kind: it names the field, and quotes no value.

use std::fmt;

use serde_json::Value;
use windlass_runtime::intern::Str;
use windlass_runtime::meta::Meta;
use windlass_runtime::resource::ResourceType;

/// The owner cannot be decoded as its type. The decoder's own message is left out: it may quote the content.
#[derive(thiserror::Error)]
#[error("the object cannot be read as a {}: {what}; correct that, or update the operator", resource.kind)]
pub(crate) struct Unreadable {
    pub(super) resource: Box<ResourceType>,
    what: String,
    pub(super) meta: Box<Meta>,
    /// The whole object, without its `managedFields`.
    pub(super) object: Value,
    /// Field managers, and the top-level fields of the status that each has applied.
    pub(super) status_fields: Box<[(Str, Str)]>,
}

/// Omits the object: it may hold secret values.
impl fmt::Debug for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unreadable").field("what", &self.what).finish_non_exhaustive()
    }
}

impl Unreadable {
    /// Returns the error of decoding an owner from its compact JSON text.
    pub(super) fn new(
        resource: ResourceType,
        error: &serde_json::Error,
        meta: &Meta,
        text: &[u8],
        status_fields: &[(Str, Str)],
    ) -> Self {
        let path = path_at(text, error.column());
        let place = if path.is_empty() { "the object".to_owned() } else { path };
        let message = error.to_string();
        // The name of a missing field comes from the type, not from the content.
        let missing = message.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
        let what = match missing {
            Some(field) => format!("{place} has no field {field}"),
            None => format!("{place} is not what this operator's schema says"),
        };
        let object = serde_json::from_slice(text).unwrap_or_default();
        let (resource, meta) = (Box::new(resource), Box::new(meta.clone()));
        Self { resource, what, meta, object, status_fields: status_fields.into() }
    }
}

/// Returns the path of the value at a byte of a compact JSON text, such as `spec.items[1].name`.
fn path_at(text: &[u8], at: usize) -> String {
    let mut open: Vec<Open> = Vec::new();
    let mut rest = &text[..at.min(text.len())];
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'{' => open.push(Open::Object { key: None, in_value: false }),
            b'[' => open.push(Open::Array(0)),
            b'}' | b']' => drop(open.pop()),
            b'"' => {
                let end = string_end(after);
                let string = &after[..end.saturating_sub(1)];
                rest = &after[end..];
                if let Some(Open::Object { key, in_value: false }) = open.last_mut() {
                    *key = Some(String::from_utf8_lossy(string).into_owned());
                }
            }
            b':' => {
                if let Some(Open::Object { in_value, .. }) = open.last_mut() {
                    *in_value = true;
                }
            }
            b',' => match open.last_mut() {
                Some(Open::Array(index)) => *index += 1,
                Some(Open::Object { key, in_value }) => (*key, *in_value) = (None, false),
                None => {}
            },
            _ => {}
        }
    }
    let mut path = String::new();
    for place in open {
        match place {
            Open::Object { key: Some(key), .. } => {
                let dot = if path.is_empty() { "" } else { "." };
                path = format!("{path}{dot}{key}");
            }
            Open::Object { key: None, .. } => {}
            Open::Array(index) => path = format!("{path}[{index}]"),
        }
    }
    path
}

/// An object or a list of a JSON text that has begun and not ended.
enum Open {
    Object { key: Option<String>, in_value: bool },
    Array(usize),
}

/// Returns the number of bytes up to the end of a string, with its closing quote.
fn string_end(text: &[u8]) -> usize {
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)] // only decoded
    struct Typed {
        name: String,
        #[serde(default)]
        items: Vec<Entry>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)] // only decoded
    struct Entry {
        size: u8,
        #[serde(default)]
        words: std::collections::BTreeMap<String, String>,
    }

    #[test]
    fn seam_low_an_undecodable_field_is_named_by_its_path() {
        for (text, path) in [
            (r#"{"name":7}"#, "name"),
            (r#"{"name":"a","items":[{"size":1},{"size":"hunter2"}]}"#, "items[1].size"),
            (r#"{"name":"a","items":[{"size":1,"words":{"a":"\"},{","b":{"c":1}}}]}"#, "items[0].words.b"),
            (r#"{"name":"a","items":[{"size":1},{"words":{}}]}"#, "items[1]"),
            (r#"{"name":"a","items":[{"size":300}]}"#, "items[0].size"),
            (r#"{"items":[]}"#, ""),
        ] {
            let error = serde_json::from_str::<Typed>(text).unwrap_err();
            assert_eq!(path_at(text.as_bytes(), error.column()), path, "{text}: {error}");
        }
    }
}
