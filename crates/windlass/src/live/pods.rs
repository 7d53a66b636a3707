//! Reasons why the pods of a workload do not run, in the words of their status.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;
use windlass_runtime::cache::{OfKind, Reader, Shape};
use windlass_runtime::intern::Str;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::Meta;
use windlass_runtime::resource::ResourceType;

/// The fields of a pod that are kept.
#[derive(Debug, Deserialize)]
pub(crate) struct PodShape {
    metadata: Meta,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    conditions: Vec<Condition>,
    init_container_statuses: Vec<Container>,
    container_statuses: Vec<Container>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Condition {
    #[serde(rename = "type")]
    kind: Str,
    status: Str,
    reason: Option<Str>,
    message: Option<Box<str>>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Container {
    name: Str,
    #[serde(default)]
    state: State,
    #[serde(default)]
    last_state: State,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
struct State {
    waiting: Option<Waiting>,
    terminated: Option<Terminated>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Terminated {
    message: Option<Box<str>>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Waiting {
    reason: Option<Str>,
    message: Option<Box<str>>,
}

impl Shape for PodShape {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl OfKind for PodShape {
    fn resource() -> ResourceType {
        ResourceType::of::<Pod>()
    }
}

/// The number of bytes of a pod's message that a status quotes: some messages contain whole commands. A
/// container that writes a shorter termination message is quoted in full.
pub const LONGEST_QUOTE: usize = 200;

impl Container {
    /// Returns the termination message of its last run: the container's own words, where it writes any.
    fn last_words(&self) -> Option<&str> {
        let message = self.last_state.terminated.as_ref()?.message.as_deref()?;
        Some(message.trim()).filter(|message| !message.is_empty())
    }
}

impl PodShape {
    /// Returns the reason why the pod does not run: a container that waits for more than its turn, or a
    /// failed scheduling.
    pub(crate) fn problem(&self) -> Option<String> {
        let waiting =
            self.status.init_container_statuses.iter().chain(&self.status.container_statuses).find_map(
                |container| {
                    let waiting = container.state.waiting.as_ref()?;
                    let reason = waiting.reason.as_deref()?;
                    // Every pod has these reasons for a moment.
                    (!matches!(reason, "ContainerCreating" | "PodInitializing"))
                        .then(|| explanation(reason, container.last_words().or(waiting.message.as_deref())))
                },
            );
        waiting.or_else(|| {
            let scheduled =
                self.status.conditions.iter().find(|condition| &*condition.kind == "PodScheduled")?;
            let reason = scheduled.reason.as_deref().unwrap_or("Unschedulable");
            (&*scheduled.status == "False").then(|| explanation(reason, scheduled.message.as_deref()))
        })
    }

    /// Returns kind and key of the workload that the pod belongs to.
    pub(crate) fn workload(&self) -> Option<(&str, ObjectKey)> {
        let owner = self.metadata.controller()?;
        let namespace = self.metadata.namespace().map(Str::new);
        let (kind, name) = match &*owner.kind {
            "ReplicaSet" => {
                let hash = self.metadata.labels.get("pod-template-hash")?;
                ("Deployment", owner.name.strip_suffix(&**hash)?.strip_suffix('-')?)
            }
            kind => (kind, &*owner.name),
        };
        Some((kind, ObjectKey::new(namespace, name)))
    }
}

fn explanation(reason: &str, message: Option<&str>) -> String {
    match message.filter(|message| !message.is_empty()) {
        Some(message) => format!("{reason}: {}", quoted(message)),
        None => reason.to_owned(),
    }
}

/// Returns a message, or the beginning of a long one: cut after a whole word, with an ellipsis, because half
/// of a path or of a name misleads.
fn quoted(message: &str) -> Cow<'_, str> {
    if message.len() <= LONGEST_QUOTE {
        return Cow::Borrowed(message);
    }
    // One more byte than fits, so that a word which ends at the limit is kept.
    let start = &message[..message.floor_char_boundary(LONGEST_QUOTE + 1)];
    let whole = match start.rfind(char::is_whitespace) {
        Some(end) => start[..end].trim_end(),
        None => &message[..message.floor_char_boundary(LONGEST_QUOTE)],
    };
    Cow::Owned(format!("{whole} …"))
}

const BY_WORKLOAD: &str = "workload";

/// Indexes pods by their workload.
pub(crate) fn index(pods: &Reader<PodShape>) {
    pods.index(BY_WORKLOAD, |pod, found| {
        if let Some((kind, key)) = pod.workload() {
            found(&format!("{kind} {key}"));
        }
    });
}

/// Returns the reason why the pods of a workload do not run. Of several problems, the first by the pods'
/// names.
pub(crate) fn problem(pods: &Reader<PodShape>, resource: &ResourceType, key: &ObjectKey) -> Option<String> {
    let mut pods = pods.by_index(BY_WORKLOAD, &format!("{} {key}", resource.kind));
    pods.sort_by(|a, b| a.metadata.name().cmp(b.metadata.name()));
    pods.iter().filter(|pod| !pod.metadata.deleting).find_map(|pod| pod.problem())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(status: Value) -> PodShape {
        serde_json::from_value(json!({
            "metadata": {"name": "web-7d-x", "namespace": "shop", "labels": {"pod-template-hash": "7d"}, "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d", "controller": true,
                    "uid": "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d"}]},
            "status": status}))
        .unwrap()
    }

    #[test]
    fn a_pod_belongs_to_the_deployment_of_its_replica_set() {
        let pod = pod(json!({}));
        let (kind, key) = pod.workload().unwrap();
        assert_eq!((kind, key.to_string().as_str()), ("Deployment", "shop/web"));
    }

    #[test]
    fn the_problem_of_a_pod_is_that_of_its_first_container_that_cannot_run() {
        let waiting = |reason: &str| json!({"name": "main", "state": {"waiting": {"reason": reason, "message": "no such image"}}});
        let problem = pod(json!({"containerStatuses": [waiting("ImagePullBackOff")]})).problem();
        assert_eq!(problem.as_deref(), Some("ImagePullBackOff: no such image"));
        assert_eq!(pod(json!({"containerStatuses": [waiting("ContainerCreating")]})).problem(), None);
        let mut crashed = waiting("CrashLoopBackOff");
        crashed["lastState"] = json!({"terminated": {"message": "the data is damaged\n", "exitCode": 1}});
        let problem = pod(json!({"containerStatuses": [crashed]})).problem();
        assert_eq!(problem.as_deref(), Some("CrashLoopBackOff: the data is damaged"));
        assert_eq!(
            pod(json!({"containerStatuses": [{"name": "main", "state": {"running": {}}}]})).problem(),
            None
        );
    }

    #[test]
    fn the_problem_of_an_unscheduled_pod_is_the_message_of_the_scheduler() {
        let status = json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]});
        assert_eq!(pod(status).problem().as_deref(), Some("Unschedulable: 0/3 nodes"));
    }

    #[test]
    fn a_long_message_is_cut_after_a_whole_word_with_an_ellipsis() {
        let fits = "a".repeat(LONGEST_QUOTE);
        assert_eq!(quoted(&fits), fits);
        let at_the_limit = format!("{} {} more", "a".repeat(LONGEST_QUOTE - 6), "bbbbb");
        assert_eq!(quoted(&at_the_limit), format!("{} bbbbb …", "a".repeat(LONGEST_QUOTE - 6)));
        let in_a_path = format!("{} /var/lib/data/initialising", "delete the file".repeat(13));
        assert_eq!(quoted(&in_a_path), format!("{} …", "delete the file".repeat(13)));
        let without_spaces = "ä".repeat(LONGEST_QUOTE);
        assert_eq!(quoted(&without_spaces), format!("{} …", "ä".repeat(LONGEST_QUOTE / 2)));
    }
}
