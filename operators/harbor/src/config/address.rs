//! Where a server listens.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that stay as they are in every part of a URL.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A host and a port, as both URLs and configuration files write them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// A name or an IP address. IPv6 without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Address {
    /// An address.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    /// Several addresses, as the clients that take several want them.
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

/// Text as one part of a URL: whatever is not a letter, a digit or one of `-._~` becomes `%XX`. Right for user names, passwords, path segments and
/// values of queries alike, since no part reserves these.
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
