//! Defaults for the identity and the namespace of a candidate.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::SystemTime;

/// The file in a Pod that contains the name of its namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The namespace of this process cannot be determined.
#[derive(Debug, thiserror::Error)]
#[error(
    "the namespace of the Lease is unknown: this process does not run in a Pod ({NAMESPACE_FILE}: {0}); \
     set it with ElectionOptions::namespace"
)]
pub struct NamespaceUnknown(#[source] std::io::Error);

/// Returns the namespace of the Pod that this process runs in.
pub fn pod_namespace() -> Result<String, NamespaceUnknown> {
    namespace_in(Path::new(NAMESPACE_FILE))
}

fn namespace_in(file: &Path) -> Result<String, NamespaceUnknown> {
    let text = std::fs::read_to_string(file).map_err(NamespaceUnknown)?;
    match text.trim() {
        "" => Err(NamespaceUnknown(std::io::Error::other("the file is empty"))),
        name => Ok(name.to_owned()),
    }
}

/// Returns the host name; in a Pod, the Pod's name.
pub(crate) fn hostname() -> String {
    let named = std::env::var("HOSTNAME").ok();
    named
        .or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok())
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Returns an identity that no other candidate has, in this process or another, now or later.
pub(super) fn unique(prefix: &str) -> String {
    format!("{prefix}_{}", random_uuid())
}

/// Returns a random UUID (version 4). The standard library's hash keys come from the operating system's
/// randomness: good enough to be unique, not for secrets.
fn random_uuid() -> String {
    let salt = (SystemTime::now(), std::process::id());
    let keys = RandomState::new();
    let (high, low) = (keys.hash_one((salt, 0)), keys.hash_one((salt, 1)));
    let high = high & !0xf000 | 0x4000;
    let low = low & !(0b11 << 62) | (0b10 << 62);
    let part = |word: u64, shift: u32, digits: usize| {
        let mask = (1_u64 << (4 * digits)) - 1;
        format!("{:0digits$x}", word >> shift & mask)
    };
    [part(high, 32, 8), part(high, 16, 4), part(high, 0, 4), part(low, 48, 4), part(low, 0, 12)].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_identities_are_the_same() {
        let many: BTreeSet<_> = (0..1000).map(|_| unique("host")).collect();
        assert_eq!(many.len(), 1000);
        let uuid = many.iter().next().unwrap().strip_prefix("host_").unwrap();
        let parts: Vec<_> = uuid.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(uuid.as_bytes()[14], b'4');
        assert!(matches!(uuid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
        assert!(!hostname().is_empty());
    }

    #[test]
    fn the_namespace_error_outside_of_a_pod_names_a_remedy() {
        let dir = std::env::temp_dir().join(unique("windlass-namespace"));
        let error = namespace_in(&dir).unwrap_err();
        assert!(error.to_string().contains("set it with ElectionOptions::namespace"), "{error}");
        std::fs::write(&dir, "shop\n").unwrap();
        assert_eq!(namespace_in(&dir).unwrap(), "shop");
        std::fs::write(&dir, "\n").unwrap();
        assert!(namespace_in(&dir).is_err());
        std::fs::remove_file(&dir).unwrap();
    }
}
