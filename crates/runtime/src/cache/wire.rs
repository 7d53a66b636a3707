//! The bytes of a watch: lines, and the event in each.
//!
//! Promises: an object's bytes are not copied and not scanned before its shape decodes them.
//! Does not: decode objects.

use std::io::BufRead;

use bytes::{Bytes, BytesMut};
use kube::core::Status;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::meta::ResourceVersion;

/// No object is this long: etcd's limit is about two megabytes.
const LONGEST_LINE: usize = 64 << 20;

/// Cuts a stream of byte chunks into lines. A line within one chunk is a slice of it; only one that spans chunks is
/// put together.
#[derive(Default)]
pub(crate) struct Lines {
    partial: BytesMut,
}

/// What came is no watch stream.
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

/// Up to and with the first newline.
fn length_of_line(bytes: &[u8]) -> Option<usize> {
    // The standard library searches for a byte word by word here; `position` would go byte by byte.
    let length = (&mut &*bytes).skip_until(b'\n').ok()?;
    (length > 0 && bytes[length - 1] == b'\n').then_some(length)
}

/// One event, its object still as bytes.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    Applied(&'a [u8]),
    Deleted(&'a [u8]),
    /// Everything up to this version has been sent; `initial_end`: that was the initial list.
    Bookmark {
        version: ResourceVersion,
        initial_end: bool,
    },
    Error(Box<Status>),
}

impl<'a> Event<'a> {
    pub(crate) fn parse(line: &'a [u8]) -> Result<Self, Malformed> {
        // How every API server writes it. The trailing brace closes the event; if it did not, the shape's decoder
        // would say so.
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

/// One page of a list, its objects still as bytes.
#[derive(Deserialize)]
pub(crate) struct Page<'a> {
    pub(crate) metadata: PageMeta,
    #[serde(borrow, default, deserialize_with = "items")]
    pub(crate) items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
pub(crate) struct PageMeta {
    #[serde(rename = "resourceVersion", default)]
    pub(crate) resource_version: ResourceVersion,
    #[serde(rename = "continue", default)]
    pub(crate) continue_token: String,
}

/// An empty list may be written as `null`.
fn items<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<&'de RawValue>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        fn lines_are_the_same_however_the_stream_is_cut(
            text in prop::collection::vec("[a-z]{1,9}", 0..8),
            cuts in prop::collection::vec(0_usize..80, 0..8),
        ) {
            let stream = text.iter().flat_map(|line| [line.as_bytes(), b"\n"]).flatten().copied().collect::<Vec<u8>>();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&stream[from..cut]);
                from = cut;
            }
            chunks.push(&stream[from..]);
            let expected: Vec<Vec<u8>> = text.into_iter().map(String::into_bytes).collect();
            prop_assert_eq!(lines_of(&chunks), expected);
        }
    }

    #[test]
    fn blank_lines_and_carriage_returns_are_no_events() {
        assert_eq!(lines_of(&[b"a\r\n\n\r\nb\n"]), [b"a", b"b"]);
    }

    #[test]
    fn an_object_is_the_same_slice_however_the_event_is_written() {
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
    fn what_is_no_event_is_refused() {
        for line in [&b"<html>"[..], b"{}", br#"{"type":"NEW","object":{}}"#] {
            assert_eq!(Event::parse(line).unwrap_err(), Malformed);
        }
    }

    #[test]
    fn a_page_without_items_is_empty() {
        let page: Page<'_> =
            serde_json::from_str(r#"{"metadata":{"resourceVersion":"3"},"items":null}"#).unwrap();
        assert!(page.items.is_empty() && page.metadata.continue_token.is_empty());
    }
}
