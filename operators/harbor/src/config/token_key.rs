//! The key with which Core signs tokens.
//!
//! Core reads RSA in PKCS#1 (`BEGIN RSA PRIVATE KEY`) only: with PKCS#8 it starts, is healthy, and answers
//! every login with 500. `ring` cannot generate RSA keys and `rcgen` writes PKCS#8, hence the crate `rsa`. It
//! is used to generate keys only, not to sign or decrypt.

use ring::rand::{SecureRandom as _, SystemRandom};
use rsa::pkcs1::{EncodeRsaPrivateKey as _, LineEnding};
use rsa::rand_core::{TryCryptoRng, TryRng, UnwrapErr};

use super::confidential::Confidential;

/// Length of a key in bits: 128 bits of security, generated in about half a second.
pub(crate) const BITS: usize = 3072;

/// Error: the system could not generate a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the system has no random numbers to make an RSA key of {bits} bits with")]
pub struct NoKey {
    bits: usize,
}

/// Generates a key in PEM format. Blocks for about half a second.
pub fn generate() -> Result<Confidential, NoKey> {
    generate_with(BITS)
}

fn generate_with(bits: usize) -> Result<Confidential, NoKey> {
    let mut source = Source(SystemRandom::new());
    // Checked before, because a failure during the search for primes would panic.
    source.try_next_u64().map_err(|_| NoKey { bits })?;
    let key = rsa::RsaPrivateKey::new(&mut UnwrapErr(source), bits).map_err(|_| NoKey { bits })?;
    let pem = key.to_pkcs1_pem(LineEnding::LF).map_err(|_| NoKey { bits })?;
    Ok(Confidential::new(pem.as_str()))
}

/// Returns true if the text is a key that Core can use.
#[cfg(test)]
pub(crate) fn is_usable(pem: &str) -> bool {
    use rsa::pkcs1::DecodeRsaPrivateKey as _;

    rsa::RsaPrivateKey::from_pkcs1_pem(pem).is_ok()
}

/// The system's random number generator as a trait of `rsa`.
struct Source(SystemRandom);

/// Error: the system has no random numbers.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the system has no random numbers")]
struct NoRandomNumbers;

impl TryRng for Source {
    type Error = NoRandomNumbers;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        self.0.fill(bytes).map_err(|_| NoRandomNumbers)
    }
}

impl TryCryptoRng for Source {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_pkcs1_pem_and_reads_back() {
        // Fewer bits than in production: the test is about the format.
        let pem = generate_with(2048).unwrap();
        let lines: Vec<&str> = pem.expose().lines().collect();
        assert_eq!(lines.first(), Some(&"-----BEGIN RSA PRIVATE KEY-----"));
        assert_eq!(lines.last(), Some(&"-----END RSA PRIVATE KEY-----"));
        assert!(is_usable(pem.expose()));
    }

    #[test]
    fn a_key_in_pkcs8_is_not_usable() {
        let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n";
        assert!(!is_usable(pem));
        assert!(!is_usable(""));
    }
}
