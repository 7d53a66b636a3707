//! Private keys, in whichever form others have written them.
//!
//! We write PKCS#8. cert-manager writes PKCS#1 for RSA and SEC1 for elliptic curves, unless told otherwise; an authority that it made is
//! worth keeping, since all trust it.

use rcgen::KeyPair;
use x509_parser::pem::parse_x509_pem;

/// `rsaEncryption` with its NULL; `id-ecPublicKey` with P-256; with P-384.
const RSA: &[u8] = &[0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
const P256: &[u8] =
    &[0x30, 19, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const P384: &[u8] = &[0x30, 16, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 5, 0x2b, 0x81, 4, 0, 0x22];

const SEQUENCE: u8 = 0x30;
const OCTETS: u8 = 4;

/// A key in PEM; none if it is in no form that we know.
pub(super) fn key(pem: &str) -> Option<KeyPair> {
    let (_, block) = parse_x509_pem(pem.as_bytes()).ok()?;
    let wrapped = |algorithm: &[u8]| KeyPair::try_from(pkcs8(algorithm, &block.contents)).ok();
    match &*block.label {
        "RSA PRIVATE KEY" => wrapped(RSA),
        "EC PRIVATE KEY" => wrapped(P256).or_else(|| wrapped(P384)),
        _ => KeyPair::try_from(block.contents).ok(),
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
    use crate::config::token_key;
    use rcgen::{PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PublicKeyData as _};

    #[test]
    fn keys_are_read_as_we_write_them() {
        for algorithm in [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384] {
            let made = KeyPair::generate_for(algorithm).unwrap();
            assert_eq!(key(&made.serialize_pem()).unwrap().der_bytes(), made.der_bytes());
        }
        assert!(key("").is_none());
        assert!(key("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").is_none());
    }

    #[test]
    fn keys_are_read_as_cert_manager_writes_them() {
        let rsa = token_key::generate().unwrap();
        assert!(rsa.expose().starts_with("-----BEGIN RSA PRIVATE KEY-----"));
        let same = super::super::token::signer(&rsa).unwrap();
        assert_eq!(key(rsa.expose()).unwrap().der_bytes(), same.der_bytes());

        // SEC1 is the last of what PKCS#8 has inside, and of P-256 always as long.
        let made = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let whole = made.serialize_der();
        let inner = whole.windows(4).position(|bytes| bytes[0] == SEQUENCE && bytes[2..] == [2, 1]).unwrap();
        let sec1 = rcgen_pem("EC PRIVATE KEY", &whole[inner..]);
        assert_eq!(key(&sec1).unwrap().der_bytes(), made.der_bytes());
    }

    fn rcgen_pem(label: &str, der: &[u8]) -> String {
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.encode(der);
        let lines: Vec<String> =
            text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
    }
}
