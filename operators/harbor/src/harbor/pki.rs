//! Layout and content of the Secrets of certificate authorities and of the certificates that they issue.
//!
//! Steps and times are those of [`windlass_pki::rotation::succession`]: an authority is replaced without a
//! moment in which a valid certificate is not trusted. Each change of a Secret replaces the pods that read
//! it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use windlass::PlanError;
use windlass_pki::rotation::succession::{InUse, Leaf, Previous, Succession};
use windlass_pki::{Algorithm, Bundle, Certificate, Pair, PrivateKey};

use crate::api::notary::KeyAlgorithm;
use crate::config::token_key;

use super::names::common_name;

/// Key of the certificate in Secrets of type `kubernetes.io/tls`.
pub(crate) const CERTIFICATE: &str = "tls.crt";
/// Key of the private key.
pub(crate) const KEY: &str = "tls.key";
/// Key of the bundle with all trusted authorities.
pub(crate) const BUNDLE: &str = "ca.crt";
const NEXT: &str = "next.crt";
const NEXT_KEY: &str = "next.key";
const PREVIOUS: &str = "previous.crt";
/// Key of the time since when the authority issues certificates, if it has a predecessor.
const ISSUES_SINCE: &str = "issues-since";

/// Longest name of an authority without its digest: a common name has at most 64 characters.
const NAME: usize = 55;

/// The data of a Secret.
pub(crate) type Content = BTreeMap<String, ByteString>;

fn text(content: &Content, key: &str) -> Option<String> {
    String::from_utf8(content.get(key)?.0.clone()).ok()
}

fn pair(content: &Content, certificate: &str, key: &str) -> Option<Pair> {
    Some(Pair::new(text(content, certificate)?, text(content, key).unwrap_or_default()))
}

fn content<'a>(all: impl IntoIterator<Item = (&'a str, String)>) -> Content {
    all.into_iter().map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes()))).collect()
}

fn read_authority(content: &Content) -> Option<Succession> {
    let previous = || {
        let replaced = text(content, ISSUES_SINCE)?.parse().ok()?;
        Some(Previous { certificate: text(content, PREVIOUS)?, replaced })
    };
    let current = pair(content, CERTIFICATE, KEY)?;
    Some(Succession { current, next: pair(content, NEXT, NEXT_KEY), previous: previous() })
}

fn write_authority(authority: Succession) -> Content {
    let bundle = authority.bundle().into_pem();
    let (certificate, key) = authority.current.into_parts();
    let mut all = vec![(CERTIFICATE, certificate), (KEY, key), (BUNDLE, bundle)];
    if let Some((certificate, key)) = authority.next.map(Pair::into_parts) {
        all.extend([(NEXT, certificate), (NEXT_KEY, key)]);
    }
    if let Some(Previous { certificate, replaced }) = authority.previous {
        all.extend([(PREVIOUS, certificate), (ISSUES_SINCE, replaced.to_string())]);
    }
    content(all)
}

fn read_leaf(content: &Content) -> Option<Leaf> {
    let bundle = text(content, BUNDLE).unwrap_or_default();
    Some(Leaf { pair: pair(content, CERTIFICATE, KEY)?, bundle: Bundle::of([&*bundle]) })
}

/// The recipe of an authority. Its `Debug` text is stored on the Secret: a change of the text regenerates all
/// Secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthorityRecipe {
    /// The name of the authority, without its digest.
    pub name: String,
    /// The lifetime of the authority.
    pub lifetime: Duration,
}

/// Returns the current content of an authority's Secret, and the time of the next step. `leaves` are the
/// known Secrets of its certificates: a step waits until the previous one has reached all of them.
pub(crate) fn tend_authority(
    present: Option<&Content>,
    leaves: &[Content],
    recipe: &AuthorityRecipe,
    now: Timestamp,
) -> Result<(Content, Timestamp), PlanError> {
    let leaves: Vec<_> = leaves.iter().filter_map(read_leaf).map(|leaf| InUse::of(&leaf)).collect();
    let name = windlass::naming::name([&*recipe.name], NAME);
    let recipe = windlass_pki::AuthorityRecipe::new(name, recipe.lifetime);
    let present = present.and_then(read_authority);
    let (authority, due) = Succession::tend(present.as_ref(), &leaves, &recipe, now)?;
    Ok((write_authority(authority), due))
}

