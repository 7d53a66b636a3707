//! Repairs that a server-side apply cannot express. Pure.
//!
//! A server-side apply removes the fields that its manager owned and no longer declares, and nothing else.
//! Three changes of a plan cannot be expressed that way:
//!
//! - [Emptied objects](emptied): where all fields of an object were ours and the plan leaves `{}` of it, the
//!   server makes a `null` of it, and refuses that.
//! - [Siblings](siblings): a field that nobody owns, because the server set it, and that cannot stay beside
//!   what the plan says now.
//! - [List keys](lists): where somebody changes the key of an item of ours, an apply adds ours back beside
//!   theirs.
//!
//! [`mend`] decides on one patch of the live object, after which the same apply is accepted and leaves
//! nothing behind. If possible, the patch changes no content: it transfers the fields to our manager in
//! `managedFields`, so that the apply drops them. The patch is valid only for the object that was read: it
//! carries its uid and its resource version. No object is ever deleted and created again.
//!
//! The server's schema is not needed: `managedFields` shows which members are the keys of a list, and
//! defaults are the fields that no manager owns there. An object that has converged is not even read:
//! [`is_suspect`] decides from the cache.

mod emptied;
mod lists;
mod managers;
mod patch;
mod siblings;

use serde_json::{Map, Value, json};
use windlass_runtime::client::FieldCause;
use windlass_runtime::meta::Meta;

use self::managers::Managers;
use super::managed_fields;
use crate::names::mark;
use crate::plan::Conflicts;
use crate::plan::desired::{Desired, digest_of};

/// Everything that the decision about a mend depends on.
pub(super) struct Case<'a> {
    /// The object as stored on the server.
    pub(super) live: &'a Value,
    pub(super) desired: &'a Desired,
    /// Our field manager.
    pub(super) manager: &'a str,
    /// The policy for fields that others wrote by update: they may be taken over or not.
    pub(super) conflicts: Conflicts,
    /// The causes that the server named when it refused the apply; empty before the apply.
    pub(super) causes: &'a [FieldCause],
}

/// One patch of a live object.
#[derive(Debug, PartialEq)]
pub(super) struct Mend {
    /// A JSON patch (RFC 6902) that is valid for this version of the object only.
    pub(super) patch: Value,
    /// The fields that the patch changes, for the log.
    pub(super) paths: Vec<String>,
}

/// Returns whether an apply may need a mend, from the cached state of the object: then the object is read,
/// and [`mend`] decides. `has_had` is true if the object has had exactly this content before.
pub(super) fn is_suspect(desired: &Desired, live: &Meta, has_had: bool) -> bool {
    let api_version = desired.resource.api_version();
    let entry = live.managed.iter().find(|entry| *entry.api_version == *api_version);
    let own = entry.and_then(|entry| serde_json::from_str::<Map<String, Value>>(&entry.fields()).ok());
    if has_had {
        return own.is_some_and(|own| lists::has_lost_a_container(&desired.body, &own));
    }
    siblings::of(desired).any(|sibling| sibling.is_due(&desired.body, own.as_ref()))
        || own.is_some_and(|own| emptied::is_due(desired, &own))
}

/// Returns the patch after which the apply of `desired` has its full effect; `None` if it has already, or if
/// a field in its way belongs to somebody else.
pub(super) fn mend(case: &Case<'_>) -> Option<Mend> {
    let Case { live, desired, manager, conflicts, causes } = *case;
    let metadata = &live["metadata"];
    let mut managers = Managers::new(&metadata["managedFields"], manager, desired, conflicts);
    let mut paths = siblings::take(desired, live, &mut managers);
    let has_had = metadata["annotations"][mark::DIGEST] == *digest_of(desired);
    paths.extend(lists::take(desired, live, &mut managers, causes, has_had));
    let mut operations = Vec::new();
    for (path, pointer, empty) in emptied::find(desired, live, &managers, causes) {
        operations.push(json!({"op": "replace", "path": pointer, "value": empty}));
        paths.push(path);
    }
    let mut managed = managers.into_changed();
    if has_had && !causes.is_empty() && conflicts == Conflicts::Take {
        let present = managed.as_ref().unwrap_or(&metadata["managedFields"]);
        let api_version = desired.resource.api_version();
        if let Some(more) = managed_fields::make_way(present, manager, &api_version, &desired.body) {
            managed = Some(more);
            paths.push("a field that replaced one of ours".to_owned());
        }
    }
    if let Some(managed) = managed {
        operations.push(json!({"op": "replace", "path": "/metadata/managedFields", "value": managed}));
    }
    if operations.is_empty() {
        return None;
    }
    // Not a `test` operation, because its failure is no conflict; a different version or uid is one.
    let precondition = ["resourceVersion", "uid"]
        .map(|name| json!({"op": "replace", "path": format!("/metadata/{name}"), "value": metadata[name]}));
    let patch = precondition.into_iter().chain(operations).collect();
    Some(Mend { patch, paths })
}

/// Returns the members of an object that a plan decides on, without those that identify the object.
fn content(body: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let members = body.as_object().into_iter().flatten();
    members.filter(|(name, _)| !matches!(&***name, "apiVersion" | "kind" | "metadata" | "status"))
}

/// Returns a field of a refusal without the indexes of lists, which refer to an object that we do not have:
/// `spec.ports[1].name` becomes `spec.ports.name`.
fn without_indexes(field: &str) -> String {
    let mut depth = 0_usize;
    let outside = |letter: &char| {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    };
    field.chars().filter(outside).collect()
}

#[cfg(test)]
mod tests;
