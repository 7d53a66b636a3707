//! An object's uid in sixteen bytes.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// The uid of an object, which distinguishes objects of the same name over time. All zeros means unknown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uid([u8; 16]);

/// The text is not a uid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a uid: expected 32 hexadecimal digits in groups of 8-4-4-4-12")]
pub struct InvalidUid;

impl Uid {
    /// Creates a uid from its bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes of the uid.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Returns true if the uid is unknown.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

impl FromStr for Uid {
    type Err = InvalidUid;

    fn from_str(text: &str) -> Result<Self, InvalidUid> {
        let mut bytes = [0; 16];
        let mut digits = 0;
        for (at, character) in text.bytes().enumerate() {
            if character == b'-' && matches!(at, 8 | 13 | 18 | 23) {
                continue;
            }
            let nibble = char::from(character).to_digit(16).ok_or(InvalidUid)?;
            let byte = bytes.get_mut(digits / 2).ok_or(InvalidUid)?;
            // A hexadecimal digit fits four bits.
            *byte = *byte << 4 | u8::try_from(nibble).map_err(|_| InvalidUid)?;
            digits += 1;
        }
        if digits == 32 { Ok(Self(bytes)) } else { Err(InvalidUid) }
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Uid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Uid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Uid;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a uid")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Uid, E> {
                // API servers generate uids by RFC 4122; if one does not, the object is still usable by name.
                Ok(text.parse().unwrap_or_default())
            }
        }

        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_prints_as_it_was_read() {
        let text = "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d";
        assert_eq!(text.parse::<Uid>().unwrap().to_string(), text);
    }

    #[test]
    fn a_text_that_is_not_a_uid_is_refused() {
        for text in
            ["", "0b8d1c1e", "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d00", "zb8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d"]
        {
            assert_eq!(text.parse::<Uid>(), Err(InvalidUid), "{text}");
        }
    }
}
