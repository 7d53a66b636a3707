//! The state at the end of a step, and how two of them differ.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// How many differences are told; more do not help.
const TOLD: usize = 8;

/// What was there at the end of a step, and how often it had been created by then.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Snapshot {
    /// By kind and name; a generated name may have several.
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

    /// What is different here from the undisturbed run, in words; nothing if they are the same.
    pub(super) fn differences(&self, undisturbed: &Self) -> Vec<String> {
        let mut told = Vec::new();
        let names: BTreeSet<&String> = self.objects.keys().chain(undisturbed.objects.keys()).collect();
        for name in names {
            let none = Vec::new();
            let here = self.objects.get(name).unwrap_or(&none);
            let there = undisturbed.objects.get(name).unwrap_or(&none);
            match (here.len(), there.len()) {
                (1, 0) => told.push(format!("{name} is left over")),
                (0, 1) => told.push(format!("{name} is missing")),
                (here, there) if here != there => {
                    told.push(format!("{name} is there {here} times, undisturbed {there} times"));
                }
                _ => {
                    for (here, there) in here.iter().zip(there) {
                        compare(name, "", Some(here), Some(there), &mut told);
                    }
                }
            }
        }
        let names: BTreeSet<&String> = self.created.keys().chain(undisturbed.created.keys()).collect();
        for name in names {
            let count = |snapshot: &Self| snapshot.created.get(name).copied().unwrap_or_default();
            let (here, there) = (count(self), count(undisturbed));
            if here != there {
                told.push(format!("{name} was created {here} times, undisturbed {there} times"));
            }
        }
        let more = told.len().saturating_sub(TOLD);
        told.truncate(TOLD);
        if more > 0 {
            told.push(format!("and {more} more"));
        }
        told
    }
}

fn compare(name: &str, path: &str, here: Option<&Value>, there: Option<&Value>, told: &mut Vec<String>) {
    match (here, there) {
        (here, there) if here == there => {}
        (Some(Value::Object(here)), Some(Value::Object(there))) => {
            for field in here.keys().chain(there.keys()).collect::<BTreeSet<_>>() {
                compare(name, &format!("{path}/{field}"), here.get(field), there.get(field), told);
            }
        }
        (Some(Value::Array(here)), Some(Value::Array(there))) if here.len() == there.len() => {
            for (index, (here, there)) in here.iter().zip(there).enumerate() {
                compare(name, &format!("{path}/{index}"), Some(here), Some(there), told);
            }
        }
        (here, there) => {
            let words = |value: Option<&Value>| value.map_or("not there".to_owned(), Value::to_string);
            let path = path.strip_prefix("/content").unwrap_or(path);
            told.push(format!("{name}: {path} is {}, undisturbed {}", words(here), words(there)));
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
    fn every_difference_is_told_with_its_place() {
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
