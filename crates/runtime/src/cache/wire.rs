//! Parsers for the bytes of a watch (lines, with an event in each) and of a list (its objects).
//!
//! Promises: an object's bytes are neither copied nor scanned before its shape decodes them. Does not: decode
//! objects.

use std::io::BufRead;

use bytes::{Bytes, BytesMut};
use kube::core::Status;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::meta::ResourceVersion;

/// No object is longer than this: etcd's limit is about two megabytes.
const LONGEST_LINE: usize = 64 << 20;

/// Splits a stream of byte chunks into lines. A line within one chunk is a slice of it; only a line that
/// spans chunks is copied.
#[derive(Default)]
pub(crate) struct Lines {
    partial: BytesMut,
}

/// The bytes are not a watch stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Lines {
    /// Calls `line` for each line that `chunk` completes.
    pub(crate) fn feed<E: From<Malformed>>(
        &mut self,
        mut chunk: Bytes,
        mut line: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let Some(length) = length_of_line(&chunk) else {
                if self.partial.len() + chunk.len() > LONGEST_LINE {
                    return Err(Malformed.into());
                }
                self.partial.extend_from_slice(&chunk);
                return Ok(());
            };
            let rest = chunk.split_off(length);
            if self.partial.is_empty() {
                line_of(&chunk, &mut line)?;
            } else {
                self.partial.extend_from_slice(&chunk);
                line_of(&self.partial.split(), &mut line)?;
            }
            chunk = rest;
        }
    }
}

fn line_of<E>(bytes: &[u8], line: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    let bytes = bytes.trim_ascii_end();
    if bytes.is_empty() { Ok(()) } else { line(bytes) }
}

/// Returns the length up to and including the first newline.
fn length_of_line(bytes: &[u8]) -> Option<usize> {
    // The standard library searches for a byte word by word here; `position` would search byte by byte.
    let length = (&mut &*bytes).skip_until(b'\n').ok()?;
    (length > 0 && bytes[length - 1] == b'\n').then_some(length)
}

/// One event; its object is not decoded.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    Applied(&'a [u8]),
    Deleted(&'a [u8]),
    /// Everything up to this version has been sent; `initial_end`: this ends the initial list.
    Bookmark {
        version: ResourceVersion,
        initial_end: bool,
    },
    Error(Box<Status>),
}

impl<'a> Event<'a> {
    pub(crate) fn parse(line: &'a [u8]) -> Result<Self, Malformed> {
        // This is the form in which every API server writes an event. The last brace closes the event; if it
        // does not, the decoder of the shape fails.
        for (prefix, event) in [
            (&br#"{"type":"MODIFIED","object":"#[..], Event::Applied as fn(&'a [u8]) -> Event<'a>),
            (br#"{"type":"ADDED","object":"#, Event::Applied),
            (br#"{"type":"DELETED","object":"#, Event::Deleted),
        ] {
            if let Some(object) = line.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(b"}")) {
                return Ok(event(object));
            }
        }
        Self::parse_slowly(line)
    }

    fn parse_slowly(line: &'a [u8]) -> Result<Self, Malformed> {
        #[derive(Deserialize)]
        struct Raw<'a> {
            #[serde(rename = "type")]
            kind: String,
            #[serde(borrow)]
            object: &'a RawValue,
        }

        let raw: Raw<'a> = serde_json::from_slice(line).map_err(|_| Malformed)?;
        let object = raw.object.get();
        match &*raw.kind {
            "ADDED" | "MODIFIED" => Ok(Event::Applied(object.as_bytes())),
            "DELETED" => Ok(Event::Deleted(object.as_bytes())),
            "BOOKMARK" => {
                let bookmark: Bookmark<'_> = serde_json::from_str(object).map_err(|_| Malformed)?;
                let end =
                    bookmark.metadata.annotations.and_then(|annotations| annotations.initial_events_end);
                Ok(Event::Bookmark {
                    version: bookmark.metadata.resource_version,
                    initial_end: end.is_some_and(|end| end == "true"),
                })
            }
            "ERROR" => serde_json::from_str(object).map(Event::Error).map_err(|_| Malformed),
            _ => Err(Malformed),
        }
    }
}

#[derive(Deserialize)]
struct Bookmark<'a> {
    #[serde(borrow)]
    metadata: BookmarkMeta<'a>,
}