/// The recipe of a certificate. Its `Debug` text is stored on the Secret: a change of the text regenerates
/// all Secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeafRecipe {
    /// The host names; the first one is the common name.
    pub hosts: Vec<String>,
    /// The lifetime of the certificate.
    pub lifetime: Duration,
    /// The algorithm of its key.
    pub key: KeyAlgorithm,
}

/// Returns a new key of this algorithm.
fn key_of(sort: KeyAlgorithm) -> Result<PrivateKey, PlanError> {
    Ok(match sort {
        KeyAlgorithm::Ecdsa => PrivateKey::generate(Algorithm::EcdsaP256)?,
        KeyAlgorithm::Ed25519 => PrivateKey::generate(Algorithm::Ed25519)?,
        KeyAlgorithm::Rsa => PrivateKey::from_pem(token_key::generate()?.expose())?,
    })
}

/// Returns the current content of a certificate's Secret, issued by the current authority, and the time of
/// the next renewal.
pub(crate) fn tend_leaf(
    present: Option<&Content>,
    authority: &Content,
    recipe: &LeafRecipe,
    now: Timestamp,
) -> Result<(Content, Timestamp), PlanError> {
    let is_readable = |authority: &Succession| {
        let current = &authority.current;
        Certificate::from_pem(current.certificate()).is_ok() && PrivateKey::from_pem(current.key()).is_ok()
    };
    let authority = read_authority(authority).filter(is_readable).ok_or_else(|| {
        PlanError::new(
            "the Secret of its certificate authority is damaged: delete it to have it generated again",
        )
    })?;
    let first = recipe.hosts.first().map(String::as_str).unwrap_or_default();
    let leaf = windlass_pki::LeafRecipe::new()
        .common_name(common_name(first))
        .names(&recipe.hosts)
        .server()
        .client()
        .key_encipherment();
    let present = present.and_then(read_leaf);
    let key = || key_of(recipe.key);
    let (leaf, due) = authority.tend_leaf(present.as_ref(), &leaf, recipe.lifetime, key, now)?;
    let (certificate, key) = leaf.pair.into_parts();
    Ok((content([(CERTIFICATE, certificate), (KEY, key), (BUNDLE, leaf.bundle.into_pem())]), due))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

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

    /// Returns true if a client that trusts these authorities accepts the certificate for the host name at
    /// that time.
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
        let (authority, due) = tend_authority(None, &[], &ca(), day(0)).unwrap();
        assert_eq!(due, day(0) + DAY * 365 * 2 / 3);
        let (shown, due) = tend_leaf(None, &authority, &leaf(), day(0)).unwrap();
        assert_eq!(due, day(60));
        for name in ["a-core", "a-core.ns", "a-core.ns.svc"] {
            assert!(believed(&shown, &shown, name, day(1)), "{name}");
        }
        assert!(!believed(&shown, &shown, "other", day(1)));
        assert!(!believed(&shown, &shown, "a-core", day(91)), "it has ended");
        let (other, _) = tend_authority(None, &[], &ca(), day(0)).unwrap();
        assert!(!believed(&other, &shown, "a-core", day(1)), "of another authority");
    }

    #[test]
    fn a_certificate_is_kept_until_its_renewal_or_a_change_of_names() {
        let (authority, _) = tend_authority(None, &[], &ca(), day(0)).unwrap();
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
    fn certificates_are_trusted_throughout_three_generations_of_authorities() {
        let (mut authority, mut due) = tend_authority(None, &[], &ca(), day(0)).unwrap();
        let (mut shown, mut leaf_due) = tend_leaf(None, &authority, &leaf(), day(0)).unwrap();
        let (mut authorities, mut most) = (BTreeSet::new(), 0);
        for at in (0..900).map(day) {
            // Content of pods that were replaced at the previous change, and of those that are replaced now.
            let before = shown.clone();
            let changed = at >= due;
            if changed {
                (authority, due) = tend_authority(Some(&authority), &[shown.clone()], &ca(), at).unwrap();
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
        let (first, _) = tend_authority(None, &[], &ca(), day(0)).unwrap();
        let (later, _) = tend_authority(Some(&first), &[], &ca(), day(400)).unwrap();
        assert!(later[CERTIFICATE] != first[CERTIFICATE]);
        let mut broken = first.clone();
        broken.insert(KEY.into(), ByteString(b"x".to_vec()));
        let (mended, _) = tend_authority(Some(&broken), &[], &ca(), day(1)).unwrap();
        assert!(mended[CERTIFICATE] != first[CERTIFICATE]);
    }

    #[test]
    fn keys_are_of_the_sort_that_was_asked_for() {
        let (authority, _) = tend_authority(None, &[], &ca(), day(0)).unwrap();
        let mut sorts = BTreeSet::new();
        for key in KeyAlgorithm::ALL {
            let (shown, _) =
                tend_leaf(None, &authority, &LeafRecipe { key: *key, ..leaf() }, day(0)).unwrap();
            assert!(believed(&shown, &shown, "a-core", day(1)), "{key}");
            let (_, pem) = x509_parser::pem::parse_x509_pem(&shown[CERTIFICATE].0).unwrap();
            sorts.insert(pem.parse_x509().unwrap().public_key().algorithm.algorithm.to_string());
        }
        assert_eq!(sorts.len(), 3, "{sorts:?}");
    }

    #[test]
    fn names_of_any_length_make_certificates() {
        let recipe = AuthorityRecipe { name: "x".repeat(200), ..ca() };
        let (authority, _) = tend_authority(None, &[], &recipe, day(0)).unwrap();
        let long = format!("{}.{}.svc", "a".repeat(63), "b".repeat(63));
        let recipe = LeafRecipe { hosts: vec![long.clone()], ..leaf() };
        let (shown, _) = tend_leaf(None, &authority, &recipe, day(0)).unwrap();
        assert!(believed(&shown, &shown, &long, day(1)));
    }

    #[test]
    fn recipe_texts_never_change() {
        // A changed text would regenerate all Secrets and replace the pods of every installation.
        assert_eq!(
            format!("{:?}", ca()),
            r#"AuthorityRecipe { name: "sample-harbor", lifetime: 31536000s }"#
        );
        let text = r#"LeafRecipe { hosts: ["a-core", "a-core.ns", "a-core.ns.svc"], lifetime: 7776000s, key: Ecdsa }"#;
        assert_eq!(format!("{:?}", leaf()), text);
    }

    #[test]
    fn keys_of_certificate_secrets_never_change() {
        let keys = |content: &Content| content.keys().cloned().collect::<Vec<_>>().join(" ");
        let (first, due) = tend_authority(None, &[], &ca(), day(0)).unwrap();
        assert_eq!(keys(&first), "ca.crt tls.crt tls.key");
        let (announced, due) = tend_authority(Some(&first), &[], &ca(), due).unwrap();
        assert_eq!(keys(&announced), "ca.crt next.crt next.key tls.crt tls.key");
        let (issues, due) = tend_authority(Some(&announced), &[], &ca(), due).unwrap();
        assert_eq!(keys(&issues), "ca.crt issues-since previous.crt tls.crt tls.key");
        assert_eq!(issues[CERTIFICATE], announced[NEXT]);
        let (done, _) = tend_authority(Some(&issues), &[], &ca(), due).unwrap();
        assert_eq!(keys(&done), "ca.crt tls.crt tls.key");
        let (shown, _) = tend_leaf(None, &done, &leaf(), due).unwrap();
        assert_eq!(keys(&shown), "ca.crt tls.crt tls.key");
    }

    #[test]
    fn certificates_that_are_not_valid_yet_are_issued_again() {
        let (ahead, _) = tend_authority(None, &[], &ca(), day(1000)).unwrap();
        let (shown, _) = tend_leaf(None, &ahead, &leaf(), day(1000)).unwrap();
        let (authority, _) =
            tend_authority(Some(&ahead), std::slice::from_ref(&shown), &ca(), day(0)).unwrap();
        let (shown, _) = tend_leaf(Some(&shown), &authority, &leaf(), day(0)).unwrap();
        assert!(believed(&shown, &shown, "a-core", day(0)));
        // Only the certificate changes: the trusted authority stays.
        let (ahead, _) = tend_leaf(Some(&shown), &authority, &leaf(), day(200)).unwrap();
        assert!(!believed(&shown, &ahead, "a-core", day(1)));
        let (back, _) = tend_leaf(Some(&ahead), &authority, &leaf(), day(1)).unwrap();
        assert!(believed(&shown, &back, "a-core", day(1)));
    }
}
