//! The status of a HarborCluster, with the summary and the conditions of the upstream operator.
//!
//! A condition is True when its dependency is ready; False when it has failed, or was ready with the current
//! spec and no longer is; Unknown while it is being created. The HarborCluster is `healthy` when all
//! conditions are True, `unhealthy` when one is False, and `provisioning` otherwise.

use serde_json::{Value, json};
use windlass::PlanState;

use crate::api::HarborCluster;
use crate::api::status::{Condition, HarborClusterStatus, Health, NOT_READY, condition};
use crate::harbor::upgrade::FIELD as VERSION;
use crate::workload::in_progress;

use super::Names;

/// Returns the status of a HarborCluster.
pub(super) fn of(cluster: &HarborCluster, seen: &PlanState<'_>) -> Value {
    let names = Names::of(cluster);
    let parts: [(&str, Vec<String>); 4] = [
        (condition::CACHE_READY, vec![names.cache()]),
        (condition::DATABASE_READY, vec![names.database(), names.postgres()]),
        (condition::STORAGE_READY, vec![names.minio(), names.registry()]),
        (condition::SERVICE_READY, vec![names.harbor()]),
    ];
    let found =
        parts.map(|(condition, bases)| (condition, look(seen, &bases).since(before(cluster, condition))));
    let health = health(found.iter().map(|(_, found)| found), seen.is_failed());
    let as_json = |(condition, found): &(&str, Found)| {
        let message = match found {
            Found::Ready => Value::Null,
            Found::Waiting(why) | Found::NotReady(why) | Found::Failed(why) => json!(why),
        };
        json!({"type": condition, "status": found.truth(), "reason": found.reason(), "message": message})
    };
    let mut conditions: Vec<Value> = found.iter().map(as_json).collect();
    conditions.push(in_progress(seen));
    let standing = cluster.status.as_ref().and_then(|status| status.other.get(VERSION).cloned());
    let version = if seen.is_ready() { Some(json!(cluster.spec.common.version)) } else { standing };
    json!({
        "operator": {"controllerName": "harborcluster", "controllerVersion": env!("CARGO_PKG_VERSION")},
        "status": health,
        "revision": revision(cluster.status.as_ref(), health, &conditions),
        VERSION: version,
        "conditions": conditions,
    })
}

/// Returns the revision of the status: a number that grows whenever the summary or a condition changes, so
/// that readers can compare it with the last one that they saw. Upstream used the time.
fn revision(present: Option<&HarborClusterStatus>, health: Health, conditions: &[Value]) -> i64 {
    let Some(present) = present else { return 1 };
    let is_written = |new: &Value| {
        present.conditions.iter().any(|old| {
            let fields = [
                ("type", Some(&old.kind)),
                ("status", Some(&old.status)),
                ("reason", old.reason.as_ref()),
                ("message", old.message.as_ref()),
            ];
            fields
                .into_iter()
                .all(|(field, old)| new[field].is_null() || new[field].as_str() == old.map(String::as_str))
        })
    };
    let same = present.status.as_deref() == json!(health).as_str() && conditions.iter().all(is_written);
    let last = present.revision.unwrap_or(0);
    if same && last > 0 { last } else { last.saturating_add(1) }
}

/// Returns a condition that was written for the current generation of the spec.
fn before<'c>(cluster: &'c HarborCluster, kind: &str) -> Option<&'c Condition> {
    let written = cluster.status.as_ref()?.conditions.iter().find(|condition| condition.kind == kind)?;
    (written.observed_generation.is_some() && written.observed_generation == cluster.metadata.generation)
        .then_some(written)
}

/// The observed condition of a dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    Ready,
    /// The dependency is being created.
    Waiting(String),
    /// The dependency was ready and no longer is.
    NotReady(String),
    Failed(String),
}

impl Found {
    /// Takes the previous condition into account.
    fn since(self, before: Option<&Condition>) -> Self {
        let was_ready = before.is_some_and(|before| {
            before.status == "True"
                || (before.status == "False" && before.reason.as_deref() == Some(NOT_READY))
        });
        match self {
            Self::Waiting(why) if was_ready => Self::NotReady(why),
            other => other,
        }
    }

    const fn truth(&self) -> &'static str {
        match self {
            Self::Ready => "True",
            Self::NotReady(_) | Self::Failed(_) => "False",
            Self::Waiting(_) => "Unknown",
        }
    }

    const fn reason(&self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Waiting(_) => "Waiting",
            Self::NotReady(_) => NOT_READY,
            Self::Failed(_) => "Failed",
        }
    }
}

