//! Queries of requests: selectors and percent-encoding.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::selection::Selection;

/// Returns the selectors of a selection as a query, without its namespaces. Starts with `&` if it is not
/// empty.
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

/// The characters that are not encoded in a query.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes all other characters.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}
