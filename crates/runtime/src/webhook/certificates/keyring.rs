//! Authorities and the serving certificate, as the Secret holds them.
//!
//! | key of the Secret | what |
//! | --- | --- |
//! | `tls.crt`, `tls.key` | the serving certificate and its key |
//! | `ca.crt` | all trusted authorities: what configurations get as `caBundle` |
//! | `authorities.json` | the authorities with their keys, and what is known of each |
//!
//! Times are read from the certificates; only what a certificate cannot say is stored beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, date_time_ymd,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;
use x509_parser::pem::parse_x509_pem;

use super::plan::{self, Action, Policy, Stored, after, before, leaf_ends};

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const BUNDLE: &str = "ca.crt";
const AUTHORITIES: &str = "authorities.json";

/// Certificates are valid from a little before they were made: clocks differ.
const BACKDATE: Duration = Duration::from_mins(5);

/// A Secret's content.
pub(super) type Content = BTreeMap<String, ByteString>;

/// Content that is not what this module wrote, or certificates that cannot be made. Says nothing of keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// The Secret has content, and not ours.
    #[error(
        "it holds something else ({0} is missing); delete it, or choose another name for the webhooks' Secret"
    )]
    Foreign(&'static str),
    /// The content is ours and damaged.
    #[error("its {0} is damaged; delete the Secret, and it is made anew")]
    Damaged(&'static str),
    /// A certificate cannot be made; a name may be wrong.
    #[error("a certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
}

/// Authorities and the serving certificate.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Keyring {
    authorities: Vec<Authority>,
    leaf: Option<Pair>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Authority {
    certificate: String,
    /// Gone when a newer authority has issued: it will not be needed again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    announced: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_leaf: Option<Timestamp>,
}

#[derive(Clone, PartialEq)]
struct Pair {
    certificate: String,
    key: String,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring")
            .field("authorities", &self.authorities.len())
            .field("leaf", &self.leaf.is_some())
            .finish()
    }
}

/// What a certificate says of itself.
struct Said {
    subject: Vec<u8>,
    issuer: Vec<u8>,
    made: Timestamp,
    ends: Timestamp,
    names: BTreeSet<String>,
}

fn said(certificate: &str) -> Option<Said> {
    let (_, pem) = parse_x509_pem(certificate.as_bytes()).ok()?;
    let (_, parsed) = parse_x509_certificate(&pem.contents).ok()?;
    let time = |time: x509_parser::time::ASN1Time| Timestamp::from_second(time.timestamp()).ok();
    let alternative = parsed.subject_alternative_name().ok()?;
    let names =
        alternative.iter().flat_map(|names| &names.value.general_names).filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => <[u8; 4]>::try_from(*bytes)
                .map(IpAddr::from)
                .or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from))
                .ok()
                .map(|ip| ip.to_string()),
            _ => None,
        });
    Some(Said {
        subject: parsed.subject().as_raw().to_vec(),
        issuer: parsed.issuer().as_raw().to_vec(),
        made: after(time(parsed.validity().not_before)?, BACKDATE),
        ends: time(parsed.validity().not_after)?,
        names: names.collect(),
    })
}

fn pem(content: &Content, key: &'static str) -> Result<String, KeyringError> {
    let bytes = content.get(key).ok_or(KeyringError::Foreign(key))?;
    String::from_utf8(bytes.0.clone()).map_err(|_| KeyringError::Damaged(key))
}

impl Keyring {
    /// From a Secret. One without content is an empty keyring: somebody made room for it.
    pub(super) fn read(content: &Content) -> Result<Self, KeyringError> {
        if content.values().all(|value| value.0.is_empty()) {
            return Ok(Self::default());
        }
        let authorities = content.get(AUTHORITIES).ok_or(KeyringError::Foreign(AUTHORITIES))?;
        let authorities: Vec<Authority> =
            serde_json::from_slice(&authorities.0).map_err(|_| KeyringError::Damaged(AUTHORITIES))?;
        if authorities.iter().any(|authority| said(&authority.certificate).is_none()) {
            return Err(KeyringError::Damaged(AUTHORITIES));
        }
        let leaf = Pair { certificate: pem(content, CERTIFICATE)?, key: pem(content, KEY)? };
        Ok(Self { authorities, leaf: Some(leaf) })
    }

    /// For a Secret.
    pub(super) fn write(&self) -> Content {
        let leaf = self.leaf.iter().flat_map(|leaf| [(CERTIFICATE, &leaf.certificate), (KEY, &leaf.key)]);
        let mut content: Content =
            leaf.map(|(key, value)| (key.to_owned(), ByteString(value.clone().into_bytes()))).collect();
        content.insert(BUNDLE.to_owned(), ByteString(self.bundle().into_bytes()));
        // Strings and times: writing them cannot fail.
        let authorities = serde_json::to_vec(&self.authorities).unwrap_or_default();
        content.insert(AUTHORITIES.to_owned(), ByteString(authorities));
        content
    }