fn health<'f>(found: impl Iterator<Item = &'f Found>, failed: bool) -> Health {
    let truths: Vec<&str> = found.map(Found::truth).collect();
    if failed || truths.contains(&"False") {
        Health::Unhealthy
    } else if truths.iter().all(|truth| *truth == "True") {
        Health::Healthy
    } else {
        Health::Provisioning
    }
}

/// Returns the condition of the nodes with these names or name prefixes. An external dependency has no nodes
/// and is ready.
fn look(seen: &PlanState<'_>, bases: &[String]) -> Found {
    let Some(report) = seen.report() else {
        return Found::Waiting("not reconciled: see the condition Ready".into());
    };
    let belongs = |id: &str| {
        let name = id.split_once(' ').map_or(id, |(_, name)| name);
        let after = |base: &String| name.strip_prefix(base.as_str());
        bases.iter().filter_map(after).any(|rest| rest.is_empty() || rest.starts_with(['-', ',']))
    };
    let mut waiting = None;
    for node in report.nodes().filter(|node| belongs(node.id())) {
        let (id, outcome) = (node.id(), node.outcome());
        if let Some(failure) = outcome.failure() {
            return Found::Failed(format!("{id}: {failure}"));
        }
        if !outcome.is_ready() && waiting.is_none() {
            let text = outcome.to_string();
            waiting = Some(match text.split_once(": ") {
                Some((_, why)) => format!("waiting for {id}: {why}"),
                None => format!("{id} is {text}"),
            });
        }
    }
    waiting.map_or(Found::Ready, Found::Waiting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::blueprint::samples::external;

    fn waiting() -> Found {
        Found::Waiting("x".into())
    }

    #[test]
    fn the_summary_follows_the_conditions() {
        let (ready, waiting, failed) = (Found::Ready, waiting(), Found::Failed("x".into()));
        let gone = Found::NotReady("x".into());
        let health = |found: &[&Found]| health(found.iter().copied(), false);
        assert_eq!(health(&[&ready, &ready]), Health::Healthy);
        assert_eq!(health(&[&ready, &waiting]), Health::Provisioning, "it is being made");
        assert_eq!(health(&[&ready, &gone]), Health::Unhealthy, "it was there, and is not any more");
        assert_eq!(health(&[&waiting, &failed]), Health::Unhealthy);
        assert_eq!(super::health([&ready].into_iter(), true), Health::Unhealthy, "the plan cannot be drawn");
    }

    #[test]
    fn the_revision_grows_only_when_the_status_changes() {
        let written = |status: &str| json!({"type": "CacheReady", "status": status, "reason": "Waiting", "message": "soon"});
        let present: HarborClusterStatus = serde_json::from_value(json!({
            "status": "provisioning", "revision": 1_658_000_000_000_000_000_i64,
            "conditions": [written("Unknown"), {"type": "InProgress", "status": "True", "reason": "Waiting"}],
        }))
        .unwrap();
        let last = present.revision.unwrap();
        // A condition of the operator may leave the reason to the controller.
        let progress = json!({"type": "InProgress", "status": "True"});
        let of = |health, conditions: &[Value]| revision(Some(&present), health, conditions);
        assert_eq!(of(Health::Provisioning, &[written("Unknown"), progress.clone()]), last);
        assert_eq!(of(Health::Unhealthy, &[written("Unknown"), progress.clone()]), last + 1);
        assert_eq!(of(Health::Provisioning, &[written("True"), progress.clone()]), last + 1);
        assert_eq!(
            of(Health::Provisioning, &[written("Unknown"), json!({"type": "Other", "status": "True"})]),
            last + 1
        );
        assert_eq!(revision(None, Health::Provisioning, &[progress]), 1);
    }

    #[test]
    fn a_dependency_that_was_ready_with_this_spec_is_not_ready_instead_of_waiting() {
        let mut cluster = external();
        cluster.metadata.generation = Some(2);
        let mut written = |status: &str, reason: &str, generation: i64| {
            let condition = json!({"type": "CacheReady", "status": status, "reason": reason, "observedGeneration": generation});
            cluster.status = serde_json::from_value(json!({"conditions": [condition]})).unwrap();
            waiting().since(before(&cluster, "CacheReady")).truth()
        };
        assert_eq!(written("True", "Ready", 2), "False");
        assert_eq!(written("False", "NotReady", 2), "False");
        assert_eq!(written("True", "Ready", 1), "Unknown", "it is being changed");
        assert_eq!(written("Unknown", "Waiting", 2), "Unknown");
        assert_eq!(written("False", "Failed", 2), "Unknown", "what was wrong is not any more");
        assert_eq!(before(&external(), "CacheReady"), None);
    }
}
