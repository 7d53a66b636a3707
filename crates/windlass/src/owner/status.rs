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
use crate::plan::Wait;

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
/// | `Advice` | something works and should be changed, as the plan [advises](crate::Plan::advise); present only while true |
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Generation of the spec that was last applied completely, with nothing left of an older plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the object: `Ready`, `Progressing` and `Failed`, and `Degraded` or `Advice` while they
    /// are true.
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
    /// Something is on its way that needs nobody's help.
    pub const PROGRESSING: &str = "Progressing";
    /// Something needs help.
    pub const FAILED: &str = "Failed";
    /// Something was held back for safety.
    pub const DEGRADED: &str = "Degraded";
    /// Something works, and should be otherwise.
    pub const ADVICE: &str = "Advice";
}

/// What is to be said of an owner.
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
    /// Of something that is neither ready nor on its way.
    pub(crate) fn stopped(reason: Reason, message: impl Into<String>) -> Self {
        let failed = reason != Reason::Paused;
        Self { ready: false, progressing: false, failed, reason, message: message.into(), degraded: None }
    }

    /// Of an owner that somebody else has to see to first.
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

    /// Of an owner that goes, but not before something else has.
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

    /// Of a run of a plan.
    pub(crate) fn of(report: &Report<NodeError, Wait>) -> Self {
        Self::told(report, "waiting for", Reason::Ready)
    }

    /// Of a plan that is taken down.
    pub(crate) fn of_teardown(report: &Report<NodeError, Wait>) -> Self {
        let mut verdict = Self::told(report, "deleting, waiting for", Reason::Deleting);
        verdict.ready = false;
        verdict.progressing = !verdict.failed;
        if !verdict.failed {
            verdict.reason = Reason::Deleting;
        }
        verdict
    }

    fn told(report: &Report<NodeError, Wait>, waiting_for: &str, done: Reason) -> Self {
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
            // What goes away by itself needs nobody's help: a conflict, a busy server.
            let passing =
                transient && matches!(reason, Reason::Conflict | Reason::Unavailable | Reason::Waiting);
            return Self {
                ready: false,
                progressing: transient,
                failed: !passing,
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

/// What a pass came to: everything that the status of an owner is made of.
pub(crate) struct PassReport {
    pub(crate) verdict: Verdict,
    /// The plan was complete, and nothing of an older plan is left.
    pub(crate) complete: bool,
    /// What was generated for the owner, now or ever.
    pub(crate) generated: Vec<String>,
    /// The kind's own fields.
    pub(crate) own: Option<Value>,
    /// What the plan advises.
    pub(crate) advice: Vec<String>,
}

/// The status to be written for a pass, given the present status.
pub(crate) fn next(present: &Value, generation: i64, report: PassReport, now: Timestamp) -> Value {
    let PassReport { verdict, complete, generated, own, advice } = report;
    let own = advised(own, &advice);
    let mut conditions = conditions_of(present);
    let fact = |kind: &str, truth: bool| {
        Fact::new(kind, Truth::from(truth), verdict.reason.as_str()).generation(generation)
    };
    let mut facts = vec![
        fact(condition::READY, verdict.ready).message(verdict.message.clone()),
        fact(condition::PROGRESSING, verdict.progressing),
        fact(condition::FAILED, verdict.failed),
    ];
    match &verdict.degraded {
        Some((reason, message)) => facts.push(
            Fact::new(condition::DEGRADED, true, reason.as_str())
                .message(message.clone())
                .generation(generation),
        ),
        None => {
            conditions::remove(&mut conditions, condition::DEGRADED);
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
    let observed =
        if complete { Some(generation) } else { present.get("observedGeneration").and_then(Value::as_i64) };
    if let Some(observed) = observed {
        status.insert("observedGeneration".into(), observed.into());
    }
    status.insert("conditions".into(), json!(conditions));
    if !generated.is_empty() {
        status.insert(GENERATED.into(), json!(generated));
    }
    Value::Object(status)
}

/// The kind's own part of a status, with what its plan advises.
fn advised(own: Option<Value>, advice: &[String]) -> Option<Value> {
    if advice.is_empty() {
        return own;
    }
    let mut own = own.unwrap_or_else(|| json!({}));
    let said = json!({"type": condition::ADVICE, "status": "True", "reason": condition::ADVICE, "message": advice.join("; ")});
    match own.get_mut("conditions").and_then(Value::as_array_mut) {
        Some(conditions) => conditions.push(said),
        None => own["conditions"] = json!([said]),
    }
    Some(own)
}

/// A condition of a kind's own.
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

/// Returns whether writing `status` would change anything. Fields of others do not count; fields that we have applied before (`ours`)
/// and no longer set do.
pub(crate) fn differs(present: &Value, status: &Value, ours: &[String]) -> bool {
    let Some(status) = status.as_object() else { return true };
    let dropped = ours.iter().any(|field| present.get(field).is_some() && !status.contains_key(field));
    let changed = |(field, value): (&String, &Value)| match present.get(field) {
        Some(present) if field == GENERATED => !names_the_same(present, value),
        present => present != Some(value),
    };
    dropped || status.iter().any(changed)
}

const GENERATED: &str = "generated";

/// Returns whether two lists of generated objects are the same. Older versions wrote names without kinds: that alone is worth no write.
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

    type Told = Outcome<NodeError, Wait>;

    fn report(steps: Vec<(&'static str, Told)>) -> Report<NodeError, Wait> {
        Report::from_steps(steps.into_iter().map(|(id, outcome)| (id, outcome, Some(Duration::ZERO))))
            .unwrap()
    }

    fn failed(error: NodeError) -> Told {
        Outcome::from(Err(error))
    }

    fn pass(verdict: &Verdict, own: Option<Value>) -> PassReport {
        let verdict = verdict.clone();
        PassReport { verdict, complete: true, generated: Vec::new(), own, advice: Vec::new() }
    }

    /// Status and reason of a condition.
    fn said(status: &Value, kind: &str) -> Option<(String, String)> {
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
    fn said_again_nothing_is_written() {
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
    fn a_generation_counts_as_observed_when_all_of_it_is_done() {
        let verdict = Verdict::of(&report(vec![("a", Outcome::Waiting(Wait::new("x")))]));
        let status = next(
            &json!({"observedGeneration": 2}),
            3,
            PassReport { complete: false, ..pass(&verdict, None) },
            now(),
        );
        assert_eq!(status["observedGeneration"], 2);
        assert_eq!(status["conditions"][0]["observedGeneration"], 3);
    }

    #[test]
    fn degraded_goes_when_its_reason_is_gone() {
        let mut verdict = Verdict::of(&report(vec![("a", Outcome::Ready)]));
        verdict.degraded = Some((Reason::PruneHeldBack, "2 of 3".into()));
        let held = next(&Value::Null, 1, pass(&verdict, None), now());
        assert_eq!(said(&held, condition::DEGRADED).unwrap().1, "PruneHeldBack");
        verdict.degraded = None;
        assert_eq!(said(&next(&held, 1, pass(&verdict, None), now()), condition::DEGRADED), None);
    }

    #[test]
    fn advice_is_there_beside_a_kinds_own_conditions_as_long_as_it_is_given() {
        let verdict = Verdict::of(&report(vec![("a", Outcome::Ready)]));
        let advice = ["take another key".to_owned()];
        for own in [None, Some(json!({"conditions": [{"type": "InProgress", "status": "False"}]}))] {
            let advised = || PassReport { advice: advice.to_vec(), ..pass(&verdict, own.clone()) };
            let first = next(&Value::Null, 1, advised(), now());
            assert_eq!(said(&first, condition::ADVICE), Some(("True".into(), "Advice".into())), "{first}");
            assert_eq!(said(&first, "InProgress").is_some(), own.is_some());
            assert!(!differs(&first, &next(&first, 1, advised(), now()), &[]));
            let taken = next(&first, 1, pass(&verdict, own), now());
            assert_eq!(said(&taken, condition::ADVICE), None);
        }
    }

    #[test]
    fn a_kind_has_conditions_of_its_own_beside_the_standard_ones() {
        let verdict = Verdict::of(&report(vec![("a", Outcome::Ready)]));
        let own = json!({"conditions": [{"type": "InProgress", "status": "False"}]});
        let first = next(&Value::Null, 1, pass(&verdict, Some(own.clone())), now());
        assert_eq!(said(&first, "InProgress"), Some(("False".into(), "Ready".into())));
        assert!(said(&first, condition::READY).is_some());
        let later = next(&first, 1, pass(&verdict, Some(own)), now() + Duration::from_mins(1));
        assert!(!differs(&first, &later, &[]));
    }
}
