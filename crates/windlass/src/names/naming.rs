//! Names of children, within the limits of their kind.
//!
//! It promises: a name that fits is its parts joined by `-`, as a person would write it; a longer name is cut
//! and ends in a stable hash of the whole name. Two different long names do not become one.

use sha2::{Digest as _, Sha256};

/// The longest name of most kinds with a name that becomes a label or a host name: Services and workloads.
pub const LABEL: usize = 63;
/// The longest name of a StatefulSet: its pods carry a label of its name and an eleven-byte revision.
pub const STATEFUL_SET: usize = 52;
/// The longest name of a Job or CronJob, because its pods are named after it.
pub const JOB: usize = 52;
/// The longest name of anything else.
pub const SUBDOMAIN: usize = 253;

/// Digits of the hash. With 40 bits, one collision is expected among a million cut names of one prefix.
const HASH: usize = 10;

/// Returns the name made of these parts, at most `limit` bytes long.
///
/// ```
/// use windlass::naming::{LABEL, name};
///
/// assert_eq!(name(["shop", "core"], LABEL), "shop-core");
/// let long = name(["a-very-long-name-of-a-harbor-that-somebody-thought-of", "registry-controller"], LABEL);
/// assert_eq!(long, "a-very-long-name-of-a-harbor-that-somebody-thought-o-160d43d6aa");
/// assert_eq!(long.len(), LABEL);
/// ```
pub fn name<'a>(parts: impl IntoIterator<Item = &'a str>, limit: usize) -> String {
    let whole = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    if whole.len() <= limit {
        return whole;
    }
    let hash = short_hash(whole.as_bytes());
    let room = limit.saturating_sub(HASH + 1);
    let kept = whole[..whole.floor_char_boundary(room)].trim_end_matches(['-', '.']);
    format!("{kept}-{hash}")
}

/// Returns a name that changes with content: `<base>-<digest of the content>`.
pub(crate) fn by_content(base: &str, content: &[u8], limit: usize) -> String {
    let hash = short_hash(content);
    let kept = &base[..base.floor_char_boundary(limit.saturating_sub(HASH + 1))];
    format!("{}-{hash}", kept.trim_end_matches(['-', '.']))
}

fn short_hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    hex(&digest[..HASH / 2])
}

/// Returns bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn a_name_at_the_limit_is_kept_and_one_beyond_is_cut() {
        assert_eq!(name([&*"x".repeat(63)], LABEL).len(), 63);
        assert_eq!(name([&*"x".repeat(63)], LABEL), "x".repeat(63));
        let cut = name([&*"x".repeat(64)], LABEL);
        assert_eq!(cut.len(), 63);
        assert_ne!(cut, name([&*"x".repeat(65)], LABEL));
    }

    #[test]
    fn a_cut_does_not_leave_a_separator_before_the_hash() {
        let cut = name([&*format!("{}-{}", "x".repeat(51), "y".repeat(30))], LABEL);
        assert!(!cut.contains("--"), "{cut}");
    }

    #[test]
    fn ten_thousand_long_names_with_one_beginning_stay_apart() {
        let names: HashSet<_> = (0..10_000)
            .map(|number| {
                name([&*"harbor-of-the-whole-company-".repeat(3), &number.to_string()], STATEFUL_SET)
            })
            .collect();
        assert_eq!(names.len(), 10_000);
    }

    proptest! {
        #[test]
        fn names_fit_and_are_stable(parts in prop::collection::vec("[a-z0-9]{1,40}", 1..6), limit in 20_usize..100) {
            let parts: Vec<&str> = parts.iter().map(|part| &**part).collect();
            let once = name(parts.clone(), limit);
            prop_assert!(once.len() <= limit);
            prop_assert_eq!(once, name(parts, limit));
        }
    }
}
