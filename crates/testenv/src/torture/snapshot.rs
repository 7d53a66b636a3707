//! The state at the end of a step, and how two of them differ.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The number of differences that are reported; more do not help.
const SHOWN: usize = 8;

/// The objects at the end of a step, and how often each had been created by then.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Snapshot {
    /// Objects by kind and name; a generated name may have several.
    pub(super) objects: BTreeMap<String, Vec<Value>>,
    /// Distinct objects seen so far, by kind and name.
    pub(super) created: BTreeMap<String, usize>,
}

impl Snapshot {
    pub(super) fn add(&mut self, name: String, object: Value) {
        let same = self.objects.entry(name).or_default();
        same.push(object);
        // The server decides on the order of generated names.
        same.sort_by_cached_key(Value::to_string);
    }

    /// The differences from the undisturbed run, in words; empty if there are none.
    pub(super) fn differences(&self, undisturbed: &Self) -> Vec<String> {
        let mut differences = self.object_differences(undisturbed, "undisturbed");
        let names: BTreeSet<&String> = self.created.keys().chain(undisturbed.created.keys()).collect();
        for name in names {
            let count = |snapshot: &Self| snapshot.created.get(name).copied().unwrap_or_default();
            let (here, there) = (count(self), count(undisturbed));
            if here != there {
                differences.push(format!("{name} was created {here} times, undisturbed {there} times"));
            }
        }
        shorten(differences)
    }

    /// The differences of the objects alone, however often they were created. `other` is the word for the
    /// other snapshot.
    pub(crate) fn differences_from(&self, other: &Self, word: &str) -> Vec<String> {
        shorten(self.object_differences(other, word))
    }

    fn object_differences(&self, undisturbed: &Self, word: &str) -> Vec<String> {
        let mut differences = Vec::new();
        let names: BTreeSet<&String> = self.objects.keys().chain(undisturbed.objects.keys()).collect();
        for name in names {
            let none = Vec::new();
            let here = self.objects.get(name).unwrap_or(&none);
            let there = undisturbed.objects.get(name).unwrap_or(&none);
            match (here.len(), there.len()) {
                (1, 0) => differences.push(format!("{name} is left over")),
                (0, 1) => differences.push(format!("{name} is missing")),
                (here, there) if here != there => {
                    differences.push(format!("{name} is there {here} times, {word} {there} times"));
                }
                _ => {
                    for (here, there) in here.iter().zip(there) {
                        compare((name, word), "", Some(here), Some(there), &mut differences);
                    }
                }
            }
        }
        differences
    }
}

/// Keeps the first differences and counts the others.
fn shorten(mut differences: Vec<String>) -> Vec<String> {
    let more = differences.len().saturating_sub(SHOWN);
    differences.truncate(SHOWN);
    if more > 0 {
        differences.push(format!("and {more} more"));
    }
    differences
}

fn compare(
    words: (&str, &str),
    path: &str,
    here: Option<&Value>,
    there: Option<&Value>,
    differences: &mut Vec<String>,
) {
    match (here, there) {
        (here, there) if here == there => {}
        (Some(Value::Object(here)), Some(Value::Object(there))) => {
            for field in here.keys().chain(there.keys()).collect::<BTreeSet<_>>() {
                compare(words, &format!("{path}/{field}"), here.get(field), there.get(field), differences);
            }
        }
        (Some(Value::Array(here)), Some(Value::Array(there))) if here.len() == there.len() => {
            for (index, (here, there)) in here.iter().zip(there).enumerate() {
                compare(words, &format!("{path}/{index}"), Some(here), Some(there), differences);
            }
        }
        (here, there) => {
            let text = |value: Option<&Value>| value.map_or("not there".to_owned(), Value::to_string);
            let path = path.strip_prefix("/content").unwrap_or(path);
            let (name, other) = words;
            differences.push(format!("{name}: {path} is {}, {other} {}", text(here), text(there)));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn snapshot(objects: &[(&str, Value)], created: &[(&str, usize)]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (name, object) in objects {
            snapshot.add((*name).to_owned(), json!({"content": object}));
        }
        snapshot.created = created.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        snapshot
    }

    #[test]
    fn every_difference_is_reported_with_its_path() {
        let undisturbed = snapshot(
            &[("ConfigMap a", json!({"data": {"k": "2", "l": ["x"]}})), ("Secret s", json!({}))],
            &[("ConfigMap a", 1)],
        );
        let here = snapshot(
            &[("ConfigMap a", json!({"data": {"k": "1", "l": ["y"]}})), ("Secret t", json!({}))],
            &[("ConfigMap a", 2)],
        );
        assert_eq!(
            here.differences(&undisturbed),
            [
                "ConfigMap a: /data/k is \"1\", undisturbed \"2\"",
                "ConfigMap a: /data/l/0 is \"y\", undisturbed \"x\"",
                "Secret s is missing",
                "Secret t is left over",
                "ConfigMap a was created 2 times, undisturbed 1 times",
            ]
        );
        assert_eq!(here.differences(&here), [""; 0]);
    }

    #[test]
    fn generated_names_are_compared_without_their_order() {
        let one = snapshot(&[("Job j-*", json!({"a": 1})), ("Job j-*", json!({"a": 2}))], &[]);
        let other = snapshot(&[("Job j-*", json!({"a": 2})), ("Job j-*", json!({"a": 1}))], &[]);
        assert_eq!(one.differences(&other), [""; 0]);
        let single = snapshot(&[("Job j-*", json!({"a": 1}))], &[]);
        assert_eq!(one.differences(&single), ["Job j-* is there 2 times, undisturbed 1 times"]);
    }
}
