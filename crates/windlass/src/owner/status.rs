//! The status that every kind has: how far the plan has come, and what holds it up.

use std::fmt::Write as _;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windlass_graph::{Outcome, Report};
use windlass_runtime::object::conditions::{self, Fact, Truth};

use crate::error::{NodeError, Reason};
use crate::names::status as field;
use crate::plan::Wait;
use crate::plan::owner::complete_generation;

/// The standard fields of a status. The status type of a kind flattens them:
///
/// ```
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
/// #[serde(rename_all = "camelCase")]
/// struct ShopStatus {
///     #[serde(flatten)]
///     standard: windlass::Status,
///     ready_replicas: Option<i32>,
/// }
/// ```
///
/// | condition | true when |
/// | --- | --- |
/// | `Ready` | every node of the plan is ready |
/// | `Progressing` | reconciliation goes on and needs no help |
/// | `Failed` | a node needs help; reason and message say why |
/// | `Degraded` | a change was held back for safety; present only while true |
/// | `Reconciling`, `Stalled` | what tools that wait by kstatus read: `Progressing`, and `Failed` without hope; present only while true |
/// | `Paused` | the owner is [paused](crate::names::ask::PAUSED): observed, not written; present only while true |
/// | `Advice` | something works and should be changed, as the plan [advises](crate::Plan::advise); present only while true |
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Generation of the spec that the status was computed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Last generation of the spec that was applied completely, with nothing left of an older one. Absent
    /// while that is the observed generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_generation: Option<i64>,
    /// Conditions of the object: `Ready`, `Progressing` and `Failed`; and `Reconciling`, `Stalled`,
    /// `Degraded`, `Paused` or `Advice` while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Objects that were generated once and must not be generated again, such as Secrets with random content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub generated: Vec<String>,
}

/// The names of the standard conditions.
pub mod condition {
    /// Every node of the plan is ready.
    pub const READY: &str = "Ready";
    /// The plan is making progress without help.
    pub const PROGRESSING: &str = "Progressing";
    /// A node needs help.
    pub const FAILED: &str = "Failed";
    /// The word of kstatus for [`PROGRESSING`]: present only while true.
    pub const RECONCILING: &str = "Reconciling";
    /// The word of kstatus for a failure that does not go away by itself: present only while true.
    pub const STALLED: &str = "Stalled";
    /// The owner is observed, and not written: present only while true.
    pub const PAUSED: &str = "Paused";
    /// A change was held back for safety.
    pub const DEGRADED: &str = "Degraded";
    /// A setting works, but should be changed.
    pub const ADVICE: &str = "Advice";
}

/// The state of an owner, as its conditions report it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) ready: bool,
    pub(crate) progressing: bool,
    pub(crate) failed: bool,
    pub(crate) reason: Reason,
    pub(crate) message: String,
    pub(crate) degraded: Option<(Reason, String)>,
}

