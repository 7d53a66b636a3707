//! Readiness of an object by its kind, with the meaning of kstatus.
//!
//! A check is a function of the known part of a live object ([`Live`]), without I/O. The kinds below have
//! built-in checks; any other kind is ready if its conditions say so: `Ready` (or `Available`) if it has one
//! and it is about the present generation; without conditions, if it exists and its controller has observed
//! the present generation.
//!
//! | kind | ready when |
//! | --- | --- |
//! | Deployment | all replicas are of the present template and available, none of an older one is left |
//! | StatefulSet | all replicas are of the present revision (from the partition up) and ready |
//! | DaemonSet | all scheduled pods are of the present template and available |
//! | Job | it has completed |
//! | Pod | it is ready, or has succeeded |
//! | PersistentVolumeClaim | it exists: with late binding, it is bound only when a pod uses it; lost is failed |
//! | Service | it exists; of type `LoadBalancer`, when it has an address |
//! | Ingress, ConfigMap, Secret, RBAC, … | it exists |

use windlass_runtime::resource::ResourceType;

use super::object::{Live, LiveCondition};

/// The readiness of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// The object is ready.
    Ready,
    /// The object is not ready yet, for this reason. This is not a failure.
    Waiting(String),
    /// The object does not become ready without help, for this reason.
    Failed(String),
}

impl Readiness {
    /// Returns `Waiting` with this reason.
    pub fn waiting(why: impl Into<String>) -> Self {
        Self::Waiting(why.into())
    }
}

/// Runs the check of a kind.
pub(crate) fn check(resource: &ResourceType, live: &Live) -> Readiness {
    match (&*resource.group, &*resource.kind) {
        ("apps", "Deployment") => deployment(live),
        ("apps", "StatefulSet") => stateful_set(live),
        ("apps", "DaemonSet") => daemon_set(live),
        ("batch", "Job") => job(live),
        ("", "Pod") => pod(live),
        ("", "PersistentVolumeClaim") => claim(live),
        ("", "Service") => service(live),
        _ => by_conditions(live),
    }
}

/// Checks a Deployment. If its rollout is paused and not complete, the reason says so.
pub fn deployment(live: &Live) -> Readiness {
    match rollout(live) {
        Readiness::Waiting(why) if live.spec.paused == Some(true) => Readiness::Waiting(format!(
            "{why}; its rollout is paused: `kubectl rollout resume deployment/{}` continues it",
            live.metadata.name()
        )),
        readiness => readiness,
    }
}

fn rollout(live: &Live) -> Readiness {
    if let Some(waiting) = unobserved(live) {
        return waiting;
    }
    let status = &live.status;
    if let Some(stuck) = status.condition("Progressing").filter(|progressing| {
        progressing.is("False") && progressing.reason.as_deref() == Some("ProgressDeadlineExceeded")
    }) {
        // The rollout continues by itself once the cause is gone: it is no failure, but the reason is shown.
        return Readiness::Waiting(format!("{} ({})", replicas(live), stuck.explanation()));
    }
    let wanted = live.spec.replicas.unwrap_or(1);
    let (total, updated) = (status.replicas.unwrap_or(0), status.updated_replicas.unwrap_or(0));
    if updated < wanted {
        return Readiness::waiting(format!("{updated} of {wanted} replicas updated"));
    }
    if total > updated {
        return Readiness::waiting(format!("{} old replicas still there", total - updated));
    }
    if status.available_replicas.unwrap_or(0) < wanted {
        return Readiness::Waiting(replicas(live));
    }
    Readiness::Ready
}

/// Checks a StatefulSet.
pub fn stateful_set(live: &Live) -> Readiness {
    if let Some(waiting) = unobserved(live) {
        return waiting;
    }
    let status = &live.status;
    let wanted = live.spec.replicas.unwrap_or(1);
    let ready = status.ready_replicas.unwrap_or(0);
    if ready < wanted {
        return Readiness::waiting(format!("{ready} of {wanted} replicas ready"));
    }
    if status.replicas.unwrap_or(0) > wanted {
        return Readiness::waiting(format!(
            "{} of {wanted} replicas: scaling down",
            status.replicas.unwrap_or(0)
        ));
    }
    let strategy = &live.spec.update_strategy;
    // With OnDelete, somebody else decides when the pods are replaced.
    if strategy.type_.as_deref() == Some("OnDelete") || status.current_revision == status.update_revision {
        return Readiness::Ready;
    }
    let to_update = (wanted - strategy.rolling_update.partition.unwrap_or(0)).max(0);
    let updated = status.updated_replicas.unwrap_or(0);
    if updated < to_update {
        return Readiness::waiting(format!("{updated} of {to_update} replicas updated"));
    }
    Readiness::Ready
}

