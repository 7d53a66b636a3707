//! Short names for contents.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The first `bytes` bytes of the SHA-256 of `parts`, in hexadecimal. Each part
/// counts with its length, so that `["ab", "c"]` is not `["a", "bc"]`.
pub(crate) fn short<'a>(parts: impl IntoIterator<Item = &'a [u8]>, bytes: usize) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(bytes).fold(String::new(), |mut name, byte| {
        // Writing to a string cannot fail.
        let _ = write!(name, "{byte:02x}");
        name
    })
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn the_parts_of_a_digest_do_not_run_into_one_another() {
        let of = |parts: &[&str]| short(parts.iter().map(|part| part.as_bytes()), 8);
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_eq!(of(&["ab"]).len(), 16);
    }
}
