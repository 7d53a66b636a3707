//! Digests of secret content that may be published.
//!
//! Anybody who can read an annotation can guess a password from its plain hash. Digests of secret content are
//! therefore keyed with a secret of the installation ([`DigestKey`]).
//!
//! Losing that key must restart nothing: a [`Stamp`] records the key that it was made with, and a stamp of
//! another key does not count as a change.

use std::fmt;

use ring::hmac;
use windlass_runtime::cache::Digest;

use crate::names::naming::hex;

/// The number of bytes of a digest that are written: 128 bits, enough to rule out collisions.
const WRITTEN: usize = 16;

/// The secret of an installation with which digests are keyed.
#[derive(Clone)]
pub struct DigestKey {
    id: String,
    key: hmac::Key,
}

impl DigestKey {
    /// Returns a key of these bytes.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, bytes);
        let id = hex(&hmac::sign(&key, b"windlass key id").as_ref()[..4]);
        Self { id, key }
    }

    /// Returns the digest of an object's canonical form.
    pub(crate) fn digest(&self, content: Digest) -> String {
        hex(&hmac::sign(&self.key, content.as_bytes()).as_ref()[..WRITTEN])
    }

    /// Returns the combined digest of several dependencies.
    fn combined<'a>(&self, contents: impl IntoIterator<Item = &'a Content>) -> String {
        let mut context = hmac::Context::with_key(&self.key);
        for Content { id, digest } in contents {
            // Lengths are included, so that no two lists have the same form.
            context.update(&(id.len() as u64).to_be_bytes());
            context.update(id.as_bytes());
            context.update(&(digest.len() as u64).to_be_bytes());
            context.update(digest);
        }
        hex(&context.sign().as_ref()[..WRITTEN])
    }
}

impl fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DigestKey({})", self.id)
    }
}

/// Returns the plain digest of an object with content that is not secret.
pub(crate) fn plain(content: Digest) -> String {
    hex(&content.as_bytes()[..WRITTEN])
}

/// The content of a dependency, as a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    /// The id of the dependency's node.
    pub(crate) id: String,
    /// The digest of the content, or another value that changes with the content. It is never written
    /// unkeyed.
    pub(crate) digest: Vec<u8>,
}

/// The combined digest of the contents of all dependencies of a workload, and its token in the pod template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    key: String,
    digest: String,
    token: String,
}

impl Stamp {
    /// Returns the stamp for these contents, given the stamp of the live object.
    ///
    /// The token is new exactly if the contents are known to have changed.
    pub(crate) fn next(key: &DigestKey, contents: &[Content], live: Option<&str>) -> Self {
        let digest = key.combined(contents);
        let live = live.and_then(Self::read);
        let token = match live {
            Some(live) if live.key != key.id || live.digest == digest => live.token,
            _ => digest.clone(),
        };
        Self { key: key.id.clone(), digest, token }
    }

    /// Returns the token that the pod template carries.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split(':').map(str::to_owned);
        let stamp = Self { key: parts.next()?, digest: parts.next()?, token: parts.next()? };
        parts.next().is_none().then_some(stamp)
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.key, self.digest, self.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> DigestKey {
        DigestKey::from_bytes(&[byte; 32])
    }

    fn contents(digest: &[u8]) -> Vec<Content> {
        vec![Content { id: "Secret a".into(), digest: digest.to_vec() }]
    }

    #[test]
    fn written_digests_never_change_because_pods_would_restart() {
        let stamp = Stamp::next(&key(7), &contents(b"x"), None).to_string();
        assert_eq!(stamp, "ac56d86a:145a856dab7d1310ad1fd6a5b9d47e6f:145a856dab7d1310ad1fd6a5b9d47e6f");
        assert_eq!(key(7).digest(Digest::default()), "955b6191a03fcf0816e0a897cb98833f");
        assert_eq!(plain(Digest::default()), "1b16b1df538ba12dc3f97edbb85caa70");
    }

    #[test]
    fn the_token_changes_with_the_content_only() {
        let first = Stamp::next(&key(7), &contents(b"x"), None);
        let same = Stamp::next(&key(7), &contents(b"x"), Some(&first.to_string()));
        assert_eq!(first, same);
        let other = Stamp::next(&key(7), &contents(b"y"), Some(&first.to_string()));
        assert_ne!(first.token(), other.token());
    }

    #[test]
    fn a_lost_key_restarts_nothing_and_the_next_change_is_seen_again() {
        let before = Stamp::next(&key(7), &contents(b"x"), None);
        let after = Stamp::next(&key(8), &contents(b"x"), Some(&before.to_string()));
        assert_eq!(before.token(), after.token());
        let changed = Stamp::next(&key(8), &contents(b"y"), Some(&after.to_string()));
        assert_ne!(after.token(), changed.token());
    }

