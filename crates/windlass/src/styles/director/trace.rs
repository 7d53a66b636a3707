//! The trace of a pass: which actors were asked, what each decided, and why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::decision::{DecisionState, Finding, FindingResult};

/// The number of subjects that the status names for one actor.
const SUBJECTS: usize = 32;

/// The decisions of one pass, in the order of the actors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// One entry for each actor.
    pub actors: Vec<ActorTrace>,
}

/// The decision of one actor in one pass.
#[derive(Clone, Debug, PartialEq)]
pub struct ActorTrace {
    /// The name of the actor.
    pub name: &'static str,
    /// The answer of the actor, or the reason why it was not asked.
    pub answer: Answer,
}

/// The answer of an actor.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The actor was asked.
    Decided {
        /// The state of the actor.
        state: DecisionState,
        /// The findings of the actor.
        findings: Vec<Finding>,
        /// The effects that it asked for, in words.
        effects: Vec<String>,
        /// The actor whose effects run in this pass, if that is another: then these wait for the next one.
        held_back_by: Option<&'static str>,
    },
    /// The actor was not asked, because this one stopped the pass.
    NotAsked(&'static str),
}

impl ActorTrace {
    /// Returns whether the actor was asked and has nothing to do.
    pub fn is_idle(&self) -> bool {
        matches!(self.answer, Answer::Decided { state: DecisionState::Idle, .. })
    }

    /// Returns the name of the state, for metrics and the status.
    pub fn state(&self) -> &'static str {
        match &self.answer {
            Answer::Decided { state, .. } => state.as_str(),
            Answer::NotAsked(_) => "NotAsked",
        }
    }

    /// Returns the rules that hold a subject, one for each finding.
    pub fn rules(&self) -> impl Iterator<Item = &'static str> {
        let findings = match &self.answer {
            Answer::Decided { findings, .. } => &findings[..],
            Answer::NotAsked(_) => &[],
        };
        findings.iter().filter_map(|finding| match finding.result {
            FindingResult::Held { rule, .. } => Some(rule),
            _ => None,
        })
    }

    /// Returns the effects that the actor asked for, in words.
    pub fn effects(&self) -> &[String] {
        match &self.answer {
            Answer::Decided { effects, .. } => effects,
            Answer::NotAsked(_) => &[],
        }
    }

    /// Returns the decision in one line, for logs and graphs.
    pub fn line(&self) -> String {
        match &self.answer {
            Answer::NotAsked(by) => format!("not asked: {by} stopped the pass"),
            Answer::Decided { state: DecisionState::Idle, .. } => "idle".to_owned(),
            Answer::Decided { state, .. } => {
                format!("{}: {}", state.as_str().to_lowercase(), state.message())
            }
        }
    }
}

/// The decision of one actor, as the status shows it: the names of rules and subjects, and no counters, so
/// that the status changes only with a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionStatus {
    /// Name of the actor that decided.
    pub actor: String,
    /// State of the actor: `Idle`, `Working`, `Waiting`, `Refused`, or `NotAsked` if an actor before it
    /// stopped the pass.
    pub state: String,
    /// Effects on the software or on objects that the actor has asked for in its last pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<String>,
    /// Rules that hold subjects back, with the subjects that each of them holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldStatus>,
}

/// The subjects that one rule holds back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldStatus {
    /// Name of the rule that holds the subjects.
    pub rule: String,
    /// Subjects that the rule holds, such as pods, at most 32 of them.
    pub subjects: Vec<String>,
    /// Number of further subjects that are held and not named here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<i32>,
}

impl Trace {
    /// Returns the actor whose effects run in this pass, if there is one.
    pub fn acting(&self) -> Option<&'static str> {
        self.actors.iter().find(|trace| !trace.effects().is_empty()).map(|trace| trace.name)
    }

    /// Returns the decisions as the status shows them. Idle actors without findings are left out.
    pub fn status(&self) -> Vec<DecisionStatus> {
        let shown = self.actors.iter().filter(|trace| !(trace.is_idle() && trace.rules().next().is_none()));
        shown.map(ActorTrace::status).collect()
    }
}

impl ActorTrace {
    fn status(&self) -> DecisionStatus {
        let (actor, state) = (self.name.to_owned(), self.state().to_owned());
        let Answer::Decided { findings, effects, .. } = &self.answer else {
            return DecisionStatus { actor, state, ..DecisionStatus::default() };
        };
        let mut held: Vec<HeldStatus> = Vec::new();
        for finding in findings {
            let FindingResult::Held { rule, .. } = &finding.result else { continue };
            let at = held.iter().position(|held| held.rule == **rule).unwrap_or_else(|| {
                held.push(HeldStatus { rule: (*rule).to_owned(), ..HeldStatus::default() });
                held.len() - 1
            });
            if held[at].subjects.len() < SUBJECTS {
                held[at].subjects.push(finding.subject.clone());
            } else {
                held[at].more = Some(held[at].more.unwrap_or(0).saturating_add(1));
            }
        }
        DecisionStatus { actor, state, effects: effects.clone(), held }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(findings: Vec<Finding>) -> ActorTrace {
        let state = DecisionState::Waiting { why: "one at a time".into(), until: None };
        let answer =
            Answer::Decided { state, findings, effects: vec!["Drain(2)".into()], held_back_by: None };
        ActorTrace { name: "roll", answer }
    }

    #[test]
    fn the_status_names_rules_and_subjects_and_counts_the_rest() {
        let held = |at: usize| Finding::held(format!("pod {at}"), "one at a time", format!("{at} of 40"));
        let trace = Trace { actors: vec![decided((0..40).map(held).collect())] };
        let status = &trace.status()[0];
        assert_eq!((&*status.actor, &*status.state), ("roll", "Waiting"));
        assert_eq!(status.effects, ["Drain(2)"]);
        assert_eq!((status.held.len(), status.held[0].subjects.len()), (1, 32));
        assert_eq!(status.held[0].more, Some(8));
        let text = serde_json::to_string(status).unwrap();
        assert!(!text.contains("of 40"), "counters would change the status at each pass: {text}");
    }

    #[test]
    fn an_idle_actor_is_shown_only_if_a_rule_holds_something() {
        let idle = |findings| ActorTrace {
            name: "grow",
            answer: Answer::Decided {
                state: DecisionState::Idle,
                findings,
                effects: Vec::new(),
                held_back_by: None,
            },
        };
        assert!(Trace { actors: vec![idle(vec![Finding::done("member 1")])] }.status().is_empty());
        let held = vec![Finding::held("spec.image", "no downgrade", "2 is older than 3")];
        assert_eq!(Trace { actors: vec![idle(held)] }.status().len(), 1);
    }

    #[test]
    fn an_actor_that_was_not_asked_names_the_one_that_stopped_the_pass() {
        let trace = ActorTrace { name: "roll", answer: Answer::NotAsked("shrink") };
        assert_eq!(
            (trace.state(), trace.line().as_str()),
            ("NotAsked", "not asked: shrink stopped the pass")
        );
        assert!(!trace.is_idle());
    }
}
