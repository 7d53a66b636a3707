//! Secret text that must not be printed.

use std::fmt;

/// Secret text. It can be compared and written into a Secret, but not printed: [`fmt::Debug`] hides it, and
/// there is no `Display`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Confidential(String);

impl Confidential {
    /// Marks text as secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text. The caller is responsible for where it goes.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the text as bytes for the `data` of a Secret.
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
