//! Items of lists with a key that somebody has changed.
//!
//! To the server such an item is another item: ours was removed, and theirs was added. An apply adds ours
//! back, and leaves theirs beside it. Two ports of one name are refused; two containers both run.
//!
//! Items that others have added stay: an item is taken only if it replaces one of ours.

use serde_json::{Map, Value};
use windlass_runtime::client::FieldCause;

use super::managers::Managers;
use super::{content, without_indexes};
use crate::live::ownership::is_key_of;
use crate::plan::desired::Desired;

/// Lists in which a renamed item does harm, even though the server accepts both.
const CONTAINERS: [&str; 2] = ["containers", "initContainers"];
/// Members of items that are not compared, because the server normalises quantities.
const NOT_COMPARED: [&str; 1] = ["resources"];

/// Returns whether a container of the plan is not in our entry after the plan was applied: somebody has
/// renamed or removed it.
pub(super) fn has_lost_a_container(desired: &Value, own: &Map<String, Value>) -> bool {
    let none = Map::new();
    let members = desired.as_object().into_iter().flatten();
    members.into_iter().any(|(name, value)| {
        let own = own.get(&format!("f:{name}")).and_then(Value::as_object);
        if own.is_some_and(Map::is_empty) {
            return false; // all of it, as one value
        }
        let own = own.unwrap_or(&none);
        let mut items = value.as_array().into_iter().flatten();
        let has_lost = items.any(|item| !own.keys().any(|key| is_key_of(key, item)));
        (CONTAINERS.contains(&&**name) && has_lost) || has_lost_a_container(value, own)
    })
}

/// Takes the items that replace one of ours; returns their paths.
pub(super) fn take(
    desired: &Desired,
    live: &Value,
    managers: &mut Managers,
    causes: &[FieldCause],
    has_had: bool,
) -> Vec<String> {
    let causes = causes.iter().map(|cause| (without_indexes(&cause.field), &*cause.reason)).collect();
    let mut search = Search { managers, causes, has_had, found: Vec::new() };
    for (name, value) in content(&desired.body) {
        search.look(value, &live[name], &[format!("f:{name}")], name);
    }
    let Search { found, .. } = search;
    let taken = found.into_iter().filter(|(path, item, _)| managers.take(path, item));
    taken.map(|(_, _, path)| path).collect()
}

struct Search<'a> {
    managers: &'a Managers,
    /// The fields that the refusal names, without indexes, with the server's codes.
    causes: Vec<(String, &'a str)>,
    has_had: bool,
    found: Vec<(Vec<String>, Value, String)>,
}

/// A list of the plan that has items with keys.
struct List<'a> {
    name: &'a str,
    desired: &'a [Value],
    /// The items of the plan that are not in our entry.
    lost: Vec<&'a Value>,
    /// The members of its items that the refusal names, each with the server's code.
    refused: Vec<(&'a str, &'a str)>,
    adopting: bool,
    has_had: bool,
}

impl Search<'_> {
    fn look(&mut self, desired: &Value, live: &Value, path: &[String], plain: &str) {
        match (desired, live) {
            (Value::Object(members), Value::Object(_)) => {
                for (name, value) in members {
                    let below = [path, &[format!("f:{name}")]].concat();
                    self.look(value, &live[name], &below, &format!("{plain}.{name}"));
                }
            }
            (Value::Array(items), Value::Array(present)) => self.look_at_list(items, present, path, plain),
            _ => {}
        }
    }

    fn look_at_list(&mut self, items: &[Value], present: &[Value], path: &[String], plain: &str) {
        let (own, managers) = (self.managers.own(path), self.managers);
        let in_own = |item: &&Value| own.is_some_and(|own| own.keys().any(|key| is_key_of(key, item)));
        let start = format!("{plain}.");
        let below = |(field, code): &(String, &'_ str)| {
            field.strip_prefix(&start).map(|member| (member.to_owned(), (*code).to_owned()))
        };
        let refused: Vec<(String, String)> = self.causes.iter().filter_map(below).collect();
        let list = List {
            name: plain.rsplit('.').next().unwrap_or_default(),
            desired: items,
            lost: items.iter().filter(|item| !in_own(item)).collect(),
            refused: refused.iter().map(|(member, code)| (&**member, &**code)).collect(),
            adopting: managers.own_nothing(),
            has_had: self.has_had,
        };
        for theirs in managers.yielding(path) {
            for (key, fields) in theirs {
                let is_declared = items.iter().any(|item| is_key_of(key, item));
                // Without the dot, the manager owns a field of an item, not the item.
                if !key.starts_with("k:") || is_declared || fields.get(".").is_none() {
                    continue;
                }
                let Some(item) = present.iter().find(|item| is_key_of(key, item)) else { continue };
                if list.is_in_the_way(key, item) {
                    let below = [path, std::slice::from_ref(key)].concat();
                    self.found.push((below, item.clone(), format!(".{plain}[{}]", &key[2..])));
                }
            }
        }
        for item in items {
            let keys = own.into_iter().chain(managers.others(path)).flat_map(Map::keys);
            let Some(key) = keys.into_iter().find(|key| is_key_of(key, item)) else { continue };
            let Some(present) = present.iter().find(|present| is_key_of(key, present)) else { continue };
            let below = [path, std::slice::from_ref(key)].concat();
            self.look(item, present, &below, plain);
        }
    }
}

impl List<'_> {
    /// Returns whether an item that is not in the plan replaces one that is.
    fn is_in_the_way(&self, key: &str, item: &Value) -> bool {
        let has_same = |member: &str| {
            !item[member].is_null() && self.desired.iter().any(|desired| desired[member] == item[member])
        };
        let mut duplicates = self.refused.iter().filter(|(_, code)| *code == "FieldValueDuplicate");
        if duplicates.any(|(member, _)| has_same(member)) {
            return true;
        }
        // A single port needs no name; two ports do.
        if self.adopting && self.refused.iter().any(|(_, code)| *code == "FieldValueRequired") {
            return true;
        }
        let names: Map<String, Value> = serde_json::from_str(&key[2..]).unwrap_or_default();
        let harms = CONTAINERS.contains(&self.name) || !self.refused.is_empty();
        self.has_had && harms && self.lost.iter().any(|lost| is_renamed(lost, item, &names))
    }
}

/// Returns whether an item equals the one of the plan except for its key.
fn is_renamed(desired: &Value, item: &Value, key: &Map<String, Value>) -> bool {
    let members = desired.as_object().into_iter().flatten();
    let mut compared =
        members.filter(|(name, _)| !key.contains_key(*name) && !NOT_COMPARED.contains(&&***name));
    compared.all(|(name, value)| contains(&item[name], value))
}

/// Returns whether a live value equals that of the plan, apart from fields that the server has added.
fn contains(live: &Value, desired: &Value) -> bool {
    match (desired, live) {
        (Value::Object(members), _) => members.iter().all(|(name, value)| contains(&live[name], value)),
        (Value::Array(items), Value::Array(present)) => {
            items.len() == present.len() && items.iter().zip(present).all(|(item, live)| contains(live, item))
        }
        (Value::Array(items), Value::Null) => items.is_empty(),
        _ => desired == live,
    }
}
