//! Queries of requests: selectors and percent-encoding.

use std::fmt::Write as _;

use crate::selection::Selection;

/// The selectors of a selection as a query, without its namespaces. Starts with `&` if there is any.
pub(crate) fn query_of(selection: &Selection) -> String {
    selectors_query(&selection.labels.to_string(), &selection.fields.to_string())
}

pub(crate) fn selectors_query(labels: &str, fields: &str) -> String {
    let mut query = String::new();
    for (name, selector) in [("labelSelector", labels), ("fieldSelector", fields)] {
        if !selector.is_empty() {
            query.extend(["&", name, "=", &encode(selector)]);
        }
    }
    query
}

/// Percent-encodes everything that is not plain.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