#[derive(Deserialize)]
struct BookmarkMeta<'a> {
    #[serde(rename = "resourceVersion")]
    resource_version: ResourceVersion,
    #[serde(borrow, default)]
    annotations: Option<BookmarkAnnotations<'a>>,
}

#[derive(Deserialize)]
struct BookmarkAnnotations<'a> {
    #[serde(rename = "k8s.io/initial-events-end", default)]
    initial_events_end: Option<&'a str>,
}

/// The metadata of a list.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct ListMeta {
    #[serde(rename = "resourceVersion", default)]
    pub(crate) resource_version: ResourceVersion,
    /// The token of the next page, if there is one.
    #[serde(rename = "continue", default)]
    pub(crate) continue_token: String,
}

/// Splits a list into its objects while it is received. The other fields of the list may stand before or
/// after the objects: a server sorts the fields of custom resources.
#[derive(Default)]
pub(crate) struct Items {
    /// Received bytes of a value that is not complete yet.
    partial: Vec<u8>,
    value: Value,
    position: ListPosition,
    metadata: Option<ListMeta>,
}

/// The position of the next byte in the list.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ListPosition {
    /// Before the list.
    #[default]
    Before,
    /// Before a field name.
    Name,
    /// After a field name.
    Colon(Field),
    /// Before the value of a field.
    Field(Field),
    /// After the value of a field.
    AfterField,
    /// Before an object.
    Item,
    /// After an object.
    AfterItem,
    /// After the list.
    After,
}

/// A field of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Items,
    Metadata,
    Other,
}

impl Items {
    /// Calls `item` for each object that `chunk` completes.
    pub(crate) fn feed(&mut self, chunk: &[u8], mut item: impl FnMut(&[u8])) -> Result<(), Malformed> {
        let mut bytes = std::mem::take(&mut self.partial);
        bytes.extend_from_slice(chunk);
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if !self.value.is_begun() && byte.is_ascii_whitespace() {
                at += 1;
                continue;
            }
            let next = match (self.position, byte) {
                (ListPosition::Before, b'{') | (ListPosition::AfterField, b',') => ListPosition::Name,
                (ListPosition::Name | ListPosition::AfterField, b'}') => ListPosition::After,
                (ListPosition::Colon(field), b':') => ListPosition::Field(field),
                (ListPosition::Field(Field::Items), b'[') | (ListPosition::AfterItem, b',') => {
                    ListPosition::Item
                }
                (ListPosition::Item | ListPosition::AfterItem, b']') => ListPosition::AfterField,
                (ListPosition::Name | ListPosition::Field(_) | ListPosition::Item, _) => {
                    let Some(length) = self.value.length(&bytes[at..])? else { break };
                    let value = &bytes[at..at + length];
                    at += length;
                    self.position = self.take(value, &mut item)?;
                    continue;
                }
                _ => return Err(Malformed),
            };
            (self.position, at) = (next, at + 1);
        }
        bytes.drain(..at);
        if bytes.len() > LONGEST_LINE {
            return Err(Malformed);
        }
        self.partial = bytes;
        Ok(())
    }

    /// Consumes a complete value and returns the next position.
    fn take(&mut self, value: &[u8], item: &mut impl FnMut(&[u8])) -> Result<ListPosition, Malformed> {
        Ok(match self.position {
            ListPosition::Name => ListPosition::Colon(match value {
                br#""items""# => Field::Items,
                br#""metadata""# => Field::Metadata,
                _ => Field::Other,
            }),
            ListPosition::Item => {
                item(value);
                ListPosition::AfterItem
            }
            ListPosition::Field(Field::Metadata) => {
                self.metadata = Some(serde_json::from_slice(value).map_err(|_| Malformed)?);
                ListPosition::AfterField
            }
            // An empty list may be written as `null`.
            ListPosition::Field(Field::Items) if value != b"null" => return Err(Malformed),
            _ => ListPosition::AfterField,
        })
    }

    /// Returns the metadata of the list, if the list is complete.
    pub(crate) fn end(self) -> Result<ListMeta, Malformed> {
        if self.position == ListPosition::After { self.metadata.ok_or(Malformed) } else { Err(Malformed) }
    }
}

