//! Resource versions that can be compared.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// An object's resource version.
///
/// Kubernetes promises that the resource versions of one kind are positive integers that grow, so they
/// compare as numbers. Any other text becomes an opaque version: equal to itself, and neither older nor newer
/// than any other (`partial_cmp` is `None`). Code that must choose treats what arrives later as newer, see
/// [`supersedes`](Self::supersedes).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResourceVersion(Form);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Form {
    Number(u64),
    // Behind one thin pointer, so that the common form takes sixteen bytes.
    Opaque(Arc<Box<str>>),
}

impl ResourceVersion {
    /// Creates a version from its number.
    pub const fn number(number: u64) -> Self {
        Self(Form::Number(number))
    }

    /// Returns true if the version is unknown.
    pub fn is_unknown(&self) -> bool {
        matches!(self.0, Form::Number(0))
    }

    /// Returns true if an object with this version replaces one with `other`: newer, or different and not
    /// comparable.
    pub fn supersedes(&self, other: &Self) -> bool {
        match self.partial_cmp(other) {
            Some(ordering) => ordering == Ordering::Greater,
            None => true,
        }
    }

    /// Returns true if a reader that has seen everything up to `self` has seen `other`. Opaque versions: only
    /// if equal.
    pub fn covers(&self, other: &Self) -> bool {
        matches!(self.partial_cmp(other), Some(Ordering::Greater | Ordering::Equal))
    }
}

/// The unknown version, older than every other.
impl Default for ResourceVersion {
    fn default() -> Self {
        Self::number(0)
    }
}

impl PartialOrd for ResourceVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (&self.0, &other.0) {
            (Form::Number(a), Form::Number(b)) => Some(a.cmp(b)),
            (a, b) if a == b => Some(Ordering::Equal),
            (_, Form::Number(0)) => Some(Ordering::Greater),
            (Form::Number(0), _) => Some(Ordering::Less),
            _ => None,
        }
    }
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        match text.parse() {
            Ok(number) => Self(Form::Number(number)),
            Err(_) if text.is_empty() => Self::default(),
            Err(_) => Self(Form::Opaque(Arc::new(text.into()))),
        }
    }
}

/// Displays the version as the API writes it; empty when unknown.
impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Number(0) => Ok(()),
            Form::Number(number) => write!(f, "{number}"),
            Form::Opaque(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rv:{self}")
    }
}

impl<'de> Deserialize<'de> for ResourceVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = ResourceVersion;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a resource version")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ResourceVersion, E> {
                Ok(text.into())
            }
        }

        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_as_numbers_not_as_text() {
        assert!(ResourceVersion::from("10") > ResourceVersion::from("9"));
        assert!(ResourceVersion::from("10").supersedes(&"9".into()));
        assert!(!ResourceVersion::from("9").supersedes(&"9".into()));
        assert!(ResourceVersion::from("9").covers(&"9".into()));
    }

    #[test]
    fn an_opaque_version_supersedes_any_other_and_covers_only_itself() {
        let opaque = ResourceVersion::from("a7f");
        assert!(opaque.supersedes(&"9".into()));
        assert!(!opaque.supersedes(&"a7f".into()));
        assert!(!opaque.covers(&"9".into()));
        assert!(opaque.covers(&"a7f".into()));
        assert_eq!(opaque.to_string(), "a7f");
    }

    #[test]
    fn an_unknown_version_is_older_than_every_other() {
        let unknown = ResourceVersion::from("");
        assert!(unknown.is_unknown());
        assert!(ResourceVersion::from("1").supersedes(&unknown));
        assert!(ResourceVersion::from("x").supersedes(&unknown));
        assert!(!unknown.supersedes(&"x".into()));
    }

    #[test]
    fn a_version_takes_sixteen_bytes() {
        assert_eq!(size_of::<ResourceVersion>(), 16);
    }
}
