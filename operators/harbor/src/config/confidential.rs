//! Text that only Secrets may hold.

use std::fmt;

/// Secret text. It can be compared and put into a Secret, but not printed: neither [`fmt::Debug`] shows it nor is there a `Display`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Confidential(String);

impl Confidential {
    /// Marks text as secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text. Whoever calls this answers for where it goes.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The text as bytes of a Secret's `data`.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0.into_bytes()
    }
}

impl fmt::Debug for Confidential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Confidential(…)")
    }
}

impl From<&str> for Confidential {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Confidential {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_text_is_not_in_its_debug_form() {
        assert!(!format!("{:?}", Confidential::from("hunter2")).contains("hunter2"));
    }
}