    /// The certificates of all trusted authorities, newest first.
    pub(super) fn bundle(&self) -> String {
        self.authorities.iter().rev().map(|authority| authority.certificate.as_str()).collect()
    }

    /// The serving certificate and its key.
    pub(super) fn serving(&self) -> Option<(&[u8], &[u8])> {
        self.leaf.as_ref().map(|leaf| (leaf.certificate.as_bytes(), leaf.key.as_bytes()))
    }

    /// Notes that all authorities are in all configurations; whether that is news.
    pub(super) fn announce(&mut self, now: Timestamp) -> bool {
        let mut news = false;
        for authority in self.authorities.iter_mut().filter(|authority| authority.announced.is_none()) {
            authority.announced = Some(now);
            news = true;
        }
        news
    }

    /// The facts that matter to the [plan](plan::plan).
    fn stored(&self, names: &BTreeSet<String>) -> Stored {
        let said_by_each: Vec<_> =
            self.authorities.iter().map(|authority| said(&authority.certificate)).collect();
        let authorities =
            self.authorities.iter().zip(&said_by_each).map(|(authority, said)| plan::Authority {
                made: said.as_ref().map_or(Timestamp::MIN, |said| said.made),
                ends: said.as_ref().map_or(Timestamp::MIN, |said| said.ends),
                signs: authority.key.is_some(),
                announced: authority.announced,
                last_leaf: authority.last_leaf,
            });
        let leaf = self.leaf.as_ref().and_then(|leaf| said(&leaf.certificate)).map(|leaf| {
            let by_this = |said: &Option<Said>| said.as_ref().is_some_and(|said| said.subject == leaf.issuer);
            plan::Leaf {
                issuer: said_by_each.iter().position(by_this),
                ends: leaf.ends,
                named: names.is_subset(&leaf.names),
            }
        });
        Stored { authorities: authorities.collect(), leaf }
    }

    /// Does all that the plan wants now; when to look again, and whether anything changed.
    pub(super) fn tend(
        &mut self,
        now: Timestamp,
        names: &BTreeSet<String>,
        policy: &Policy,
    ) -> Result<(Timestamp, bool), KeyringError> {
        let mut changed = false;
        loop {
            match plan::plan(now, &self.stored(names), policy) {
                Action::Wait { until } => return Ok((until, changed)),
                Action::Begin => {
                    self.add_authority(now, policy)?;
                    self.issue(self.authorities.len() - 1, now, names, policy)?;
                }
                Action::AddAuthority => self.add_authority(now, policy)?,
                Action::Issue { by } => self.issue(by, now, names, policy)?,
                Action::Forget { authority } => {
                    self.authorities.remove(authority);
                }
            }
            changed = true;
        }
    }

    fn add_authority(&mut self, now: Timestamp, policy: &Policy) -> Result<(), KeyringError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = params(now, after(now, policy.authority_lifetime), Vec::new())?;
        // Each has a name of its own, so that a leaf says by whom it is.
        let digest = Sha256::digest(key.public_key_raw());
        let id = digest.iter().take(6).fold(0, |id: u64, byte| id << 8 | u64::from(*byte));
        params.distinguished_name.push(DnType::CommonName, format!("windlass webhooks {id:012x}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        self.authorities.push(Authority {
            certificate: params.self_signed(&key)?.pem(),
            key: Some(key.serialize_pem()),
            announced: None,
            last_leaf: None,
        });
        Ok(())
    }

    fn issue(
        &mut self,
        by: usize,
        now: Timestamp,
        names: &BTreeSet<String>,
        policy: &Policy,
    ) -> Result<(), KeyringError> {
        // Names that it had stay: replicas of two releases that want different names would issue against each other.
        let had = self.leaf.as_ref().and_then(|leaf| said(&leaf.certificate)).map(|said| said.names);
        let names = names.iter().chain(had.iter().flatten()).cloned().collect::<BTreeSet<_>>();
        let damaged = KeyringError::Damaged(AUTHORITIES);
        let Some(authority) = self.authorities.get_mut(by) else { return Err(damaged) };
        let (Some(said), Some(key)) = (said(&authority.certificate), authority.key.as_deref()) else {
            return Err(damaged);
        };
        // rcgen's errors on bad PEM name no content.
        let issuer = Issuer::from_ca_cert_pem(&authority.certificate, KeyPair::from_pem(key)?)?;
        let ends = leaf_ends(now, said.ends, policy);
        let mut params = params(now, ends, names.into_iter().collect())?;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = params.signed_by(&key, &issuer)?.pem();
        authority.last_leaf = authority.last_leaf.max(Some(ends));
        self.leaf = Some(Pair { certificate, key: key.serialize_pem() });
        for older in &mut self.authorities[..by] {
            older.key = None;
        }
        Ok(())
    }
}

