//! Network addresses in URLs and configuration files.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters that are never encoded in any part of a URL.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A host and a port, formatted for URLs and configuration files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// A host name or an IP address, IPv6 without brackets.
    pub host: String,
    /// The TCP port number.
    pub port: u16,
}

impl Address {
    /// Returns an address.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    /// Formats several addresses for clients that accept a list.
    pub(crate) fn list(addresses: &[Self]) -> String {
        addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') && !self.host.starts_with('[') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Percent-encodes text for one part of a URL: everything but letters, digits and `-._~` becomes `%XX`. Valid
/// for user names, passwords, path segments and query values, because no part reserves these characters.
pub(crate) fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_is_bracketed_once() {
        assert_eq!(Address::new("::1", 6379).to_string(), "[::1]:6379");
        assert_eq!(Address::new("[::1]", 6379).to_string(), "[::1]:6379");
        assert_eq!(Address::list(&[Address::new("a", 1), Address::new("10.0.0.1", 2)]), "a:1,10.0.0.1:2");
    }

    #[test]
    fn a_space_is_never_a_plus() {
        assert_eq!(percent_encoded("a b+c/d%é"), "a%20b%2Bc%2Fd%25%C3%A9");
    }
}