/// A scanner for the end of a JSON value. It does not check the syntax: the decoder does.
#[derive(Default)]
struct Value {
    seen: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Value {
    fn is_begun(&self) -> bool {
        self.seen > 0
    }

    /// Returns the length of the value at the start of `bytes`, once it is complete. Continues where the last
    /// call stopped, with the same bytes and more.
    fn length(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        while let Some(byte) = bytes.get(self.seen) {
            let end = match byte {
                _ if self.escaped => {
                    self.escaped = false;
                    None
                }
                b'\\' if self.in_string => {
                    self.escaped = true;
                    None
                }
                b'"' => {
                    self.in_string = !self.in_string;
                    (!self.in_string && self.depth == 0).then_some(self.seen + 1)
                }
                _ if self.in_string => None,
                b'{' | b'[' => {
                    self.depth += 1;
                    None
                }
                // A number or a literal has no delimiter of its own.
                b'}' | b']' | b',' if self.depth == 0 => Some(self.seen),
                b'}' | b']' => {
                    self.depth -= 1;
                    (self.depth == 0).then_some(self.seen + 1)
                }
                byte if self.depth == 0 && byte.is_ascii_whitespace() => Some(self.seen),
                _ => None,
            };
            if let Some(length) = end {
                *self = Self::default();
                return if length > 0 { Ok(Some(length)) } else { Err(Malformed) };
            }
            self.seen += 1;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Splits a stream into pieces.
    fn pieces(stream: &[u8], cuts: Vec<usize>) -> Vec<&[u8]> {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
        cuts.sort_unstable();
        let (mut chunks, mut from) = (Vec::new(), 0);
        for cut in cuts {
            chunks.push(&stream[from..cut]);
            from = cut;
        }
        chunks.push(&stream[from..]);
        chunks
    }

    fn lines_of(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for chunk in chunks {
            let fed: Result<(), Malformed> = lines.feed(Bytes::copy_from_slice(chunk), |line| {
                found.push(line.to_vec());
                Ok(())
            });
            fed.unwrap();
        }
        found
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_the_chunks_of_the_stream(
            text in prop::collection::vec("[a-z]{1,9}", 0..8),
            cuts in prop::collection::vec(0_usize..80, 0..8),
        ) {
            let stream = text.iter().flat_map(|line| [line.as_bytes(), b"\n"]).flatten().copied().collect::<Vec<u8>>();
            let chunks = pieces(&stream, cuts);
            let expected: Vec<Vec<u8>> = text.into_iter().map(String::into_bytes).collect();
            prop_assert_eq!(lines_of(&chunks), expected);
        }
    }

    #[test]
    fn blank_lines_and_carriage_returns_are_not_events() {
        assert_eq!(lines_of(&[b"a\r\n\n\r\nb\n"]), [b"a", b"b"]);
    }

    #[test]
    fn an_object_is_a_slice_of_its_event_however_the_event_is_written() {
        for line in [
            r#"{"type":"ADDED","object":{"a":{}}}"#,
            r#"{ "type" : "MODIFIED", "object" : {"a":{}} }"#,
            r#"{"object":{"a":{}},"type":"ADDED"}"#,
        ] {
            let Event::Applied(object) = Event::parse(line.as_bytes()).unwrap() else { panic!("{line}") };
            assert_eq!(object, br#"{"a":{}}"#, "{line}");
        }
        let Event::Deleted(object) = Event::parse(br#"{"type":"DELETED","object":{}}"#).unwrap() else {
            panic!()
        };
        assert_eq!(object, b"{}");
    }

    #[test]
    fn only_the_bookmark_with_its_annotation_ends_a_list() {
        let plain = br#"{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12"}}}"#;
        let Event::Bookmark { version, initial_end } = Event::parse(plain).unwrap() else { panic!() };
        assert_eq!((version, initial_end), (ResourceVersion::number(12), false));
        let end = br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12",
            "annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
        let Event::Bookmark { initial_end, .. } = Event::parse(end).unwrap() else { panic!() };
        assert!(initial_end);
    }

    #[test]
    fn an_error_event_is_a_status() {
        let line = br#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
        let Event::Error(status) = Event::parse(line).unwrap() else { panic!() };
        assert_eq!((status.code, &*status.reason), (410, "Expired"));
    }

    #[test]
    fn a_line_that_is_not_an_event_is_refused() {
        for line in [&b"<html>"[..], b"{}", br#"{"type":"NEW","object":{}}"#] {
            assert_eq!(Event::parse(line).unwrap_err(), Malformed);
        }
    }

    fn items_of(chunks: &[&[u8]]) -> Result<(Vec<String>, ListMeta), Malformed> {
        let (mut items, mut found) = (Items::default(), Vec::new());
        for chunk in chunks {
            items.feed(chunk, |item| found.push(String::from_utf8(item.to_vec()).unwrap()))?;
        }
        Ok((found, items.end()?))
    }

    proptest! {
        #[test]
        fn the_objects_of_a_list_do_not_depend_on_its_chunks_and_formatting(
            names in prop::collection::vec(r#"[a-z"\\\{\}\[\],: é]{0,9}"#, 0..8),
            cuts in prop::collection::vec(0_usize..900, 0..8),
            pretty in any::<bool>(),
            first in any::<bool>(),
        ) {
            let objects: Vec<serde_json::Value> =
                names.iter().map(|name| serde_json::json!({"metadata": {"name": name}, "spec": [1, [], {}, name]})).collect();
            let metadata = serde_json::json!({"resourceVersion": "12", "continue": "more"});
            let written = |value: serde_json::Value| {
                if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap()
            };
            let (of_list, of_items) = (
                format!(r#""metadata": {}"#, written(metadata)),
                format!(r#""items": {}"#, written(serde_json::json!(objects))),
            );
            let (one, other) = if first { (of_list, of_items) } else { (of_items, of_list) };
            let text = format!("{{\"apiVersion\":\"v1\",{one},\"n\": 7 ,{other},\"zeal\":true}}\n");
            let stream = text.as_bytes();
            let chunks = pieces(stream, cuts);
            let (found, meta) = items_of(&chunks).unwrap();
            let found: Vec<serde_json::Value> = found.iter().map(|item| serde_json::from_str(item).unwrap()).collect();
            prop_assert_eq!(found, objects);
            prop_assert_eq!(meta.resource_version, ResourceVersion::number(12));
            prop_assert_eq!(meta.continue_token, "more");
        }

        #[test]
        fn arbitrary_bytes_never_make_the_list_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = items_of(&[&bytes]);
        }
    }

    #[test]
    fn a_list_without_objects_is_empty() {
        for list in [
            r#"{"metadata":{"resourceVersion":"3"},"items":null}"#,
            r#"{"items":[],"metadata":{"resourceVersion":"3"}}"#,
            r#"{"metadata":{"resourceVersion":"3"}}"#,
        ] {
            let (found, meta) = items_of(&[list.as_bytes()]).unwrap();
            assert!(found.is_empty() && meta.continue_token.is_empty(), "{list}");
        }
    }

    #[test]
    fn a_malformed_or_incomplete_list_is_refused() {
        for list in [
            "",
            "<html>",
            "[]",
            r#"{"items":[]}"#,
            r#"{"metadata":{},"items":[{}"#,
            r#"{"metadata":{},"items":[{}]"#,
            r#"{"metadata":{},"items":{}}"#,
            r#"{"metadata":{},"items":[,]}"#,
            r#"{"metadata":{},}{"#,
            r#"{"metadata" {}}"#,
        ] {
            assert_eq!(items_of(&[list.as_bytes()]), Err(Malformed), "{list}");
        }
    }
}
