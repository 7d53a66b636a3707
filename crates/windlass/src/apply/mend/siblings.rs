//! A table of fields that the server sets by itself and that conflict with a changed plan.
//!
//! Every line was found by applying a change and its reversal on a server and comparing the result with a
//! fresh object, and has a test. Fields that are not listed are removed by the server itself: handlers of
//! probes, sources of volumes and of variables, and fields that depend on the type of a Service.

use serde_json::{Map, Value};

use super::managers::Managers;
use crate::plan::desired::Desired;

/// A field that has to be removed when a field beside it changes.
pub(super) struct Sibling {
    group: &'static str,
    kinds: &'static [&'static str],
    /// The object that both are in.
    parent: &'static [&'static str],
    /// The field that has to be removed, unless the plan declares it.
    stale: &'static str,
    when: When,
}

/// The condition under which a field is removed.
enum When {
    /// The plan gives the field beside it this value.
    Says(&'static str, &'static str),
    /// The plan begins or ceases to declare the field beside it.
    Toggles(&'static str),
}

const SIBLINGS: [Sibling; 5] = [
    // Refused: "may not be specified when strategy `type` is 'Recreate'".
    Sibling {
        group: "apps",
        kinds: &["Deployment"],
        parent: &["spec", "strategy"],
        stale: "rollingUpdate",
        when: When::Says("type", "Recreate"),
    },
    // Refused for a StatefulSet: "only allowed for updateStrategy 'RollingUpdate'". A DaemonSet keeps it.
    Sibling {
        group: "apps",
        kinds: &["StatefulSet", "DaemonSet"],
        parent: &["spec", "updateStrategy"],
        stale: "rollingUpdate",
        when: When::Says("type", "OnDelete"),
    },
    // The deprecated name of the same field: if only that is left, the server restores the other from it.
    Sibling {
        group: "apps",
        kinds: &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"],
        parent: &["spec", "template", "spec"],
        stale: "serviceAccount",
        when: When::Toggles("serviceAccountName"),
    },
    Sibling {
        group: "batch",
        kinds: &["CronJob"],
        parent: &["spec", "jobTemplate", "spec", "template", "spec"],
        stale: "serviceAccount",
        when: When::Toggles("serviceAccountName"),
    },
    // Set from the rules that the policy was created with: egress rules that are added later would have no
    // effect.
    Sibling {
        group: "networking.k8s.io",
        kinds: &["NetworkPolicy"],
        parent: &["spec"],
        stale: "policyTypes",
        when: When::Toggles("egress"),
    },
];

/// Returns the lines of a kind.
pub(super) fn of(desired: &Desired) -> impl Iterator<Item = &'static Sibling> {
    let (group, kind) = (&*desired.resource.group, &*desired.resource.kind);
    SIBLINGS.iter().filter(move |sibling| sibling.group == group && sibling.kinds.contains(&kind))
}

impl Sibling {
    /// Returns whether the field has to be removed if the live object has it. `own` is our entry of
    /// `managedFields`, if there is one.
    pub(super) fn is_due(&self, desired: &Value, own: Option<&Map<String, Value>>) -> bool {
        let parent = self.parent.iter().try_fold(desired, |at, name| at.get(name));
        if parent.is_some_and(|parent| parent.get(self.stale).is_some()) {
            return false;
        }
        match self.when {
            When::Says(beside, value) => parent.is_some_and(|parent| parent[beside] == value),
            When::Toggles(beside) => own.is_some_and(|own| {
                let declared = parent.is_some_and(|parent| parent.get(beside).is_some());
                let ours = self.path(beside).iter().try_fold(own, |at, key| at.get(&**key)?.as_object());
                declared != ours.is_some()
            }),
        }
    }

    /// Returns the path of a sibling field in `fieldsV1`.
    fn path(&self, beside: &str) -> Vec<String> {
        self.parent.iter().chain([&beside]).map(|name| format!("f:{name}")).collect()
    }
}

/// Takes the fields that have to be removed; returns their paths.
pub(super) fn take(desired: &Desired, live: &Value, managers: &mut Managers) -> Vec<String> {
    let mut paths = Vec::new();
    for sibling in of(desired) {
        let parent = sibling.parent.iter().try_fold(live, |at, name| at.get(name));
        let Some(stale) = parent.and_then(|parent| parent.get(sibling.stale)) else { continue };
        let own = (!managers.own_nothing()).then(|| managers.own(&[])).flatten();
        let path = sibling.path(sibling.stale);
        // A field that is already ours is removed by the apply itself.
        let is_ours = managers.own(&path).is_some();
        if !is_ours && sibling.is_due(&desired.body, own) && managers.take(&path, stale) {
            paths.push(format!(".{}.{}", sibling.parent.join("."), sibling.stale));
        }
    }
    paths
}

/// Returns the kinds of the table, for its test.
#[cfg(test)]
pub(super) fn kinds() -> Vec<(&'static str, &'static str)> {
    SIBLINGS.iter().flat_map(|sibling| sibling.kinds.iter().map(|kind| (sibling.group, *kind))).collect()
}
