//! Certificate authorities and the certificates they issue.
//!
//! Pure but for the numbers that keys are made of: what is made follows from what is there and from the time, so that a life of years
//! is a unit test.
//!
//! **An authority is replaced without anybody being distrusted on the way.** When two thirds of its life are over, the next one is made
//! and trusted beside it. After an overlap it begins to issue, and all certificates are issued anew; after another overlap the old
//! one is trusted no more. Each change of a Secret replaces the pods that read it, so an overlap must be longer than that takes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, date_time_ymd,
};
use windlass::DrawError;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::parse_x509_certificate;
use x509_parser::pem::parse_x509_pem;

use crate::api::notary::KeyAlgorithm;
use crate::config::token_key;

use super::names::common_name;
use super::private_key;

/// The certificate, in Secrets of type `kubernetes.io/tls`.
pub const CERTIFICATE: &str = "tls.crt";
/// Its key.
pub const KEY: &str = "tls.key";
/// All authorities that are to be trusted.
pub const BUNDLE: &str = "ca.crt";
const NEXT: &str = "next.crt";
const NEXT_KEY: &str = "next.key";
const PREVIOUS: &str = "previous.crt";
/// Since when the authority issues, where another did before.
const ISSUES_SINCE: &str = "issues-since";

/// Certificates are valid from a little before they were made: clocks differ.
const BACKDATE: Duration = Duration::from_mins(5);
/// The longest time for which two authorities are trusted before the newer one issues.
const LONGEST_OVERLAP: Duration = Duration::from_hours(24);

/// The content of a Secret.
pub type Content = BTreeMap<String, ByteString>;

/// A certificate with its key, in PEM.
#[derive(Clone, PartialEq, Eq)]
struct Pair {
    certificate: String,
    key: String,
}

/// What a certificate says of itself.
struct Said {
    subject: Vec<u8>,
    issuer: Vec<u8>,
    from: Timestamp,
    ends: Timestamp,
    names: BTreeSet<String>,
    /// Of its own key, and of its issuer's.
    key: Option<Vec<u8>>,
    issuer_key: Option<Vec<u8>>,
}

fn said(certificate: &str) -> Option<Said> {
    let (_, pem) = parse_x509_pem(certificate.as_bytes()).ok()?;
    let (_, parsed) = parse_x509_certificate(&pem.contents).ok()?;
    let time = |time: x509_parser::time::ASN1Time| Timestamp::from_second(time.timestamp()).ok();
    let alternative = parsed.subject_alternative_name().ok()?;
    let names =
        alternative.iter().flat_map(|names| &names.value.general_names).filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        });
    Some(Said {
        subject: parsed.subject().as_raw().to_vec(),
        issuer: parsed.issuer().as_raw().to_vec(),
        from: time(parsed.validity().not_before)? + BACKDATE,
        ends: time(parsed.validity().not_after)?,
        names: names.collect(),
        key: identifier(&parsed, |extension| match extension {
            ParsedExtension::SubjectKeyIdentifier(key) => Some(key.0.to_vec()),
            _ => None,
        }),
        issuer_key: identifier(&parsed, |extension| match extension {
            ParsedExtension::AuthorityKeyIdentifier(authority) => {
                authority.key_identifier.as_ref().map(|key| key.0.to_vec())
            }
            _ => None,
        }),
    })
}

fn identifier(
    certificate: &X509Certificate<'_>,
    of: impl Fn(&ParsedExtension<'_>) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    certificate.extensions().iter().find_map(|extension| of(extension.parsed_extension()))
}

impl Said {
    /// Whether it is of this authority: by its name, and where both say so by its key. Others renew an authority under its name.
    fn is_by(&self, authority: &Self) -> bool {
        let same_key =
            self.issuer_key.as_ref().zip(authority.key.as_ref()).is_none_or(|(one, two)| one == two);
        self.issuer == authority.subject && same_key
    }

    /// When two thirds of its life are over.
    fn renewal(&self) -> Timestamp {
        let life = Duration::try_from(self.from.duration_until(self.ends)).unwrap_or_default();
        self.from + life * 2 / 3
    }
}

fn text(content: &Content, key: &str) -> Option<String> {
    String::from_utf8(content.get(key)?.0.clone()).ok()
}

/// How an authority is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorityRecipe {
    /// What it is called, before a digest of its own.
    pub name: String,
    /// How long it lives.
    pub lifetime: Duration,
}

impl AuthorityRecipe {
    fn overlap(&self) -> Duration {
        LONGEST_OVERLAP.min(self.lifetime / 10)
    }
}

/// An authority, the one that follows it, and the one that it followed.
#[derive(Clone, PartialEq, Eq)]
struct Authority {
    current: Pair,
    next: Option<Pair>,
    previous: Option<(String, Timestamp)>,
}

