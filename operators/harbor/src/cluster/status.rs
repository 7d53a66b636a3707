//! What is said of a HarborCluster: the words and conditions that these kinds have always had, meant as they are written.
//!
//! A condition is True when its part is ready; False when it needs help, or was ready with this very spec and is not any more; Unknown
//! as long as it is being made. The HarborCluster is `healthy` when all are True, `unhealthy` when one is False, and `provisioning`
//! otherwise.

use serde_json::{Value, json};
use windlass::PlanState;

use crate::api::HarborCluster;
use crate::api::status::{Condition, HarborClusterStatus, Health, NOT_READY, condition};
use crate::harbor::upgrade::FIELD as VERSION;

use super::Names;

/// The status of a HarborCluster.
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
    let told = |(condition, found): &(&str, Found)| {
        let message = match found {
            Found::Ready => Value::Null,
            Found::Waiting(why) | Found::NotReady(why) | Found::Failed(why) => json!(why),
        };
        json!({"type": condition, "status": found.truth(), "reason": found.reason(), "message": message})
    };
    let mut conditions: Vec<Value> = found.iter().map(told).collect();
    let in_progress = if seen.is_ready() { "False" } else { "True" };
    conditions.push(json!({"type": condition::IN_PROGRESS, "status": in_progress}));
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

/// The number of what is said: another whenever that is another, and greater than the last. Those who compare it with the one that they
/// saw know whether to look again; once it was a time.
fn revision(present: Option<&HarborClusterStatus>, health: Health, conditions: &[Value]) -> i64 {
    let Some(present) = present else { return 1 };
    let said = |new: &Value| {
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
    let same = present.status.as_deref() == json!(health).as_str() && conditions.iter().all(said);
    let last = present.revision.unwrap_or(0);
    if same && last > 0 { last } else { last.saturating_add(1) }
}

/// What was said of a condition with the spec that the HarborCluster has now.
fn before<'c>(cluster: &'c HarborCluster, kind: &str) -> Option<&'c Condition> {
    let said = cluster.status.as_ref()?.conditions.iter().find(|condition| condition.kind == kind)?;
    (said.observed_generation.is_some() && said.observed_generation == cluster.metadata.generation)
        .then_some(said)
}

/// How a part was found.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    Ready,
    /// It is being made.
    Waiting(String),
    /// It was made, and is not what it was.
    NotReady(String),
    Failed(String),
}

impl Found {
    /// The same, knowing what was said before.
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

/// How the nodes of a part are: those of these names, and of names that begin so. A part that others look after has none, and is ready.
fn look(seen: &PlanState<'_>, bases: &[String]) -> Found {
    let Some(report) = seen.report() else {
        return Found::Waiting("nothing is done for it: see the condition Ready".into());
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
            let told = outcome.to_string();
            waiting = Some(match told.split_once(": ") {
                Some((_, why)) => format!("waiting for {id}: {why}"),
                None => format!("{id} is {told}"),
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
    fn healthy_unhealthy_and_provisioning_mean_what_they_say() {
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
    fn the_revision_grows_with_whatever_is_said_otherwise_and_only_then() {
        let said = |status: &str| json!({"type": "CacheReady", "status": status, "reason": "Waiting", "message": "soon"});
        let present: HarborClusterStatus = serde_json::from_value(json!({
            "status": "provisioning", "revision": 1_658_000_000_000_000_000_i64,
            "conditions": [said("Unknown"), {"type": "InProgress", "status": "True", "reason": "Waiting"}],
        }))
        .unwrap();
        let last = present.revision.unwrap();
        // A condition of ours may leave the reason to the controller.
        let progress = json!({"type": "InProgress", "status": "True"});
        let of = |health, conditions: &[Value]| revision(Some(&present), health, conditions);
        assert_eq!(of(Health::Provisioning, &[said("Unknown"), progress.clone()]), last);
        assert_eq!(of(Health::Unhealthy, &[said("Unknown"), progress.clone()]), last + 1);
        assert_eq!(of(Health::Provisioning, &[said("True"), progress.clone()]), last + 1);
        assert_eq!(
            of(Health::Provisioning, &[said("Unknown"), json!({"type": "Other", "status": "True"})]),
            last + 1
        );
        assert_eq!(revision(None, Health::Provisioning, &[progress]), 1);
    }

    #[test]
    fn what_was_ready_with_this_spec_is_not_in_the_making() {
        let mut cluster = external();
        cluster.metadata.generation = Some(2);
        let mut said = |status: &str, reason: &str, generation: i64| {
            let condition = json!({"type": "CacheReady", "status": status, "reason": reason, "observedGeneration": generation});
            cluster.status = serde_json::from_value(json!({"conditions": [condition]})).unwrap();
            waiting().since(before(&cluster, "CacheReady")).truth()
        };
        assert_eq!(said("True", "Ready", 2), "False");
        assert_eq!(said("False", "NotReady", 2), "False");
        assert_eq!(said("True", "Ready", 1), "Unknown", "it is being changed");
        assert_eq!(said("Unknown", "Waiting", 2), "Unknown");
        assert_eq!(said("False", "Failed", 2), "Unknown", "what was wrong is not any more");
        assert_eq!(before(&external(), "CacheReady"), None);
    }
}
