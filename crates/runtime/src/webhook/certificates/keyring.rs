//! The Secret of the webhook certificates: a [`Keyring`](rotation::Keyring) and its layout.
//!
//! | key of the Secret | content |
//! | --- | --- |
//! | `tls.crt`, `tls.key` | the serving certificate and its key |
//! | `ca.crt` | all trusted CAs: the `caBundle` of configurations |
//! | `authorities.json` | the CAs with their keys and rotation times |
//!
//! Times are read from the certificates; only what a certificate cannot contain is stored beside it.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use serde::{Deserialize, Serialize};
use windlass_pki::rotation::keyring::{Policy, Tended};
use windlass_pki::rotation::{self, Trusted};
use windlass_pki::{LeafRecipe, Pair, PkiError};

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const BUNDLE: &str = "ca.crt";
const AUTHORITIES: &str = "authorities.json";

/// A Secret's content.
pub(super) type Content = BTreeMap<String, ByteString>;

/// Content that this module did not write, or certificates that cannot be issued. Never contains keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// The Secret has content of another program.
    #[error(
        "it has other content ({0} is missing); delete it, or choose another name for the Secret of the certificates"
    )]
    Foreign(&'static str),
    /// The content is ours and damaged.
    #[error("its {0} is damaged; delete the Secret, and it will be recreated")]
    Damaged(&'static str),
    /// A certificate cannot be issued; a name may be invalid.
    #[error(transparent)]
    Make(PkiError),
}

impl From<PkiError> for KeyringError {
    fn from(error: PkiError) -> Self {
        match error {
            // Only our own CAs are read while certificates are issued.
            PkiError::NotACertificate | PkiError::NotAKey | PkiError::NoSigningKey => {
                Self::Damaged(AUTHORITIES)
            }
            error => Self::Make(error),
        }
    }
}

/// CAs and the serving certificate, as the Secret holds them.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Keyring(rotation::Keyring);

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A CA in `authorities.json`.
#[derive(Serialize, Deserialize)]
struct Authority {
    certificate: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    announced: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_leaf: Option<Timestamp>,
}

impl From<Authority> for Trusted {
    fn from(stored: Authority) -> Self {
        let Authority { certificate, key, announced, last_leaf } = stored;
        Self { certificate, key, announced, last_leaf }
    }
}

impl From<Trusted> for Authority {
    fn from(trusted: Trusted) -> Self {
        let Trusted { certificate, key, announced, last_leaf } = trusted;
        Self { certificate, key, announced, last_leaf }
    }
}

fn pem(content: &Content, key: &'static str) -> Result<String, KeyringError> {
    let bytes = content.get(key).ok_or(KeyringError::Foreign(key))?;
    String::from_utf8(bytes.0.clone()).map_err(|_| KeyringError::Damaged(key))
}

impl Keyring {
    /// Reads a Secret. One without content is an empty keyring: it was created in advance.
    pub(super) fn read(content: &Content) -> Result<Self, KeyringError> {
        if content.values().all(|value| value.0.is_empty()) {
            return Ok(Self::default());
        }
        let authorities = content.get(AUTHORITIES).ok_or(KeyringError::Foreign(AUTHORITIES))?;
        let authorities: Vec<Authority> =
            serde_json::from_slice(&authorities.0).map_err(|_| KeyringError::Damaged(AUTHORITIES))?;
        let authorities = authorities.into_iter().map(Trusted::from).collect();
        let keyring = rotation::Keyring::new(authorities)?;
        Ok(Self(keyring.with_leaf(Pair::new(pem(content, CERTIFICATE)?, pem(content, KEY)?))))
    }

    /// Returns the content for a Secret.
    pub(super) fn write(&self) -> Content {
        let leaf =
            self.0.leaf().into_iter().flat_map(|leaf| [(CERTIFICATE, leaf.certificate()), (KEY, leaf.key())]);
        let mut content: Content =
            leaf.map(|(key, value)| (key.to_owned(), ByteString(value.as_bytes().to_vec()))).collect();
        content.insert(BUNDLE.to_owned(), ByteString(self.bundle().into_bytes()));
        let authorities: Vec<_> = self.0.authorities().iter().cloned().map(Authority::from).collect();
        // Strings and times: serializing them cannot fail.
        let authorities = serde_json::to_vec(&authorities).unwrap_or_default();
        content.insert(AUTHORITIES.to_owned(), ByteString(authorities));
        content
    }

    /// The certificates of all trusted CAs, newest first.
    pub(super) fn bundle(&self) -> String {
        self.0.bundle().into_pem()
    }

    /// The serving certificate and its key.
    pub(super) fn serving(&self) -> Option<(&[u8], &[u8])> {
        self.0.leaf().map(|leaf| (leaf.certificate().as_bytes(), leaf.key().as_bytes()))
    }

    /// Records that all CAs are in all configurations. Returns true if that changed something.
    pub(super) fn announce(&mut self, now: Timestamp) -> bool {
        self.0.announce(now)
    }

    /// Does everything that is due now; returns the time of the next action, and true if anything changed.
    /// `authority` is the common name of a new CA, before a digest.
    pub(super) fn tend<'a>(
        &mut self,
        now: Timestamp,
        authority: &str,
        names: impl IntoIterator<Item = &'a String>,
        policy: &Policy,
    ) -> Result<(Timestamp, bool), KeyringError> {
        let recipe = LeafRecipe::new().names(names).server();
        let Tended { until, changed } = self.0.tend(authority, &recipe, policy, now)?;
        Ok((until, changed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_pki::Certificate;

    fn day(days: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + days * 86_400).unwrap()
    }

    /// Tends the keyring at that time; the result must survive the Secret.
    fn tended(keyring: &Keyring, now: Timestamp, wanted: &[&str]) -> (Keyring, Timestamp, bool) {
        let mut keyring = keyring.clone();
        let names: Vec<_> = wanted.iter().map(|name| (*name).to_owned()).collect();
        let (until, changed) = keyring.tend(now, "windlass webhooks", &names, &Policy::default()).unwrap();
        let read = Keyring::read(&keyring.write()).unwrap();
        assert!(read == keyring);
        (keyring, until, changed)
    }

    fn leaf(keyring: &Keyring) -> Certificate {
        Certificate::from_pem(keyring.0.leaf().unwrap().certificate()).unwrap()
    }

    #[test]
    fn an_empty_keyring_gets_a_ca_and_a_certificate_with_the_wanted_names_and_times() {
        let (keyring, until, changed) = tended(&Keyring::default(), day(0), &["a.b.svc", "127.0.0.1", "::1"]);
        assert!(changed);
        assert_eq!(until, day(60));
        assert_eq!(leaf(&keyring).names(), &["a.b.svc", "127.0.0.1", "::1"].map(str::to_owned).into());
        assert_eq!((leaf(&keyring).made(), leaf(&keyring).ends()), (day(0), day(90)));
        let authority = Certificate::from_pem(&keyring.bundle()).unwrap();
        assert_eq!((authority.made(), authority.ends()), (day(0), day(730)));
        assert!(authority.common_name().unwrap().starts_with("windlass webhooks "));
        assert!(leaf(&keyring).is_issued_by(&authority));
        let (_, _, changed) = tended(&keyring, day(59), &["a.b.svc"]);
        assert!(!changed);
    }

    /// The clock was ahead when the Secret was created. Without this, the API server would reject the
    /// webhooks for three years.
    #[test]
    fn seam_m4_certificates_that_are_not_valid_yet_are_replaced_at_once() {
        let wanted = ["a.b.svc"];
        let (ahead, _, _) = tended(&Keyring::default(), day(1000), &wanted);
        let (mut keyring, _, changed) = tended(&ahead, day(0), &wanted);
        assert!(changed && leaf(&keyring).is_valid_at(day(0)));
        assert!(keyring.0.bundle().trusts(&leaf(&keyring), day(0)));
        // The API server may still have the old bundle, whichever clock is right.
        assert!(keyring.0.bundle().holds_all_of(&ahead.0.bundle()));
        assert!(keyring.announce(day(0)));
        let (settled, _, _) = tended(&keyring, day(1), &wanted);
        assert_eq!(settled.0.authorities().len(), 1);
        // Only the leaf is replaced: the trusted CA continues to issue.
        let (ahead, _, _) = tended(&settled, day(200), &wanted);
        assert!(!leaf(&ahead).is_valid_at(day(1)));
        let (back, _, changed) = tended(&ahead, day(1), &wanted);
        assert!(changed && back.bundle() == settled.bundle());
        assert!(back.0.bundle().trusts(&leaf(&back), day(1)));
    }

    #[test]
    fn a_secret_that_is_not_ours_is_not_touched_and_an_empty_one_is_filled() {
        let content = |pairs: &[(&str, &str)]| -> Content {
            pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())))
                .collect()
        };
        let error = |content: &Content| Keyring::read(content).unwrap_err().to_string();
        assert!(Keyring::read(&content(&[])).unwrap() == Keyring::default());
        assert!(Keyring::read(&content(&[("tls.crt", ""), ("tls.key", "")])).unwrap() == Keyring::default());
        assert!(error(&content(&[("password", "hunter2")])).starts_with("it has other content"));
        for damaged in ["", "7", r#"[{"certificate":"x"}]"#] {
            let error = error(&content(&[("authorities.json", damaged), ("tls.crt", "c"), ("tls.key", "k")]));
            assert_eq!(error, "its authorities.json is damaged; delete the Secret, and it will be recreated");
        }
    }

    #[test]
    fn a_keyring_prints_no_keys() {
        let (keyring, _, _) = tended(&Keyring::default(), day(0), &["a.b.svc"]);
        assert_eq!(format!("{keyring:?}"), "Keyring { authorities: 1, leaf: true }");
    }
}