impl Verdict {
    /// Returns the verdict of an owner that is neither ready nor progressing.
    pub(crate) fn stopped(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            ready: false,
            progressing: false,
            failed: true,
            reason,
            message: message.into(),
            degraded: None,
        }
    }

    /// Returns whether the owner needs help and does not progress without it.
    pub(crate) fn is_stalled(&self) -> bool {
        self.failed && !self.progressing
    }

    /// Returns the verdict of an owner that waits for something else first.
    pub(crate) fn waiting(message: impl Into<String>) -> Self {
        Self {
            ready: false,
            progressing: true,
            failed: false,
            reason: Reason::Waiting,
            message: message.into(),
            degraded: None,
        }
    }

    /// Returns the verdict of an owner that is being deleted, and waits for something else first.
    pub(crate) fn going(message: impl Into<String>) -> Self {
        Self {
            ready: false,
            progressing: true,
            failed: false,
            reason: Reason::Deleting,
            message: message.into(),
            degraded: None,
        }
    }

    /// Adds the objects that have left the plan and stay until everything in it is ready.
    pub(crate) fn hold(&mut self, objects: &[String]) {
        const NAMED: usize = 3;
        let mut names = objects[..objects.len().min(NAMED)].join(", ");
        if objects.len() > NAMED {
            // Writing to a string cannot fail.
            let _ = write!(names, " and {} more", objects.len() - NAMED);
        }
        let (are, have, them) = if objects.len() > 1 { ("are", "have", "them") } else { ("is", "has", "it") };
        let _ = match self.reason {
            // The server may refuse two users of one resource: a port, a name, a share of a quota.
            Reason::Invalid | Reason::Conflict | Reason::Forbidden => write!(
                self.message,
                "; {names} {have} left the plan and may be in its way: if so, delete {them}"
            ),
            _ => write!(self.message, "; {names} {are} deleted when everything else is ready"),
        };
    }

    /// Returns the verdict of a run of a plan.
    pub(crate) fn of(report: &Report<NodeError, Wait>) -> Self {
        Self::from_report(report, "waiting for", Reason::Ready)
    }

    /// Returns the verdict of a teardown of a plan.
    pub(crate) fn of_teardown(report: &Report<NodeError, Wait>) -> Self {
        let mut verdict = Self::from_report(report, "deleting, waiting for", Reason::Deleting);
        verdict.ready = false;
        verdict.progressing = !verdict.failed;
        if !verdict.failed {
            verdict.reason = Reason::Deleting;
        }
        verdict
    }

    fn from_report(report: &Report<NodeError, Wait>, waiting_for: &str, done: Reason) -> Self {
        let failures: Vec<_> = report.failures().collect();
        let waiting: Vec<_> = report
            .nodes()
            .filter_map(|node| match node.outcome() {
                Outcome::Waiting(wait) => Some((node.id(), wait)),
                _ => None,
            })
            .collect();
        if let Some((id, failure)) = failures.first() {
            let mut message = format!("{id}: {failure}");
            more(&mut message, failures.len(), "failed");
            let (reason, transient) = match failure.error() {
                Some(error) => (error.reason, error.class != windlass_runtime::controller::Class::Terminal),
                None => (Reason::Failed, true),
            };
            // An error that goes away by itself needs no help: a conflict, a busy server, a pause.
            let paused = reason == Reason::Paused;
            let passing =
                transient && matches!(reason, Reason::Conflict | Reason::Unavailable | Reason::Waiting);
            return Self {
                ready: false,
                progressing: transient && !paused,
                failed: !passing && !paused,
                reason,
                message,
                degraded: None,
            };
        }
        if let Some((id, wait)) = waiting.first() {
            let mut message = format!("{waiting_for} {id}: {wait}");
            more(&mut message, waiting.len(), "waiting");
            return Self {
                ready: false,
                progressing: true,
                failed: false,
                reason: wait.reason,
                message,
                degraded: None,
            };
        }
        let summary = report.summary();
        let ready = summary.is_ready();
        Self {
            ready,
            progressing: !ready,
            failed: false,
            reason: done,
            message: summary.to_string(),
            degraded: None,
        }
    }
}

fn more(message: &mut String, all: usize, what: &str) {
    if all > 1 {
        // Writing to a string cannot fail.
        let _ = write!(message, " (and {} more {what})", all - 1);
    }
}

/// The result of a pass: everything that the status of an owner is made of.
pub(crate) struct PassReport {
    pub(crate) verdict: Verdict,
    /// True if the plan was complete, and no object of an older plan is left.
    pub(crate) complete: bool,
    /// The objects that were generated for the owner, now or earlier.
    pub(crate) generated: Vec<String>,
    /// The kind's own fields.
    pub(crate) own: Option<Value>,
    /// The advice of the plan.
    pub(crate) advice: Vec<String>,
    /// Set if the owner was paused during the pass.
    pub(crate) paused: Option<PausedPass>,
}

/// A pass that wrote nothing, because the owner is paused.
pub(crate) struct PausedPass {
    /// The message of the condition.
    pub(crate) message: String,
    /// True if objects differ from the plan, so that the status is about an earlier generation.
    pub(crate) differs: bool,
}

