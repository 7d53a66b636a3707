//! Interned strings: text that many objects share is stored once.
//!
//! Promises: two [`Str`] with the same text share one allocation for as long as either lives, comparing them
//! is comparing pointers, and dropping the last one frees the text. Namespaces, label keys and values, owner
//! names and the like repeat thousands of times in a cluster; interning them is most of what makes a cached
//! object small.
//!
//! Does not: intern strings that are unique (object names are plain `Arc<str>`), or keep anything
//! permanently.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{BuildHasher as _, Hash, Hasher};
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering::AcqRel, Ordering::Acquire};
use std::sync::{Arc, LazyLock};

use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

const SHARDS: usize = 16;

static TABLE: LazyLock<Table> = LazyLock::new(Table::default);

/// An interned string: eight bytes, cheap to clone, equal texts are one allocation.
///
/// ```
/// use windlass_runtime::intern::Str;
///
/// let a = Str::new("app.kubernetes.io/name");
/// let b = Str::new("app.kubernetes.io/name");
/// assert_eq!(a, b);
/// assert_eq!(&*a, "app.kubernetes.io/name");
/// ```
pub struct Str(Arc<Slot>);

struct Slot {
    /// The number of `Str` that point here. Kept beside `Arc`'s own count, because only a count that the
    /// table can re-check under its lock tells without a race that the text is unused.
    users: AtomicUsize,
    /// The hash of the text, computed once.
    hash: u64,
    text: Box<str>,
}

#[derive(Default)]
struct Table {
    hasher: DefaultHashBuilder,
    shards: [Mutex<HashTable<Arc<Slot>>>; SHARDS],
}

impl Table {
    fn shard(&self, hash: u64) -> &Mutex<HashTable<Arc<Slot>>> {
        // The table itself uses the lowest and the highest bits: these are neither.
        &self.shards[(hash >> 32) as usize % SHARDS]
    }
}

impl Str {
    /// Returns the interned form of `text`.
    pub fn new(text: &str) -> Self {
        let hash = TABLE.hasher.hash_one(text);
        let mut shard = TABLE.shard(hash).lock();
        if let Some(slot) = shard.find(hash, |slot| *slot.text == *text) {
            slot.users.fetch_add(1, AcqRel);
            return Self(Arc::clone(slot));
        }
        let slot = Arc::new(Slot { users: AtomicUsize::new(1), hash, text: text.into() });
        shard.insert_unique(hash, Arc::clone(&slot), |slot| slot.hash);
        Self(slot)
    }

    /// Returns the text as a string slice.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }
}

impl Clone for Str {
    fn clone(&self) -> Self {
        self.0.users.fetch_add(1, AcqRel);
        Self(Arc::clone(&self.0))
    }
}

impl Drop for Str {
    fn drop(&mut self) {
        if self.0.users.fetch_sub(1, AcqRel) != 1 {
            return;
        }
        let mut shard = TABLE.shard(self.0.hash).lock();
        // Between the count and the lock, `new` may have returned the text again.
        if self.0.users.load(Acquire) == 0 {
            // Another slot may already hold this text: remove only our own.
            if let Ok(found) = shard.find_entry(self.0.hash, |found| Arc::ptr_eq(found, &self.0)) {
                found.remove();
            }
        }
    }
}

/// The number of different texts that are interned now.
pub fn interned() -> usize {
    TABLE.shards.iter().map(|shard| shard.lock().len()).sum()
}

impl Deref for Str {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl AsRef<str> for Str {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Borrow<str> for Str {
    fn borrow(&self) -> &str {
        self
    }
}

impl PartialEq for Str {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Str {}

impl PartialEq<str> for Str {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Str {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl Hash for Str {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Hashes like `str`, so that a map keyed by `Str` can be looked up with a `&str`.
        self.as_str().hash(state);
    }
}

impl PartialOrd for Str {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Str {
    fn cmp(&self, other: &Self) -> Ordering {
        if self == other { Ordering::Equal } else { self.as_str().cmp(other.as_str()) }
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<&String> for Str {
    fn from(text: &String) -> Self {
        Self::new(text)
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl Serialize for Str {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Str {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Str;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Str, E> {
                Ok(Str::new(text))
            }
        }

        // `visit_str` gets the decoder's own buffer: an already known text allocates nothing.
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if the text is in the table. (Other tests intern too, so counts are not comparable.)
    fn is_interned(text: &str) -> bool {
        let hash = TABLE.hasher.hash_one(text);
        TABLE.shard(hash).lock().find(hash, |slot| *slot.text == *text).is_some()
    }

    #[test]
    fn equal_texts_share_one_allocation() {
        let a = Str::new("intern-test-shared");
        let b: Str = serde_json::from_str("\"intern-test-shared\"").unwrap();
        assert!(Arc::ptr_eq(&a.0, &b.0));
        assert_ne!(a, Str::new("intern-test-other"));
    }

    #[test]
    fn dropping_the_last_str_frees_the_text() {
        let a = Str::new("intern-test-freed");
        let b = a.clone();
        drop(a);
        assert!(is_interned("intern-test-freed"));
        drop(b);
        assert!(!is_interned("intern-test-freed"));
    }

    #[test]
    fn threads_that_intern_and_drop_the_same_text_leave_nothing_behind() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let text = Str::new("intern-test-raced");
                        assert_eq!(text.as_str(), "intern-test-raced");
                        drop(text.clone());
                    }
                });
            }
        });
        assert!(!is_interned("intern-test-raced"));
    }

    #[test]
    fn a_map_keyed_by_str_can_be_looked_up_with_plain_text() {
        let map = std::collections::HashMap::from([(Str::new("k"), 1)]);
        assert_eq!(map.get("k"), Some(&1));
    }
}