/// Checks a DaemonSet.
pub fn daemon_set(live: &Live) -> Readiness {
    if let Some(waiting) = unobserved(live) {
        return waiting;
    }
    let status = &live.status;
    let Some(wanted) = status.desired_number_scheduled else {
        return Readiness::waiting("its controller has not seen it yet");
    };
    let updated = status.updated_number_scheduled.unwrap_or(0);
    if live.spec.update_strategy.type_.as_deref() != Some("OnDelete") && updated < wanted {
        return Readiness::waiting(format!("{updated} of {wanted} pods updated"));
    }
    let available = status.number_available.unwrap_or(0);
    if available < wanted {
        return Readiness::waiting(format!("{available} of {wanted} pods available"));
    }
    Readiness::Ready
}

/// Checks a Job.
pub fn job(live: &Live) -> Readiness {
    if let Some(failed) = live.status.condition("Failed").filter(|failed| failed.is("True")) {
        return Readiness::Failed(format!(
            "it failed ({}): see its pods' logs; delete the Job to run it again",
            failed.explanation()
        ));
    }
    if live.status.condition("Complete").is_some_and(|complete| complete.is("True")) {
        return Readiness::Ready;
    }
    if live.spec.suspend == Some(true) {
        return Readiness::waiting("it is suspended");
    }
    Readiness::waiting("it has not completed")
}

/// Checks a Pod.
pub fn pod(live: &Live) -> Readiness {
    match live.status.phase.as_deref() {
        Some("Succeeded") => Readiness::Ready,
        Some("Failed") => Readiness::Failed("it failed: see its logs".into()),
        phase => match live.status.condition("Ready") {
            Some(ready) if ready.is("True") => Readiness::Ready,
            Some(ready) => Readiness::waiting(with(phase.unwrap_or("not ready"), ready)),
            None => Readiness::waiting(phase.unwrap_or("not scheduled yet").to_owned()),
        },
    }
}

/// Checks a PersistentVolumeClaim.
pub fn claim(live: &Live) -> Readiness {
    match live.status.phase.as_deref() {
        Some("Lost") => {
            Readiness::Failed("its volume is lost: restore the volume, or the claim from a backup".into())
        }
        _ => Readiness::Ready,
    }
}

/// Checks a Service.
pub fn service(live: &Live) -> Readiness {
    if live.spec.type_.as_deref() == Some("LoadBalancer") && live.status.load_balancer.ingress.is_empty() {
        return Readiness::waiting("no address from the load balancer yet");
    }
    Readiness::Ready
}

/// Checks an object of any kind by its conditions, if it has any.
pub fn by_conditions(live: &Live) -> Readiness {
    if live.status.observed_generation.is_some()
        && let Some(waiting) = unobserved(live)
    {
        return waiting;
    }
    let about_now = |condition: &&LiveCondition| {
        condition.observed_generation.is_none_or(|generation| generation >= live.metadata.generation)
    };
    for stalled in ["Stalled", "Failed"] {
        if let Some(condition) =
            live.status.condition(stalled).filter(about_now).filter(|condition| condition.is("True"))
        {
            // Some kinds give no message with a failure, and explain it in the `Ready` condition.
            let silent = condition.message.as_deref().is_none_or(str::is_empty);
            let ready =
                live.status.condition("Ready").filter(about_now).filter(|ready| silent && ready.is("False"));
            return Readiness::Failed(with("it failed", ready.unwrap_or(condition)));
        }
    }
    for ready in ["Ready", "Available"] {
        match live.status.condition(ready) {
            Some(condition) if !about_now(&condition) => {
                return Readiness::waiting("its controller has not seen its present spec");
            }
            Some(condition) if condition.is("True") => return Readiness::Ready,
            Some(condition) => return Readiness::Waiting(with("not ready", condition)),
            None => {}
        }
    }
    Readiness::Ready
}

