//! The answer of an actor: its state, a finding for each subject, and the effects that it asks for.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde::Serialize;
use windlass_runtime::meta::{Meta, ResourceVersion, Uid};
use windlass_runtime::resource::ResourceType;

use super::snapshot::Depth;
use crate::live::Kind;

/// The answer of an actor that was asked.
///
/// ```
/// use windlass::{Decision, Finding};
///
/// let decision: Decision<String> = Decision::waiting("member 2 replicates")
///     .finding(Finding::held("member 2", "one member at a time", "it has 70 of 100 keys"))
///     .finding(Finding::done("member 1"));
/// assert!(!decision.is_idle());
/// ```
#[must_use = "return it from Actor::decide"]
#[derive(Clone, Debug, PartialEq)]
pub struct Decision<E> {
    pub(super) state: DecisionState,
    pub(super) next: Next,
    pub(super) findings: Vec<Finding>,
    pub(super) effects: Vec<Effect<E>>,
    pub(super) depth: Depth,
}

/// The state of an actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionState {
    /// There is nothing to do.
    Idle,
    /// The actor moves something, and says what.
    Working(String),
    /// The actor would move something and must not yet.
    Waiting {
        /// The reason for the wait.
        why: String,
        /// The time at which the actor wants to be asked again, if no change is expected to wake the owner.
        until: Option<Timestamp>,
    },
    /// The actor does not do what the owner's spec asks for.
    Refused {
        /// The reason for the refusal.
        why: String,
        /// The remedy: what the user can do.
        remedy: String,
    },
}

impl DecisionState {
    /// Returns the state in one word, for metrics and the status.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::Working(_) => "Working",
            Self::Waiting { .. } => "Waiting",
            Self::Refused { .. } => "Refused",
        }
    }

    /// Returns the reason, with the remedy if there is one; empty if the actor is idle.
    pub fn message(&self) -> String {
        match self {
            Self::Idle => String::new(),
            Self::Working(why) | Self::Waiting { why, .. } => why.clone(),
            Self::Refused { why, remedy } => format!("{why}: {remedy}"),
        }
    }
}

/// The fate of the actors behind one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// They are asked.
    Continue,
    /// They are not asked in this pass, and their fields of the intent stay as they are.
    Stop,
}

/// The finding of an actor about one subject: a member, a pod, a field of the spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The subject, such as `pod db-2` or `spec.image`.
    pub subject: String,
    /// The result for the subject.
    pub result: FindingResult,
}

/// The result of a decision for one subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FindingResult {
    /// The actor moves the subject now, in these words.
    Acted(String),
    /// The subject is as it should be.
    Done,
    /// A rule holds the subject.
    Held {
        /// The name of the rule: a stable, short text, for the status and metrics.
        rule: &'static str,
        /// The reason, with its numbers.
        why: String,
    },
}

impl Finding {
    /// Returns the finding that a subject is moved now.
    pub fn acted(subject: impl Into<String>, what: impl Into<String>) -> Self {
        Self { subject: subject.into(), result: FindingResult::Acted(what.into()) }
    }

    /// Returns the finding that a subject is as it should be.
    pub fn done(subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), result: FindingResult::Done }
    }

    /// Returns the finding that a rule holds a subject, for a reason.
    pub fn held(subject: impl Into<String>, rule: &'static str, why: impl Into<String>) -> Self {
        Self { subject: subject.into(), result: FindingResult::Held { rule, why: why.into() } }
    }
}

/// An effect that an actor asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect<E> {
    pub(super) action: Action<E>,
    /// The objects of the plan that must be applied before.
    pub(super) after: Vec<(ResourceType, String)>,
}

/// The action of an effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Action<E> {
    /// A call to the software, which [`perform`](super::Director::perform) makes.
    Software(E),
    /// A request about an object of the cluster.
    Object(ObjectAction),
}

impl<E: fmt::Debug> fmt::Display for Action<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Software(effect) => write!(f, "{effect:?}"),
            Self::Object(action) => action.fmt(f),
        }
    }
}

/// A request about an object of the cluster that is no apply. Each carries the uid that the decision was made
/// from; a deletion also carries the resource version, and fails if the object has changed since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectAction {
    pub(super) verb: ObjectVerb,
    pub(super) resource: ResourceType,
    pub(super) name: String,
    pub(super) uid: Uid,
    pub(super) version: ResourceVersion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectVerb {
    Delete,
    Evict,
}

impl fmt::Display for ObjectAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.verb {
            ObjectVerb::Delete => "delete",
            ObjectVerb::Evict => "evict",
        };
        write!(f, "{verb} {} {}", self.resource.kind, self.name)
    }
}

