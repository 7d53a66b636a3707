//! The field managers of a live object, and the transfer of fields from them to ours.

use serde_json::{Map, Value, json};

use crate::apply::managed_fields::{SYSTEM, union};
use crate::plan::Conflicts;
use crate::plan::desired::Desired;

/// The entries of `managedFields`.
pub(super) struct Managers {
    entries: Vec<Value>,
    /// The index of our own entry.
    own: usize,
    api_version: String,
    conflicts: Conflicts,
    changed: bool,
}

impl Managers {
    pub(super) fn new(present: &Value, manager: &str, desired: &Desired, conflicts: Conflicts) -> Self {
        let mut entries = present.as_array().cloned().unwrap_or_default();
        let api_version = desired.resource.api_version();
        let ours = |entry: &Value| {
            entry["manager"] == manager
                && entry["operation"] == "Apply"
                && entry["apiVersion"] == api_version
                && is_whole(entry)
        };
        let own = entries.iter().position(ours).unwrap_or_else(|| {
            entries.push(json!({"manager": manager, "operation": "Apply", "apiVersion": api_version,
                "fieldsType": "FieldsV1", "fieldsV1": {}}));
            entries.len() - 1
        });
        Self { entries, own, api_version, conflicts, changed: false }
    }

    /// Returns our own fields below a path of `fieldsV1`.
    pub(super) fn own(&self, path: &[String]) -> Option<&Map<String, Value>> {
        node(&self.entries[self.own]["fieldsV1"], path)
    }

    /// Returns whether we own nothing of the object, as before an adoption.
    pub(super) fn own_nothing(&self) -> bool {
        self.own(&[]).is_none_or(Map::is_empty)
    }

    /// Returns the fields of all other managers below a path.
    pub(super) fn others<'a>(&'a self, path: &'a [String]) -> impl Iterator<Item = &'a Map<String, Value>> {
        let others = self.entries.iter().enumerate().filter(|(index, _)| *index != self.own);
        others.filter_map(|(_, entry)| node(&entry["fieldsV1"], path))
    }

    /// Returns the fields below a path of the managers that [give way](Self::gives_way).
    pub(super) fn yielding<'a>(&'a self, path: &'a [String]) -> impl Iterator<Item = &'a Map<String, Value>> {
        let yielding = self.entries.iter().enumerate().filter(|(index, entry)| self.gives_way(*index, entry));
        yielding.filter_map(|(_, entry)| node(&entry["fieldsV1"], path))
    }

    /// Transfers a field with everything below it to our manager, so that an apply that does not declare it
    /// drops it. Does nothing and returns `false` if a manager owns it that does not [give
    /// way](Self::gives_way).
    pub(super) fn take(&mut self, path: &[String], live: &Value) -> bool {
        let stays = |(index, entry): (usize, &Value)| {
            index != self.own && !self.gives_way(index, entry) && node(&entry["fieldsV1"], path).is_some()
        };
        if self.entries.iter().enumerate().any(stays) {
            return false;
        }
        let mut taken = Map::new();
        let mut was_owned = false;
        for index in 0..self.entries.len() {
            if self.gives_way(index, &self.entries[index])
                && let Some(fields) = cut(&mut self.entries[index]["fieldsV1"], path)
            {
                union(&mut taken, &fields);
                was_owned = true;
            }
        }
        if !was_owned {
            taken = fields_of(live);
        }
        let mut at = &mut self.entries[self.own]["fieldsV1"];
        for key in path {
            if !at.is_object() {
                *at = json!({});
            }
            at = &mut at[&**key];
        }
        let mut fields = at.as_object().cloned().unwrap_or_default();
        union(&mut fields, &taken);
        *at = fields.into();
        self.changed = true;
        true
    }

    /// Returns the entries if any of them has changed. An entry that has become empty is left out.
    pub(super) fn into_changed(self) -> Option<Value> {
        let has_fields =
            |entry: &Value| entry["fieldsV1"].as_object().is_some_and(|fields| !fields.is_empty());
        self.changed.then(|| self.entries.into_iter().filter(has_fields).collect())
    }

    /// Returns whether fields may be taken from the manager of an entry: it wrote them by update, as people
    /// do, and is not part of the control plane. An entry in another version of the kind is left alone, since
    /// only the server could translate it.
    fn gives_way(&self, index: usize, entry: &Value) -> bool {
        index != self.own
            && self.conflicts == Conflicts::Take
            && entry["operation"] == "Update"
            && entry["apiVersion"] == self.api_version
            && is_whole(entry)
            && !SYSTEM.iter().any(|system| entry["manager"] == *system)
    }
}

/// Returns whether an entry is about the object itself, not about a subresource.
fn is_whole(entry: &Value) -> bool {
    entry["subresource"].as_str().unwrap_or_default().is_empty()
}

/// Returns the node of `fieldsV1` at a path.
fn node<'a>(fields: &'a Value, path: &[String]) -> Option<&'a Map<String, Value>> {
    path.iter().try_fold(fields, |fields, key| fields.get(&**key))?.as_object()
}

/// Removes a path from `fieldsV1`, with the parents that have nothing else.
fn cut(fields: &mut Value, path: &[String]) -> Option<Map<String, Value>> {
    let (key, rest) = path.split_first()?;
    let members = fields.as_object_mut()?;
    if rest.is_empty() {
        return match members.remove(&**key)? {
            Value::Object(fields) => Some(fields),
            _ => None,
        };
    }
    let child = members.get_mut(&**key)?;
    let taken = cut(child, rest)?;
    if child.as_object().is_some_and(Map::is_empty) {
        members.remove(&**key);
    }
    Some(taken)
}

/// Returns the `fieldsV1` of a value that nobody owns.
fn fields_of(value: &Value) -> Map<String, Value> {
    let members = value.as_object().into_iter().flatten();
    members.map(|(name, value)| (format!("f:{name}"), fields_of(value).into())).collect()
}