fn with(what: &str, condition: &LiveCondition) -> String {
    let explanation = condition.explanation();
    if explanation.is_empty() { what.to_owned() } else { format!("{what} ({explanation})") }
}

fn replicas(live: &Live) -> String {
    let available = live.status.available_replicas.unwrap_or(0);
    format!("{available} of {} replicas ready", live.spec.replicas.unwrap_or(1))
}

/// Returns `Waiting` until the controller has observed the present spec: before that, the status is outdated.
fn unobserved(live: &Live) -> Option<Readiness> {
    (live.status.observed_generation.unwrap_or(0) < live.metadata.generation)
        .then(|| Readiness::waiting("its controller has not seen its present spec"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn live(spec: Value, status: Value) -> Live {
        serde_json::from_value(
            json!({"metadata": {"name": "x", "generation": 2}, "spec": spec, "status": status}),
        )
        .unwrap()
    }

    fn described(readiness: Readiness) -> String {
        match readiness {
            Readiness::Ready => "ready".into(),
            Readiness::Waiting(why) => format!("waiting: {why}"),
            Readiness::Failed(why) => format!("failed: {why}"),
        }
    }

    #[test]
    fn a_deployment_is_ready_when_all_its_replicas_are_new_and_available() {
        let status = |total, updated, available, seen| json!({"observedGeneration": seen, "replicas": total, "updatedReplicas": updated, "availableReplicas": available});
        for (status, expected) in [
            (json!({}), "waiting: its controller has not seen its present spec"),
            (status(3, 3, 3, 1), "waiting: its controller has not seen its present spec"),
            (status(3, 2, 3, 2), "waiting: 2 of 3 replicas updated"),
            (status(4, 3, 3, 2), "waiting: 1 old replicas still there"),
            (status(3, 3, 1, 2), "waiting: 1 of 3 replicas ready"),
            (status(3, 3, 3, 2), "ready"),
        ] {
            assert_eq!(
                described(deployment(&live(json!({"replicas": 3}), status.clone()))),
                expected,
                "{status}"
            );
        }
        let none = json!({"observedGeneration": 2});
        assert_eq!(deployment(&live(json!({"replicas": 0}), none.clone())), Readiness::Ready);
        assert_eq!(described(deployment(&live(json!({}), none))), "waiting: 0 of 1 replicas updated");
        let stuck = json!({"observedGeneration": 2, "conditions": [{"type": "Progressing", "status": "False",
            "reason": "ProgressDeadlineExceeded", "message": "timed out"}]});
        let expected = "waiting: 0 of 3 replicas ready (ProgressDeadlineExceeded: timed out)";
        assert_eq!(described(deployment(&live(json!({"replicas": 3}), stuck))), expected);
    }

    #[test]
    fn users_n19_a_paused_rollout_is_named_with_the_command_that_continues_it() {
        let spec = json!({"replicas": 1, "paused": true});
        let done =
            json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1});
        assert_eq!(deployment(&live(spec.clone(), done)), Readiness::Ready);
        let half =
            json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 0, "availableReplicas": 1});
        let message = described(deployment(&live(spec, half)));
        let expected = "waiting: 0 of 1 replicas updated; its rollout is paused: `kubectl rollout resume deployment/x` continues it";
        assert_eq!(message, expected);
    }

    #[test]
    fn a_stateful_set_is_ready_when_all_from_the_partition_up_are_new() {
        let status = |total, ready, updated| {
            json!({"observedGeneration": 2, "replicas": total, "readyReplicas": ready, "updatedReplicas": updated,
                "currentRevision": "a", "updateRevision": "b"})
        };
        let spec = json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 1}}});
        assert_eq!(
            described(stateful_set(&live(spec.clone(), status(3, 2, 0)))),
            "waiting: 2 of 3 replicas ready"
        );
        assert_eq!(
            described(stateful_set(&live(spec.clone(), status(3, 3, 1)))),
            "waiting: 1 of 2 replicas updated"
        );
        assert_eq!(
            described(stateful_set(&live(spec.clone(), status(4, 4, 1)))),
            "waiting: 4 of 3 replicas: scaling down"
        );
        assert_eq!(stateful_set(&live(spec, status(3, 3, 2))), Readiness::Ready);
        let on_delete = json!({"replicas": 3, "updateStrategy": {"type": "OnDelete"}});
        assert_eq!(stateful_set(&live(on_delete, status(3, 3, 0))), Readiness::Ready);
    }

    #[test]
    fn a_daemon_set_counts_the_pods_that_are_wanted_now() {
        let status = |updated, available| json!({"observedGeneration": 2, "desiredNumberScheduled": 2, "updatedNumberScheduled": updated, "numberAvailable": available});
        assert_eq!(described(daemon_set(&live(json!({}), status(1, 2)))), "waiting: 1 of 2 pods updated");
        assert_eq!(described(daemon_set(&live(json!({}), status(2, 1)))), "waiting: 1 of 2 pods available");
        assert_eq!(daemon_set(&live(json!({}), status(2, 2))), Readiness::Ready);
    }

    #[test]
    fn a_job_that_failed_says_how_to_run_it_again() {
        let condition = |kind| json!({"conditions": [{"type": kind, "status": "True", "reason": "BackoffLimitExceeded"}]});
        assert!(
            matches!(job(&live(json!({}), condition("Failed"))), Readiness::Failed(why) if why.contains("delete the Job"))
        );
        assert_eq!(job(&live(json!({}), condition("Complete"))), Readiness::Ready);
        assert_eq!(described(job(&live(json!({"suspend": true}), json!({})))), "waiting: it is suspended");
        assert_eq!(described(job(&live(json!({}), json!({})))), "waiting: it has not completed");
    }

    #[test]
    fn pods_claims_and_services_have_checks_of_their_own() {
        let condition = |status| json!({"phase": "Running", "conditions": [{"type": "Ready", "status": status, "reason": "ContainersNotReady"}]});
        assert_eq!(pod(&live(json!({}), condition("True"))), Readiness::Ready);
        assert_eq!(
            described(pod(&live(json!({}), condition("False")))),
            "waiting: Running (ContainersNotReady)"
        );
        assert_eq!(claim(&live(json!({}), json!({"phase": "Pending"}))), Readiness::Ready);
        assert!(matches!(claim(&live(json!({}), json!({"phase": "Lost"}))), Readiness::Failed(_)));
        assert_eq!(service(&live(json!({"type": "ClusterIP"}), json!({}))), Readiness::Ready);
        assert!(matches!(service(&live(json!({"type": "LoadBalancer"}), json!({}))), Readiness::Waiting(_)));
        let address = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
        assert_eq!(service(&live(json!({"type": "LoadBalancer"}), address)), Readiness::Ready);
    }

    #[test]
    fn the_readiness_of_any_kind_follows_from_its_conditions_about_the_present_generation() {
        let ready = |status, generation| json!({"observedGeneration": 2, "conditions": [{"type": "Ready", "status": status, "observedGeneration": generation, "message": "m"}]});
        assert_eq!(by_conditions(&live(json!({}), json!({}))), Readiness::Ready, "nothing to wait for");
        assert_eq!(by_conditions(&live(json!({}), ready("True", 2))), Readiness::Ready);
        assert!(matches!(by_conditions(&live(json!({}), ready("True", 1))), Readiness::Waiting(_)));
        assert_eq!(described(by_conditions(&live(json!({}), ready("False", 2)))), "waiting: not ready (m)");
        assert!(matches!(
            by_conditions(&live(json!({}), json!({"observedGeneration": 1}))),
            Readiness::Waiting(_)
        ));
        let failed = json!({"conditions": [{"type": "Failed", "status": "True", "reason": "R"}]});
        assert_eq!(described(by_conditions(&live(json!({}), failed))), "failed: it failed (R)");
        let why =
            json!({"type": "Ready", "status": "False", "reason": "Forbidden", "message": "exceeded quota"});
        let failed = json!({"conditions": [why, {"type": "Failed", "status": "True", "reason": "Forbidden", "message": ""}]});
        let message = described(by_conditions(&live(json!({}), failed)));
        assert!(
            message.starts_with("failed: it failed (") && message.contains("exceeded quota"),
            "{message}"
        );
    }
}