impl<E> From<E> for Effect<E> {
    fn from(effect: E) -> Self {
        Self { action: Action::Software(effect), after: Vec::new() }
    }
}

impl<E> Effect<E> {
    /// Returns the deletion of an object as it was read: nothing is deleted if it has changed since. The
    /// right has to be declared by [`Kinds::deletes`](crate::Kinds::deletes).
    pub fn delete<K: Kind>(object: &Meta) -> Self {
        Self::object(ObjectVerb::Delete, ResourceType::of::<K>(), object)
    }

    /// Returns the eviction of a pod, which respects disruption budgets. The right has to be declared by
    /// [`Kinds::evicts`](crate::Kinds::evicts).
    pub fn evict(pod: &Meta) -> Self {
        Self::object(ObjectVerb::Evict, ResourceType::of::<Pod>(), pod)
    }

    fn object(verb: ObjectVerb, resource: ResourceType, object: &Meta) -> Self {
        let (name, uid) = (object.name().to_owned(), object.uid);
        let version = object.resource_version.clone();
        Self {
            action: Action::Object(ObjectAction { verb, resource, name, uid, version }),
            after: Vec::new(),
        }
    }

    /// Returns the action of the effect.
    pub fn action(&self) -> &Action<E> {
        &self.action
    }

    /// Lets the effect wait until a planned object is applied. It does not wait until the object is ready.
    #[must_use]
    pub fn after<K: Kind>(mut self, name: impl Into<String>) -> Self {
        self.after.push((ResourceType::of::<K>(), name.into()));
        self
    }
}

impl<E> Decision<E> {
    fn new(state: DecisionState, next: Next) -> Self {
        Self { state, next, findings: Vec::new(), effects: Vec::new(), depth: Depth::Health }
    }

    /// Returns the decision that there is nothing to do. The actors behind are asked.
    pub fn idle() -> Self {
        Self::new(DecisionState::Idle, Next::Continue)
    }

    /// Returns the decision that something is being moved. The actors behind are not asked.
    pub fn working(what: impl Into<String>) -> Self {
        Self::new(DecisionState::Working(what.into()), Next::Stop)
    }

    /// Returns the decision that something must not be moved yet. The actors behind are not asked.
    pub fn waiting(why: impl Into<String>) -> Self {
        Self::new(DecisionState::Waiting { why: why.into(), until: None }, Next::Stop)
    }

    /// Returns the decision that the spec asks for something that is not done. The actors behind are asked.
    pub fn refused(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        let state = DecisionState::Refused { why: why.into(), remedy: remedy.into() };
        Self::new(state, Next::Continue)
    }

    /// Sets the time at which a waiting actor wants to be asked again. Without it a change wakes the owner:
    /// of an object, or of the observation.
    pub fn until(mut self, at: Timestamp) -> Self {
        if let DecisionState::Waiting { until, .. } = &mut self.state {
            *until = Some(at);
        }
        self
    }

    /// Lets the actors behind be asked although this one works or waits.
    pub fn and_continue(self) -> Self {
        Self { next: Next::Continue, ..self }
    }

    /// Stops the pass here, although this actor is idle or refuses.
    pub fn and_stop(self) -> Self {
        Self { next: Next::Stop, ..self }
    }

    /// Adds a finding.
    pub fn finding(mut self, finding: Finding) -> Self {
        self.findings.push(finding);
        self
    }

    /// Adds several findings.
    pub fn findings(mut self, findings: impl IntoIterator<Item = Finding>) -> Self {
        self.findings.extend(findings);
        self
    }

    /// Adds an effect: a call to the software, or [`Effect::delete`] and its like. Effects of one actor run
    /// one after the other, and the first failure ends the list.
    pub fn effect(mut self, effect: impl Into<Effect<E>>) -> Self {
        self.effects.push(effect.into());
        self
    }

    /// Asks for a full observation: the next decision needs facts that a look at the health does not have.
    pub fn needs_full_observation(self) -> Self {
        Self { depth: Depth::Full, ..self }
    }

    /// Returns the state of the decision.
    pub fn state(&self) -> &DecisionState {
        &self.state
    }

    /// Returns whether there is nothing to do.
    pub fn is_idle(&self) -> bool {
        self.state == DecisionState::Idle
    }

    /// Returns whether the actors behind are asked.
    pub fn continues(&self) -> bool {
        self.next == Next::Continue
    }

    /// Returns the findings, for tests of decisions.
    pub fn all_findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the actions of the effects, for tests of decisions.
    pub fn actions(&self) -> impl Iterator<Item = &Action<E>> {
        self.effects.iter().map(|effect| &effect.action)
    }
}