impl Authority {
    fn read(content: &Content) -> Option<Self> {
        let pair = |certificate, key| {
            let pair = Pair { certificate: text(content, certificate)?, key: text(content, key)? };
            (said(&pair.certificate).is_some() && private_key::key(&pair.key).is_some()).then_some(pair)
        };
        let previous = || Some((text(content, PREVIOUS)?, text(content, ISSUES_SINCE)?.parse().ok()?));
        Some(Self { current: pair(CERTIFICATE, KEY)?, next: pair(NEXT, NEXT_KEY), previous: previous() })
    }

    fn write(&self) -> Content {
        let mut content = BTreeMap::from([
            (CERTIFICATE, self.current.certificate.clone()),
            (KEY, self.current.key.clone()),
            (BUNDLE, self.bundle()),
        ]);
        if let Some(next) = &self.next {
            content.extend([(NEXT, next.certificate.clone()), (NEXT_KEY, next.key.clone())]);
        }
        if let Some((certificate, since)) = &self.previous {
            content.extend([(PREVIOUS, certificate.clone()), (ISSUES_SINCE, since.to_string())]);
        }
        content.into_iter().map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes()))).collect()
    }

    fn bundle(&self) -> String {
        let next = self.next.iter().map(|next| &*next.certificate);
        let previous = self.previous.iter().map(|(certificate, _)| &**certificate);
        next.chain([&*self.current.certificate]).chain(previous).collect()
    }
}

/// An authority as it is to be now, and when to look again.
pub fn tend_authority(
    present: Option<&Content>,
    recipe: &AuthorityRecipe,
    now: Timestamp,
) -> Result<(Content, Timestamp), DrawError> {
    let alive =
        |authority: &Authority| said(&authority.current.certificate).is_some_and(|said| said.ends > now);
    let overlap = recipe.overlap();
    let Some(mut authority) = present.and_then(Authority::read).filter(alive) else {
        // One that cannot issue any more, but whose certificates are in use, is trusted until all have rolled.
        let trusted = |certificate: &String| said(certificate).is_some_and(|said| said.ends > now);
        let previous = present.and_then(|content| text(content, CERTIFICATE)).filter(trusted);
        let previous = previous.map(|certificate| (certificate, now));
        let fresh = Authority { current: authority(recipe, now)?, next: None, previous };
        let renewal = said(&fresh.current.certificate).map_or(now, |said| said.renewal());
        let due = if fresh.previous.is_some() { now + overlap } else { renewal };
        return Ok((fresh.write(), due));
    };
    if authority.previous.as_ref().is_some_and(|(_, since)| *since + overlap <= now) {
        authority.previous = None;
    }
    let announced = |next: &Pair| said(&next.certificate).map_or(now, |said| said.from);
    if let Some(next) = authority.next.take_if(|next| announced(next) + overlap <= now) {
        let old = std::mem::replace(&mut authority.current, next);
        authority.previous = Some((old.certificate, now));
    }
    let renewal = said(&authority.current.certificate).map_or(now, |said| said.renewal());
    if authority.next.is_none() && authority.previous.is_none() && renewal <= now {
        authority.next = Some(self::authority(recipe, now)?);
    }
    let due = match (&authority.next, &authority.previous) {
        (Some(next), _) => announced(next) + overlap,
        (None, Some((_, since))) => *since + overlap,
        (None, None) => renewal,
    };
    Ok((authority.write(), due))
}

fn authority(recipe: &AuthorityRecipe, now: Timestamp) -> Result<Pair, DrawError> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut params = params(now, now + recipe.lifetime, Vec::new())?;
    // Each has a name of its own, so that a certificate says by whom it is.
    let digest = ring::digest::digest(&ring::digest::SHA256, key.public_key_raw());
    let id = digest.as_ref().iter().take(4).fold(0_u32, |id, byte| id << 8 | u32::from(*byte));
    let name = windlass::naming::name([&*recipe.name], 55);
    params.distinguished_name.push(DnType::CommonName, format!("{name} {id:08x}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(Pair { certificate: params.self_signed(&key)?.pem(), key: key.serialize_pem() })
}

/// How a certificate is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafRecipe {
    /// The names that it is for; the first is its common name.
    pub hosts: Vec<String>,
    /// How long it lives.
    pub lifetime: Duration,
    /// Of which sort its key is.
    pub key: KeyAlgorithm,
}

/// A key of this sort.
fn key_of(sort: KeyAlgorithm) -> Result<KeyPair, DrawError> {
    Ok(match sort {
        KeyAlgorithm::Ecdsa => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?,
        KeyAlgorithm::Ed25519 => KeyPair::generate_for(&PKCS_ED25519)?,
        KeyAlgorithm::Rsa => private_key::key(token_key::generate()?.expose()).ok_or_else(damaged)?,
    })
}