    #[test]
    fn a_stamp_that_cannot_be_read_counts_as_none() {
        let fresh = Stamp::next(&key(7), &contents(b"x"), None);
        for broken in ["", "a:b", "a:b:c:d"] {
            assert_eq!(Stamp::next(&key(7), &contents(b"x"), Some(broken)), fresh, "{broken}");
        }
    }

    /// Contents in the order of `.after`, each with its id and its digest.
    fn several(all: &[(&str, &[u8])]) -> Vec<Content> {
        all.iter().map(|(id, digest)| Content { id: (*id).into(), digest: digest.to_vec() }).collect()
    }

    const A: (&str, &[u8]) = ("Secret a", b"x");
    const B: (&str, &[u8]) = ("ConfigMap b", b"y");
    const C: (&str, &[u8]) = ("Secret c", b"z");

    /// The token is written into pod templates: each of these values that changes restarts pods of every
    /// installation.
    #[test]
    fn the_token_of_several_dependencies_depends_on_their_order_and_never_changes() {
        let token = |all: &[(&str, &[u8])]| Stamp::next(&key(7), &several(all), None).token().to_owned();
        assert_eq!(token(&[A, B, C]), "b0e64b633c8491d5e2dca0bb4e8532f2");
        assert_eq!(token(&[B, A, C]), "f712a668290a55cd3db16a8783ccc973");
        assert_eq!(token(&[A, C, B]), "83cdaf75eeea9bd30efb550544ff9ca5");
        assert_eq!(token(&[C, B, A]), "63115b3bacbd2adee1bb26fb71244be7");
        assert_eq!(token(&[A, B, C, ("Secret d", b"w")]), "4d9c844b479567ebd48bffd7af34d049");
    }

    #[test]
    fn a_dependency_with_empty_content_differs_from_one_that_is_left_out() {
        let token = |all: &[(&str, &[u8])]| Stamp::next(&key(7), &several(all), None).token().to_owned();
        assert_eq!(token(&[A, (B.0, b""), C]), "2374f29c65643c0e645e5b6917cd4b72");
        assert_eq!(token(&[A, C]), "f1555505e671e838cc2cf8ad4cf8812c");
    }

    #[test]
    fn the_stamp_of_several_dependencies_names_its_key_and_never_changes() {
        let contents = several(&[A, B, C]);
        let first = Stamp::next(&key(7), &contents, None).to_string();
        assert_eq!(first, "ac56d86a:b0e64b633c8491d5e2dca0bb4e8532f2:b0e64b633c8491d5e2dca0bb4e8532f2");
        let other = Stamp::next(&key(8), &contents, None).to_string();
        assert_eq!(other, "f13872ae:61153badb6338310b0f289a7be1579bd:61153badb6338310b0f289a7be1579bd");
        // With another key, the digest is another one and the token stays: no pod restarts.
        let carried = Stamp::next(&key(8), &contents, Some(&first)).to_string();
        assert_eq!(carried, "f13872ae:61153badb6338310b0f289a7be1579bd:b0e64b633c8491d5e2dca0bb4e8532f2");
        // With the same key, another order is a change.
        let swapped = Stamp::next(&key(7), &several(&[B, A, C]), Some(&first)).to_string();
        assert_eq!(swapped, "ac56d86a:f712a668290a55cd3db16a8783ccc973:f712a668290a55cd3db16a8783ccc973");
    }

    #[test]
    fn keyed_and_plain_digests_of_objects_never_change() {
        let secret = serde_json::json!({"type": "Opaque", "data": {"b": "eQ==", "a": "eA=="}});
        let map = serde_json::json!({"data": {"a": "x"}, "binaryData": {"b": "eQ=="}});
        let (secret, map) = (Digest::of(&secret).unwrap(), Digest::of(&map).unwrap());
        assert_eq!(plain(secret), "52fc9ceac74ff7c8da19398bc53ba1d8");
        assert_eq!(key(7).digest(secret), "c457fd44f63f47758519ce7c57759c4e");
        assert_eq!(key(8).digest(secret), "d32793908b860e3707bbcc123d5f3ea4");
        assert_eq!(plain(map), "21096e07dce66b6c013a120bdf17e53f");
        assert_eq!(key(7).digest(map), "cde4876e9ba27c8049c29963eba00cef");
    }

    #[test]
    fn contents_are_told_apart_by_where_they_come_from() {
        let one = [Content { id: "ab".into(), digest: b"c".to_vec() }];
        let two = [Content { id: "a".into(), digest: b"bc".to_vec() }];
        assert_ne!(key(7).combined(&one), key(7).combined(&two));
    }
}
