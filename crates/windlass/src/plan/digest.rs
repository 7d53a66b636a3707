//! Digests that may be seen, of content that may not.
//!
//! A plain hash of a password in an annotation can be guessed by whoever reads it. So digests of secret content are keyed, with
//! a secret of the installation ([`DigestKey`]).
//!
//! Should that key be lost, nothing must restart because of it: a [`Stamp`] remembers which key it was made with, and what was made
//! with another key is not taken for a change.

use std::fmt;

use ring::hmac;
use windlass_runtime::cache::Digest;

use crate::names::naming::hex;

/// The bytes of a digest that are written: 128 bits, which nobody finds a second content for.
const WRITTEN: usize = 16;

/// The secret of an installation with which digests are keyed.
#[derive(Clone)]
pub struct DigestKey {
    id: String,
    key: hmac::Key,
}

impl DigestKey {
    /// A key of these bytes.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, bytes);
        let id = hex(&hmac::sign(&key, b"windlass key id").as_ref()[..4]);
        Self { id, key }
    }

    /// The digest of an object's canonical form.
    pub(crate) fn digest(&self, content: Digest) -> String {
        hex(&hmac::sign(&self.key, content.as_bytes()).as_ref()[..WRITTEN])
    }

    /// The digest of what several dependencies came to.
    fn combined<'a>(&self, contents: impl IntoIterator<Item = &'a Content>) -> String {
        let mut context = hmac::Context::with_key(&self.key);
        for Content { id, digest } in contents {
            // With lengths, so that no two lists have one form.
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

/// The plain digest of an object whose content everybody may know.
pub(crate) fn plain(content: Digest) -> String {
    hex(&content.as_bytes()[..WRITTEN])
}

/// What the content of a dependency came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    /// Which dependency.
    pub(crate) id: String,
    /// Its digest, or whatever else changes when its content does. Never written as it is.
    pub(crate) digest: Vec<u8>,
}

/// What the contents of all dependencies of a workload came to, and the token of it in the pod template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    key: String,
    digest: String,
    token: String,
}

impl Stamp {
    /// The stamp for these contents, given the one that the live object has.
    ///
    /// Its token is new exactly if the contents are known to have changed.
    pub(crate) fn next(key: &DigestKey, contents: &[Content], live: Option<&str>) -> Self {
        let digest = key.combined(contents);
        let live = live.and_then(Self::read);
        let token = match live {
            Some(live) if live.key != key.id || live.digest == digest => live.token,
            _ => digest.clone(),
        };
        Self { key: key.id.clone(), digest, token }
    }

    /// What the pod template carries.
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

    #[test]
    fn contents_are_told_apart_by_where_they_come_from() {
        let one = [Content { id: "ab".into(), digest: b"c".to_vec() }];
        let two = [Content { id: "a".into(), digest: b"bc".to_vec() }];
        assert_ne!(key(7).combined(&one), key(7).combined(&two));
    }
}
