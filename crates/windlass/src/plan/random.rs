//! Random numbers for generated credentials and keys.

use std::fmt;

use ring::rand::{SecureRandom as _, SystemRandom};

use crate::error::PlanError;

/// Randomness for generated credentials and keys, from the system.
pub struct Random(SystemRandom);

impl Random {
    /// Returns randomness from the system. Generators get theirs as an argument; this is for tests of
    /// generators.
    #[allow(clippy::new_without_default)] // randomness is no default
    pub fn new() -> Self {
        Self(SystemRandom::new())
    }

    /// Returns random bytes.
    pub fn bytes<const N: usize>(&mut self) -> Result<[u8; N], PlanError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// Returns a word of `length` letters and digits: about 5.95 bits each.
    pub fn alphanumeric(&mut self, length: usize) -> Result<String, PlanError> {
        const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let mut word = String::with_capacity(length);
        while word.len() < length {
            let mut bytes = [0; 64];
            self.fill(&mut bytes)?;
            // Bytes from 248 up would make the first letters more likely than the others.
            let fair = bytes
                .iter()
                .filter(|byte| **byte < 248)
                .map(|byte| char::from(LETTERS[usize::from(byte % 62)]));
            word.extend(fair.take(length - word.len()));
        }
        Ok(word)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), PlanError> {
        self.0.fill(bytes).map_err(|_| PlanError::new("the system's random number generator failed"))
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_words_have_the_requested_length_and_differ() {
        let mut random = Random::new();
        let (one, two) = (random.alphanumeric(40).unwrap(), random.alphanumeric(40).unwrap());
        assert_eq!(one.len(), 40);
        assert!(one.chars().all(|c| c.is_ascii_alphanumeric()));
        assert_ne!(one, two);
        assert_eq!(random.alphanumeric(0).unwrap(), "");
    }
}