/// A certificate as it is to be now, of the authority as it is, and when to look again.
pub fn tend_leaf(
    present: Option<&Content>,
    authority: &Content,
    recipe: &LeafRecipe,
    now: Timestamp,
) -> Result<(Content, Timestamp), DrawError> {
    let authority = Authority::read(authority).ok_or_else(|| {
        DrawError::new("the Secret of its authority is damaged: delete it, and it is made anew")
    })?;
    let issuer = said(&authority.current.certificate).ok_or_else(damaged)?;
    // The first is the name in use. One that lacks the others (another operator's) gets them when it is made anew anyway.
    let named = |leaf: &Said| recipe.hosts.first().is_some_and(|first| leaf.names.contains(first));
    let good = |pair: &Pair| {
        let leaf = said(&pair.certificate).filter(|_| private_key::key(&pair.key).is_some());
        leaf.is_some_and(|leaf| leaf.is_by(&issuer) && named(&leaf) && leaf.renewal() > now)
    };
    let pair = present.and_then(|content| {
        Some(Pair { certificate: text(content, CERTIFICATE)?, key: text(content, KEY)? }).filter(good)
    });
    let pair = match pair {
        Some(pair) => pair,
        None => issue(&authority.current, &issuer, recipe, now)?,
    };
    let due = said(&pair.certificate).map_or(now, |leaf| leaf.renewal());
    let all = [(CERTIFICATE, pair.certificate), (KEY, pair.key), (BUNDLE, authority.bundle())];
    let content = all.into_iter().map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes())));
    Ok((content.collect(), due))
}

fn damaged() -> DrawError {
    DrawError::new("a certificate cannot be read that was just made")
}

fn issue(by: &Pair, issuer: &Said, recipe: &LeafRecipe, now: Timestamp) -> Result<Pair, DrawError> {
    let key = key_of(recipe.key)?;
    let ends = issuer.ends.min(now + recipe.lifetime);
    let mut params = params(now, ends, recipe.hosts.clone())?;
    let first = recipe.hosts.first().map(String::as_str).unwrap_or_default();
    params.distinguished_name.push(DnType::CommonName, common_name(first));
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let signer = private_key::key(&by.key).ok_or_else(damaged)?;
    let issuer = Issuer::from_ca_cert_pem(&by.certificate, signer)?;
    Ok(Pair { certificate: params.signed_by(&key, &issuer)?.pem(), key: key.serialize_pem() })
}