/// Returns the status to write for a pass, given the present status.
pub(crate) fn next(present: &Value, generation: i64, report: PassReport, now: Timestamp) -> Value {
    let PassReport { verdict, complete, generated, own, advice, paused } = report;
    let own = advised(own, &advice);
    let mut conditions = conditions_of(present);
    // A spec that is not applied because the owner is paused is not observed either.
    let observed = match &paused {
        Some(PausedPass { differs: true, .. }) => present.get(field::OBSERVED).and_then(Value::as_i64),
        _ => Some(generation),
    };
    let completed = if complete { Some(generation) } else { complete_generation(present) };
    let generation = observed.unwrap_or(generation);
    let fact = |kind: &str, truth: bool| {
        Fact::new(kind, Truth::from(truth), verdict.reason.as_str()).generation(generation)
    };
    let mut facts = vec![
        fact(condition::READY, verdict.ready).message(verdict.message.clone()),
        fact(condition::PROGRESSING, verdict.progressing),
        fact(condition::FAILED, verdict.failed),
    ];
    let verdict_message = || (verdict.reason, verdict.message.clone());
    let while_true = [
        (condition::RECONCILING, verdict.progressing.then(verdict_message)),
        (condition::STALLED, verdict.is_stalled().then(verdict_message)),
        (condition::DEGRADED, verdict.degraded.clone()),
        (condition::PAUSED, paused.map(|paused| (Reason::Paused, paused.message))),
    ];
    for (kind, reason) in while_true {
        match reason {
            Some((reason, message)) => {
                facts.push(Fact::new(kind, true, reason.as_str()).message(message).generation(generation));
            }
            None => {
                conditions::remove(&mut conditions, kind);
            }
        }
    }
    let mut status = match own {
        Some(Value::Object(own)) => own,
        _ => Map::new(),
    };
    let more = status.remove("conditions").and_then(|own| serde_json::from_value::<Vec<Own>>(own).ok());
    let more = more.unwrap_or_default();
    if !more.iter().any(|own| own.type_ == condition::ADVICE) {
        conditions::remove(&mut conditions, condition::ADVICE);
    }
    for own in more {
        let truth = match own.status {
            Truths::True => Truth::True,
            Truths::False => Truth::False,
            Truths::Unknown => Truth::Unknown,
        };
        let reason = own.reason.unwrap_or_else(|| verdict.reason.as_str().to_owned());
        let fact = Fact::new(own.type_, truth, reason).generation(generation);
        facts.push(fact.message(own.message.unwrap_or_default()));
    }
    for fact in facts {
        conditions::set(&mut conditions, fact, now);
    }
    status.retain(|_, value| !value.is_null());
    if let Some(observed) = observed {
        status.insert(field::OBSERVED.into(), observed.into());
        let completed = completed.unwrap_or(0);
        if completed != observed {
            status.insert(field::COMPLETE.into(), completed.into());
        }
    }
    status.insert("conditions".into(), json!(conditions));
    if !generated.is_empty() {
        status.insert(field::GENERATED.into(), json!(generated));
    }
    Value::Object(status)
}

/// Returns the kind's own part of a status, with the advice of its plan.
fn advised(own: Option<Value>, advice: &[String]) -> Option<Value> {
    if advice.is_empty() {
        return own;
    }
    let mut own = own.unwrap_or_else(|| json!({}));
    let condition = json!({"type": condition::ADVICE, "status": "True", "reason": condition::ADVICE, "message": advice.join("; ")});
    match own.get_mut("conditions").and_then(Value::as_array_mut) {
        Some(conditions) => conditions.push(condition),
        None => own["conditions"] = json!([condition]),
    }
    Some(own)
}

/// A condition that the kind adds itself.
#[derive(Deserialize)]
struct Own {
    #[serde(rename = "type")]
    type_: String,
    status: Truths,
    reason: Option<String>,
    message: Option<String>,
}

#[derive(Deserialize)]
enum Truths {
    True,
    False,
    Unknown,
}

/// Returns whether writing `status` would change anything. Fields of others do not count; fields that we have
/// applied before (`ours`) and no longer set do.
pub(crate) fn differs(present: &Value, status: &Value, ours: &[String]) -> bool {
    let Some(status) = status.as_object() else { return true };
    let dropped = ours.iter().any(|field| present.get(field).is_some() && !status.contains_key(field));
    let changed = |(name, value): (&String, &Value)| match present.get(name) {
        Some(present) if name == field::GENERATED => !names_the_same(present, value),
        present => present != Some(value),
    };
    dropped || status.iter().any(changed)
}

/// Returns whether two lists of generated objects are the same. Older versions wrote names without kinds:
/// this difference alone is not worth a write.
fn names_the_same(present: &Value, next: &Value) -> bool {
    let entries = |list: &Value| -> Vec<String> {
        let entries = list.as_array().into_iter().flatten();
        entries.filter_map(|entry| entry.as_str().map(str::to_owned)).collect()
    };
    let (present, next) = (entries(present), entries(next));
    let is_of = |entry: &str, bare: &str| entry.split_once('/').is_some_and(|(_, name)| name == bare);
    let known = |entry: &String| present.iter().any(|old| old == entry || is_of(entry, old));
    let kept = |old: &String| next.iter().any(|entry| entry == old || is_of(entry, old));
    next.iter().all(known) && present.iter().all(kept)
}

