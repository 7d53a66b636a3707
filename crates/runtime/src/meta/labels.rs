//! A small sorted map of interned strings.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::intern::Str;

/// Labels (or chosen annotations) of an object: sorted pairs, one allocation.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Labels(Box<[(Str, Str)]>);

impl Labels {
    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Str> {
        let at = self.0.binary_search_by(|(k, _)| k.as_str().cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    /// Returns true if the key is present.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Iterates over all pairs, sorted by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Str, &Str)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// Returns the number of pairs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The last of several equal keys wins, as in JSON.
impl FromIterator<(Str, Str)> for Labels {
    fn from_iter<T: IntoIterator<Item = (Str, Str)>>(pairs: T) -> Self {
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        if !pairs.is_sorted_by(|(a, _), (b, _)| a < b) {
            // The sort is stable, so the last of several equal keys is the last in its run: it is the one to
            // keep.
            pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
            pairs.reverse();
            pairs.dedup_by(|(a, _), (b, _)| a == b);
            pairs.reverse();
        }
        Self(pairs.into_boxed_slice())
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = Labels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }

            fn visit_unit<E>(self) -> Result<Labels, E> {
                Ok(Labels::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                let mut pairs = Vec::with_capacity(8);
                while let Some(pair) = map.next_entry::<Str, Str>()? {
                    pairs.push(pair);
                }
                Ok(pairs.into_iter().collect())
            }
        }

        deserializer.deserialize_any(Pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsorted_input_is_sorted_and_the_last_of_equal_keys_wins() {
        let labels: Labels = serde_json::from_str(r#"{"b":"1","a":"2","b":"3"}"#).unwrap();
        assert_eq!(labels.get("a").unwrap(), "2");
        assert_eq!(labels.get("b").unwrap(), "3");
        assert_eq!(labels.len(), 2);
        assert!(!labels.contains_key("c"));
    }

    #[test]
    fn null_decodes_as_no_labels() {
        assert!(serde_json::from_str::<Labels>("null").unwrap().is_empty());
    }
}