pub(super) fn params(
    now: Timestamp,
    ends: Timestamp,
    names: Vec<String>,
) -> Result<CertificateParams, DrawError> {
    let mut params = CertificateParams::new(names)?;
    let time = |time: Timestamp| {
        // Whole seconds: that is all that a certificate holds.
        date_time_ymd(1970, 1, 1) + Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default())
    };
    params.not_before = time(now - BACKDATE);
    params.not_after = time(ends);
    params.distinguished_name = rcgen::DistinguishedName::new();
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

    const DAY: Duration = Duration::from_hours(24);

    fn day(days: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + days * 86_400).unwrap()
    }

    fn ca() -> AuthorityRecipe {
        AuthorityRecipe { name: "sample-harbor".into(), lifetime: DAY * 365 }
    }

    fn leaf() -> LeafRecipe {
        LeafRecipe {
            hosts: vec!["a-core".into(), "a-core.ns".into(), "a-core.ns.svc".into()],
            lifetime: DAY * 90,
            key: KeyAlgorithm::Ecdsa,
        }
    }

    /// Whether somebody who trusts these authorities believes this certificate for that name then.
    fn believed(trusted: &Content, shown: &Content, name: &str, now: Timestamp) -> bool {
        let mut roots = rustls::RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(&trusted[BUNDLE].0) {
            roots.add(root.unwrap()).unwrap();
        }
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build().unwrap();
        let certificate = CertificateDer::from_pem_slice(&shown[CERTIFICATE].0).unwrap();
        let at = UnixTime::since_unix_epoch(Duration::from_secs(now.as_second().try_into().unwrap()));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        verifier.verify_server_cert(&certificate, &[], &name, &[], at).is_ok()
    }

    #[test]
    fn a_certificate_verifies_as_a_chain_with_the_names_in_use() {
        let (authority, due) = tend_authority(None, &ca(), day(0)).unwrap();
        assert_eq!(due, day(0) + DAY * 365 * 2 / 3);
        let (shown, due) = tend_leaf(None, &authority, &leaf(), day(0)).unwrap();
        assert_eq!(due, day(60));
        for name in ["a-core", "a-core.ns", "a-core.ns.svc"] {
            assert!(believed(&shown, &shown, name, day(1)), "{name}");
        }
        assert!(!believed(&shown, &shown, "other", day(1)));
        assert!(!believed(&shown, &shown, "a-core", day(91)), "it has ended");
        let (other, _) = tend_authority(None, &ca(), day(0)).unwrap();
        assert!(!believed(&other, &shown, "a-core", day(1)), "of another authority");
    }

    #[test]
    fn a_certificate_is_kept_until_it_is_due_or_for_other_names() {
        let (authority, _) = tend_authority(None, &ca(), day(0)).unwrap();
        let (first, _) = tend_leaf(None, &authority, &leaf(), day(0)).unwrap();
        let again = |recipe: &LeafRecipe, at| tend_leaf(Some(&first), &authority, recipe, at).unwrap().0;
        assert!(again(&leaf(), day(59)) == first);
        assert!(again(&leaf(), day(60)) != first);
        assert!(again(&LeafRecipe { hosts: vec!["b".into()], ..leaf() }, day(1)) != first);
        let mut broken = first.clone();
        broken.insert(KEY.into(), ByteString(b"x".to_vec()));
        assert!(tend_leaf(Some(&broken), &authority, &leaf(), day(1)).unwrap().0 != first);
    }

    #[test]
    fn through_the_lives_of_three_authorities_everybody_believes_everybody() {
        let (mut authority, mut due) = tend_authority(None, &ca(), day(0)).unwrap();
        let (mut shown, mut leaf_due) = tend_leaf(None, &authority, &leaf(), day(0)).unwrap();
        let (mut authorities, mut most) = (BTreeSet::new(), 0);
        for at in (0..900).map(day) {
            // What pods have that were replaced at the last change, and those that are replaced now.
            let before = shown.clone();
            let changed = at >= due;
            if changed {
                (authority, due) = tend_authority(Some(&authority), &ca(), at).unwrap();
                assert!(due > at);
            }
            if changed || at >= leaf_due {
                (shown, leaf_due) = tend_leaf(Some(&shown), &authority, &leaf(), at).unwrap();
                assert!(leaf_due > at);
            }
            for (trusts, shows) in [(&before, &shown), (&shown, &before), (&shown, &shown)] {
                assert!(believed(trusts, shows, "a-core", at), "at {at}");
            }
            authorities.insert(text(&authority, CERTIFICATE).unwrap());
            most = most.max(text(&shown, BUNDLE).unwrap().matches("BEGIN CERTIFICATE").count());
        }
        assert!(authorities.len() >= 3, "{}", authorities.len());
        assert_eq!(most, 2, "two are trusted while one follows the other");
        assert_eq!(text(&shown, BUNDLE).unwrap().matches("BEGIN CERTIFICATE").count(), 1);
    }

    #[test]
    fn an_authority_that_has_ended_or_is_damaged_is_replaced_at_once() {
        let (first, _) = tend_authority(None, &ca(), day(0)).unwrap();
        let (later, _) = tend_authority(Some(&first), &ca(), day(400)).unwrap();
        assert!(later[CERTIFICATE] != first[CERTIFICATE]);
        let mut broken = first.clone();
        broken.insert(KEY.into(), ByteString(b"x".to_vec()));
        let (mended, _) = tend_authority(Some(&broken), &ca(), day(1)).unwrap();
        assert!(mended[CERTIFICATE] != first[CERTIFICATE]);
    }

    #[test]
    fn keys_are_of_the_sort_that_was_asked_for() {
        let (authority, _) = tend_authority(None, &ca(), day(0)).unwrap();
        let mut sorts = BTreeSet::new();
        for key in KeyAlgorithm::ALL {
            let (shown, _) =
                tend_leaf(None, &authority, &LeafRecipe { key: *key, ..leaf() }, day(0)).unwrap();
            assert!(believed(&shown, &shown, "a-core", day(1)), "{key}");
            let (_, pem) = parse_x509_pem(&shown[CERTIFICATE].0).unwrap();
            sorts.insert(pem.parse_x509().unwrap().public_key().algorithm.algorithm.to_string());
        }
        assert_eq!(sorts.len(), 3, "{sorts:?}");
    }

    #[test]
    fn names_of_any_length_make_certificates() {
        let recipe = AuthorityRecipe { name: "x".repeat(200), ..ca() };
        let (authority, _) = tend_authority(None, &recipe, day(0)).unwrap();
        let long = format!("{}.{}.svc", "a".repeat(63), "b".repeat(63));
        let recipe = LeafRecipe { hosts: vec![long.clone()], ..leaf() };
        let (shown, _) = tend_leaf(None, &authority, &recipe, day(0)).unwrap();
        assert!(believed(&shown, &shown, &long, day(1)));
    }
}