fn conditions_of(present: &Value) -> Vec<Condition> {
    present
        .get("conditions")
        .and_then(|conditions| serde_json::from_value(conditions.clone()).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    type NodeOutcome = Outcome<NodeError, Wait>;

    fn report(steps: Vec<(&'static str, NodeOutcome)>) -> Report<NodeError, Wait> {
        Report::from_steps(steps.into_iter().map(|(id, outcome)| (id, outcome, Some(Duration::ZERO))))
            .unwrap()
    }

    fn failed(error: NodeError) -> NodeOutcome {
        Outcome::from(Err(error))
    }

    fn pass(verdict: &Verdict, own: Option<Value>) -> PassReport {
        let verdict = verdict.clone();
        PassReport { verdict, complete: true, generated: Vec::new(), own, advice: Vec::new(), paused: None }
    }

    /// Status and reason of a condition.
    fn text_of(status: &Value, kind: &str) -> Option<(String, String)> {
        crate::plan::owner::condition(status, kind)
    }

    #[test]
    fn a_field_that_we_no_longer_set_is_a_difference_and_a_field_of_others_is_none() {
        let verdict = Verdict::of(&report(vec![("a", Outcome::Ready)]));
        let first = next(&Value::Null, 1, pass(&verdict, Some(json!({"phase": "Running"}))), now());
        let without = next(&first, 1, pass(&verdict, None), now());
        assert!(differs(&first, &without, &["phase".to_owned()]));
        assert!(!differs(&first, &without, &[]), "somebody else's phase stays");
    }

    #[test]
    fn generated_objects_that_only_gain_their_kind_are_no_difference() {
        let old = json!({"generated": ["key", "token"]});
        let differs = |generated: Value| differs(&old, &json!({"generated": generated}), &[]);
        assert!(!differs(json!(["Secret/key", "Secret/token"])));
        assert!(!differs(json!(["ConfigMap/key", "Secret/key", "token"])));
        assert!(differs(json!(["Secret/key"])), "one is lost");
        assert!(differs(json!(["Secret/key", "Secret/more", "Secret/token"])), "one is new");
    }

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn the_message_names_the_first_node_that_blocks_and_why() {
        let verdict = Verdict::of(&report(vec![
            ("ConfigMap a", Outcome::Ready),
            (
                "Deployment b",
                Outcome::Waiting(Wait::new("0 of 1 replicas ready (ImagePullBackOff: no such image)")),
            ),
            ("Deployment c", Outcome::Waiting(Wait::new("0 of 2 replicas ready"))),
            ("Service d", Outcome::Skipped { because_of: "Deployment b".into() }),
        ]));
        let message = "waiting for Deployment b: 0 of 1 replicas ready (ImagePullBackOff: no such image) (and 1 more waiting)";
        assert_eq!(verdict.message, message);
        assert_eq!((verdict.ready, verdict.progressing, verdict.failed), (false, true, false));
    }

    #[test]
    fn a_failure_comes_before_a_wait_and_keeps_its_reason() {
        let verdict = Verdict::of(&report(vec![
            ("a", Outcome::Waiting(Wait::new("later"))),
            ("b", failed(NodeError::terminal(Reason::Invalid, "spec.x: wrong"))),
        ]));
        assert_eq!((verdict.reason, verdict.message.as_str()), (Reason::Invalid, "b: spec.x: wrong"));
        assert_eq!((verdict.ready, verdict.progressing, verdict.failed), (false, false, true));
        let verdict =
            |reason| Verdict::of(&report(vec![("b", failed(NodeError::transient(reason, "down")))]));
        let (busy, step) = (verdict(Reason::Unavailable), verdict(Reason::Failed));
        assert!(busy.progressing && !busy.failed, "it goes away by itself");
        assert!(step.progressing && step.failed, "it is tried again, but somebody should know");
    }

    #[test]
    fn seam_low_an_owner_whose_plan_cannot_be_drawn_is_stalled() {
        assert!(Verdict::stopped(Reason::DrawFailed, "spec.x: wrong").is_stalled());
        assert!(!Verdict::waiting("for a Secret").is_stalled());
        assert!(!Verdict::of(&report(vec![("a", Outcome::Ready)])).is_stalled());
    }

    #[test]
    fn a_verdict_that_has_not_changed_writes_nothing() {
        let verdict = Verdict::of(&report(vec![("a", Outcome::Ready)]));
        let first =
            next(&Value::Null, 3, pass(&verdict, Some(json!({"phase": "Running", "none": null}))), now());
        assert!(differs(&Value::Null, &first, &[]));
        assert_eq!(first["observedGeneration"], 3);
        assert_eq!(first["phase"], "Running");
        let own = Some(json!({"phase": "Running"}));
        let later = next(&first, 3, pass(&verdict, own), now() + Duration::from_mins(1));
        assert!(!differs(&first, &later, &[]), "{first} {later}");
        let mut foreign = first.clone();
        foreign["added"] = "by others".into();
        assert!(!differs(&foreign, &later, &[]));
    }

    #[test]
    fn a_generation_is_observed_by_every_pass_and_complete_when_all_of_it_is_done() {
        let verdict = Verdict::of(&report(vec![("a", Outcome::Waiting(Wait::new("x")))]));
        let unfinished = || PassReport { complete: false, ..pass(&verdict, None) };
        let generations = |status: &Value| (status[field::OBSERVED].clone(), status[field::COMPLETE].clone());
        let first = next(&Value::Null, 1, unfinished(), now());
        assert_eq!(generations(&first), (json!(1), json!(0)), "never complete");
        // An older version wrote only the generation that was complete.
        let second = next(&json!({"observedGeneration": 2}), 3, unfinished(), now());
        assert_eq!(generations(&second), (json!(3), json!(2)));
        assert_eq!(second["conditions"][0]["observedGeneration"], 3);
        let third = next(&second, 4, unfinished(), now());
        assert_eq!(generations(&third), (json!(4), json!(2)));
        let done = next(&third, 4, pass(&verdict, None), now());
        assert_eq!(generations(&done), (json!(4), Value::Null));
    }

    #[test]
    fn a_paused_pass_that_would_write_speaks_of_the_generation_before() {
        let verdict = Verdict::of(&report(vec![("a", Outcome::Ready)]));
        let paused = |differs| {
            let paused = PausedPass { message: "paused".into(), differs };
            PassReport { complete: false, paused: Some(paused), ..pass(&verdict, None) }
        };
        let present = json!({"observedGeneration": 2});
        let held = next(&present, 3, paused(true), now());
        assert_eq!(
            (&held["observedGeneration"], &held["conditions"][0]["observedGeneration"]),
            (&json!(2), &json!(2))
        );
        assert_eq!(text_of(&held, condition::PAUSED), Some(("True".into(), "Paused".into())));
        assert_eq!(next(&present, 3, paused(false), now())["observedGeneration"], 3);
    }

    #[test]
    fn degraded_goes_when_its_reason_is_gone() {
        let mut verdict = Verdict::of(&report(vec![("a", Outcome::Ready)]));
        verdict.degraded = Some((Reason::PruneHeldBack, "2 of 3".into()));
        let held = next(&Value::Null, 1, pass(&verdict, None), now());
        assert_eq!(text_of(&held, condition::DEGRADED).unwrap().1, "PruneHeldBack");
        verdict.degraded = None;
        assert_eq!(text_of(&next(&held, 1, pass(&verdict, None), now()), condition::DEGRADED), None);
    }

    #[test]
    fn advice_is_there_beside_a_kinds_own_conditions_as_long_as_it_is_given() {
        let verdict = Verdict::of(&report(vec![("a", Outcome::Ready)]));
        let advice = ["take another key".to_owned()];
        for own in [None, Some(json!({"conditions": [{"type": "InProgress", "status": "False"}]}))] {
            let advised = || PassReport { advice: advice.to_vec(), ..pass(&verdict, own.clone()) };
            let first = next(&Value::Null, 1, advised(), now());
            assert_eq!(text_of(&first, condition::ADVICE), Some(("True".into(), "Advice".into())), "{first}");
            assert_eq!(text_of(&first, "InProgress").is_some(), own.is_some());
            assert!(!differs(&first, &next(&first, 1, advised(), now()), &[]));
            let taken = next(&first, 1, pass(&verdict, own), now());
            assert_eq!(text_of(&taken, condition::ADVICE), None);
        }
    }

    #[test]
    fn a_kind_has_conditions_of_its_own_beside_the_standard_ones() {
        let verdict = Verdict::of(&report(vec![("a", Outcome::Ready)]));
        let own = json!({"conditions": [{"type": "InProgress", "status": "False"}]});
        let first = next(&Value::Null, 1, pass(&verdict, Some(own.clone())), now());
        assert_eq!(text_of(&first, "InProgress"), Some(("False".into(), "Ready".into())));
        assert!(text_of(&first, condition::READY).is_some());
        let later = next(&first, 1, pass(&verdict, Some(own)), now() + Duration::from_mins(1));
        assert!(!differs(&first, &later, &[]));
    }
}