fn params(now: Timestamp, ends: Timestamp, names: Vec<String>) -> Result<CertificateParams, KeyringError> {
    let mut params = CertificateParams::new(names)?;
    let time = |time: Timestamp| {
        // Whole seconds: that is all that a certificate holds.
        date_time_ymd(1970, 1, 1) + Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default())
    };
    params.not_before = time(before(now, BACKDATE));
    params.not_after = time(ends);
    params.distinguished_name = rcgen::DistinguishedName::new();
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn day(days: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + days * 86_400).unwrap()
    }

    /// Tended at that time; what was done must survive the Secret.
    fn tended(keyring: &Keyring, now: Timestamp, wanted: &[&str]) -> (Keyring, Timestamp, bool) {
        let mut keyring = keyring.clone();
        let (until, changed) = keyring.tend(now, &names(wanted), &Policy::default()).unwrap();
        let read = Keyring::read(&keyring.write()).unwrap();
        assert!(read == keyring);
        (keyring, until, changed)
    }

    fn count(keyring: &Keyring) -> usize {
        keyring.bundle().matches("BEGIN CERTIFICATE").count()
    }

    #[test]
    fn from_nothing_comes_an_authority_and_a_certificate_with_these_names_and_times() {
        let (keyring, until, changed) = tended(&Keyring::default(), day(0), &["a.b.svc", "127.0.0.1", "::1"]);
        assert!(changed);
        assert_eq!(until, day(60));
        let leaf = said(&keyring.leaf.as_ref().unwrap().certificate).unwrap();
        assert_eq!(leaf.names, names(&["a.b.svc", "127.0.0.1", "::1"]));
        assert_eq!((leaf.made, leaf.ends), (day(0), day(90)));
        let authority = said(&keyring.bundle()).unwrap();
        assert_eq!((authority.made, authority.ends), (day(0), day(730)));
        assert_eq!(authority.subject, leaf.issuer);
        let (_, _, changed) = tended(&keyring, day(59), &["a.b.svc"]);
        assert!(!changed);
    }

    #[test]
    fn a_life_of_three_authorities_with_the_old_one_trusted_until_its_last_certificate_has_ended() {
        let wanted = ["a.b.svc"];
        let (mut keyring, mut until, _) = tended(&Keyring::default(), day(0), &wanted);
        let (mut sizes, mut authorities) = (BTreeSet::new(), BTreeSet::new());
        while until < day(1500) {
            let now = until;
            (keyring, _, _) = tended(&keyring, now, &wanted);
            keyring.announce(now);
            (_, until, _) = tended(&keyring, now, &wanted);
            sizes.insert(count(&keyring));
            let leaf = said(&keyring.leaf.as_ref().unwrap().certificate).unwrap();
            assert!(leaf.ends > now);
            authorities.insert(leaf.issuer);
        }
        assert_eq!(sizes, [1, 2].into());
        assert_eq!(authorities.len(), 3);
    }

    #[test]
    fn a_retired_authority_keeps_no_key() {
        let wanted = ["a.b.svc"];
        let (mut keyring, _, _) = tended(&Keyring::default(), day(0), &wanted);
        (keyring, _, _) = tended(&keyring, day(550), &wanted);
        assert_eq!(count(&keyring), 2);
        assert!(keyring.announce(day(550)) && !keyring.announce(day(551)));
        (keyring, _, _) = tended(&keyring, day(551), &wanted);
        assert_eq!(keyring.authorities.iter().map(|a| a.key.is_some()).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn names_are_added_and_replicas_that_want_others_do_not_issue_against_each_other() {
        let (keyring, _, _) = tended(&Keyring::default(), day(0), &["old.b.svc"]);
        let (keyring, _, changed) = tended(&keyring, day(1), &["new.b.svc"]);
        assert!(changed);
        for wanted in ["old.b.svc", "new.b.svc"] {
            assert!(!tended(&keyring, day(1), &[wanted]).2, "{wanted}");
        }
        assert_eq!(count(&keyring), 1);
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
        assert!(error(&content(&[("password", "hunter2")])).starts_with("it holds something else"));
        for damaged in ["", "7", r#"[{"certificate":"x"}]"#] {
            let error = error(&content(&[("authorities.json", damaged), ("tls.crt", "c"), ("tls.key", "k")]));
            assert_eq!(error, "its authorities.json is damaged; delete the Secret, and it is made anew");
        }
    }

    #[test]
    fn a_keyring_prints_no_keys() {
        let (keyring, _, _) = tended(&Keyring::default(), day(0), &["a.b.svc"]);
        assert_eq!(format!("{keyring:?}"), "Keyring { authorities: 1, leaf: true }");
    }
}
