//! Private keys: algorithms, generation, and reading of PEM.
//!
//! This crate writes PKCS#8. It also reads PKCS#1 for RSA and SEC1 for elliptic curves, which cert-manager
//! writes by default: an authority that others trust already is worth keeping.

use std::fmt;
use std::fmt::Write as _;

use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519};
use ring::digest::{SHA256, digest};
use x509_parser::pem::parse_x509_pem;

use crate::error::PkiError;

/// `rsaEncryption` with its NULL; `id-ecPublicKey` with P-256; with P-384.
const RSA: &[u8] = &[0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
const P256: &[u8] =
    &[0x30, 19, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const P384: &[u8] = &[0x30, 16, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 5, 0x2b, 0x81, 4, 0, 0x22];

const SEQUENCE: u8 = 0x30;
const OCTETS: u8 = 4;

/// The algorithm of a new key. Keys of other algorithms can be [read](PrivateKey::from_pem), RSA for example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// ECDSA on the curve P-256: understood everywhere.
    EcdsaP256,
    /// Ed25519 (RFC 8032).
    Ed25519,
}

/// A private key. `Debug` prints none of it.
///
/// ```
/// use windlass_pki::{Algorithm, PrivateKey};
///
/// # fn main() -> Result<(), windlass_pki::PkiError> {
/// let key = PrivateKey::generate(Algorithm::EcdsaP256)?;
/// assert!(key.to_pem().starts_with("-----BEGIN PRIVATE KEY-----"));
/// assert_eq!(format!("{key:?}"), "PrivateKey { .. }");
/// # Ok(())
/// # }
/// ```
pub struct PrivateKey(KeyPair);

impl PrivateKey {
    /// Makes a key with the random numbers of the system.
    pub fn generate(algorithm: Algorithm) -> Result<Self, PkiError> {
        let algorithm = match algorithm {
            Algorithm::EcdsaP256 => &PKCS_ECDSA_P256_SHA256,
            Algorithm::Ed25519 => &PKCS_ED25519,
        };
        Ok(Self(KeyPair::generate_for(algorithm)?))
    }

    /// Reads a key in PKCS#8, PKCS#1 or SEC1.
    pub fn from_pem(pem: &str) -> Result<Self, PkiError> {
        let (_, block) = parse_x509_pem(pem.as_bytes()).map_err(|_| PkiError::NotAKey)?;
        let wrapped = |algorithm: &[u8]| KeyPair::try_from(pkcs8(algorithm, &block.contents));
        let key = match &*block.label {
            "RSA PRIVATE KEY" => wrapped(RSA),
            "EC PRIVATE KEY" => wrapped(P256).or_else(|_| wrapped(P384)),
            _ => KeyPair::try_from(&*block.contents),
        };
        key.map(Self).map_err(|_| PkiError::NotAKey)
    }

    /// The key in PEM, as PKCS#8.
    pub fn to_pem(&self) -> String {
        self.0.serialize_pem()
    }

    pub(crate) fn signer(&self) -> &KeyPair {
        &self.0
    }

    /// The SHA-256 digest of the public key, in hexadecimal digits.
    pub(crate) fn digest(&self) -> String {
        let digest = digest(&SHA256, self.0.public_key_raw());
        digest.as_ref().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").finish_non_exhaustive()
    }
}

/// The older forms are what PKCS#8 has inside, after the name of the algorithm.
fn pkcs8(algorithm: &[u8], key: &[u8]) -> Vec<u8> {
    let version: &[u8] = &[2, 1, 0];
    tagged(SEQUENCE, &[version, algorithm, &tagged(OCTETS, key)].concat())
}

fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut all = vec![tag];
    let length = content.len();
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => all.push(short),
        _ => {
            let bytes = length.to_be_bytes();
            let from = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
            all.push(0x80 | u8::try_from(bytes.len() - from).unwrap_or_default());
            all.extend(&bytes[from..]);
        }
    }
    all.extend(content);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::PKCS_ECDSA_P384_SHA384;

    fn same(pem: &str, key: &KeyPair) -> bool {
        PrivateKey::from_pem(pem).unwrap().0.public_key_raw() == key.public_key_raw()
    }

    #[test]
    fn keys_are_read_as_they_are_written() {
        for algorithm in [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519] {
            let made = KeyPair::generate_for(algorithm).unwrap();
            assert!(same(&made.serialize_pem(), &made));
        }
        assert!(PrivateKey::from_pem("").is_err());
        assert!(
            PrivateKey::from_pem("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").is_err()
        );
    }

    #[test]
    fn keys_of_elliptic_curves_are_read_as_cert_manager_writes_them() {
        // SEC1 is the last part of PKCS#8, and has the same length for every key of P-256.
        let made = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let whole = made.serialize_der();
        let inner = whole.windows(4).position(|bytes| bytes[0] == SEQUENCE && bytes[2..] == [2, 1]).unwrap();
        assert!(same(&pem("EC PRIVATE KEY", &whole[inner..]), &made));
    }

    fn pem(label: &str, der: &[u8]) -> String {
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.encode(der);
        let lines: Vec<String> =
            text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
    }
}
