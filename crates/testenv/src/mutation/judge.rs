//! The judgement of a case: pure, from the operator's reactions and the way back.

use super::case::{Case, Change, value_text};
use super::exceptions::Exceptions;

/// The reaction to one manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// The API server or a webhook refused it, with this message.
    Refused(String),
    Settled(Settled),
    /// The status never followed the change.
    Hang(String),
    /// The operator did not stop writing.
    HotLoop(String),
    /// The operator ended by itself, with these last words.
    Crash(String),
}

/// An owner whose operator has come to rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) ready: bool,
    /// True if the operator has given up until something changes.
    pub(super) failed: bool,
    /// The messages of the status, and the warnings of admission.
    pub(super) message: String,
    /// The differences of the objects from those at the start of the case.
    pub(super) differences: Vec<String>,
}

/// The result of giving the owner its first manifest again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WayBack {
    /// The objects are those of the start.
    Same,
    /// The API server or a webhook refuses the way back: the change is permanent, and the message says so.
    Refused(String),
    Differs(Vec<String>),
    /// The operator hangs, writes for ever, or ended.
    Broken(Reaction),
}

/// The judgement in one word, as it stands in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Finding {
    Refused,
    Effect,
    /// The status or a warning names the field and its value.
    Reported,
    /// A value that looks invalid was used as it is.
    Taken,
    /// The same objects, and that is right.
    Unchanged,
    /// A field that the file of exceptions lists has no effect.
    Listed,
    /// A case that the file of exceptions lists as a defect fails.
    Defect,
    /// A case that the file of exceptions lists as not judged yet fails.
    Unjudged,
    Ignored,
    /// A refusal or a failure that does not name the field and its value.
    Unclear,
    Hang,
    HotLoop,
    Crash,
    WayBack,
    /// A line of the file of exceptions is about something that works.
    Mended,
}

impl Finding {
    /// All findings, in the order of the report.
    pub(super) const ALL: [Self; 15] = [
        Self::Refused,
        Self::Effect,
        Self::Reported,
        Self::Taken,
        Self::Unchanged,
        Self::Listed,
        Self::Defect,
        Self::Unjudged,
        Self::Ignored,
        Self::Unclear,
        Self::Hang,
        Self::HotLoop,
        Self::Crash,
        Self::WayBack,
        Self::Mended,
    ];

    /// The word in the table.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Effect => "effect",
            Self::Reported => "reported",
            Self::Taken => "taken",
            Self::Unchanged => "unchanged",
            Self::Listed => "listed",
            Self::Defect => "defect",
            Self::Unjudged => "unjudged",
            Self::Ignored => "IGNORED",
            Self::Unclear => "UNCLEAR",
            Self::Hang => "HANG",
            Self::HotLoop => "HOT-LOOP",
            Self::Crash => "CRASH",
            Self::WayBack => "WAY-BACK",
            Self::Mended => "MENDED",
        }
    }

    /// Returns true if the test fails by it.
    pub(super) fn is_failure(self) -> bool {
        self >= Self::Ignored
    }
}

/// Judges a case, without regard to the exceptions.
pub(super) fn judge(case: &Case, reactions: &[Reaction], way_back: &WayBack) -> (Finding, String) {
    let broken = reactions.iter().chain(match way_back {
        WayBack::Broken(reaction) => Some(reaction),
        _ => None,
    });
    for reaction in broken {
        match reaction {
            Reaction::Hang(words) => return (Finding::Hang, words.clone()),
            Reaction::HotLoop(words) => return (Finding::HotLoop, words.clone()),
            Reaction::Crash(words) => return (Finding::Crash, words.clone()),
            Reaction::Refused(_) | Reaction::Settled(_) => {}
        }
    }
    if let WayBack::Differs(differences) = way_back {
        return (Finding::WayBack, differences.join("; "));
    }
    let (finding, message) = judge_reactions(case, reactions);
    match way_back {
        WayBack::Refused(words) => (finding, format!("{message}; the way back is refused: {words}")),
        _ => (finding, message),
    }
}

fn judge_reactions(case: &Case, reactions: &[Reaction]) -> (Finding, String) {
    let refusals: Vec<&String> = reactions
        .iter()
        .filter_map(|reaction| match reaction {
            Reaction::Refused(message) => Some(message),
            _ => None,
        })
        .collect();
    if let Some(unclear) = refusals.iter().find(|message| !names(case, message)) {
        return (Finding::Unclear, format!("refused without its name or value: {unclear}"));
    }
    let settled: Vec<&Settled> = reactions
        .iter()
        .filter_map(|reaction| match reaction {
            Reaction::Settled(settled) => Some(settled),
            _ => None,
        })
        .collect();
    let strict = case.change.is_invalid();
    let unclear =
        |settled: &&&Settled| !settled.ready && (settled.failed || strict) && !names(case, &settled.message);
    if let Some(settled) = settled.iter().find(unclear) {
        return (Finding::Unclear, format!("not ready, without its name or value: {}", settled.message));
    }
    let reported = settled.iter().find(|settled| names(case, &settled.message));
    let effect = settled.iter().find_map(|settled| settled.differences.first());
    match (effect, reported, refusals.first()) {
        (_, Some(settled), _) if strict => (Finding::Reported, settled.message.clone()),
        (Some(difference), _, _) if strict => (Finding::Taken, difference.clone()),
        (Some(difference), _, _) => (Finding::Effect, difference.clone()),
        (None, Some(settled), _) => (Finding::Reported, settled.message.clone()),
        (None, None, Some(message)) => (Finding::Refused, (*message).clone()),
        (None, None, None) if case.needs_effect => {
            (Finding::Ignored, "ready, and no object changed".to_owned())
        }
        (None, None, None) => (Finding::Unchanged, String::new()),
    }
}

/// Judges the cases whose start is refused: right if the refusal names a field on the way.
pub(super) fn judge_start(case: &Case, reaction: &Reaction) -> (Finding, String) {
    let words = |message: &str| format!("before the change: {message}");
    match reaction {
        Reaction::Refused(message) => {
            let named =
                case.path.fields().filter(|field| *field != "spec").any(|field| message.contains(field));
            (if named { Finding::Refused } else { Finding::Unclear }, words(message))
        }
        Reaction::Hang(message) => (Finding::Hang, words(message)),
        Reaction::HotLoop(message) => (Finding::HotLoop, words(message)),
        Reaction::Crash(message) => (Finding::Crash, words(message)),
        Reaction::Settled(_) => (Finding::Unchanged, String::new()),
    }
}

/// Returns true if a message names the field and, where the case has one, the value.
pub(super) fn names(case: &Case, message: &str) -> bool {
    let field = case.path.fields().next().is_some_and(|field| message.contains(field));
    // The API server names the type instead of a value of a wrong one, and shortens what is too long.
    let by_schema =
        ["must be of type", "Too long", "should be at most"].iter().any(|mark| message.contains(mark));
    let value = match &case.value {
        Some(value) if case.change.is_invalid() => {
            value.is_object() || value.is_array() || message.contains(&value_text(value))
        }
        _ => true,
    };
    field && (value || by_schema)
}

/// Compares a finding with the exceptions.
pub(super) fn with_exceptions(
    case: &Case,
    finding: Finding,
    message: String,
    exceptions: &Exceptions,
) -> (Finding, String) {
    if let Some(reason) = exceptions.defect(&case.id()) {
        return if finding.is_failure() {
            (Finding::Defect, format!("{reason} ({}: {message})", finding.word()))
        } else {
            (Finding::Mended, format!("listed as a defect, and it is {}: take the line away", finding.word()))
        };
    }
    let of_case = exceptions.without_effect(&case.id());
    let of_field = exceptions.without_effect(&case.path.to_string());
    // A field that has no effect may have one when a context is taken away with it.
    let is_about_it = of_case.is_some() || case.change == Change::Valid;
    match of_case.or(of_field) {
        Some(reason) if finding == Finding::Ignored => (Finding::Listed, reason.to_owned()),
        Some(_) if finding == Finding::Effect && is_about_it => {
            (Finding::Mended, format!("listed as without effect, and it has one: {message}"))
        }
        _ => match exceptions.unjudged(&case.id()).filter(|_| finding.is_failure()) {
            Some(reason) => (Finding::Unjudged, format!("{reason} ({}: {message})", finding.word())),
            None => (finding, message),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::mutation::path::PropertyPath;

    fn case(change: Change, value: Option<Value>) -> Case {
        let path = PropertyPath::root("spec").field("size");
        Case { path, change, start: json!({}), manifests: Vec::new(), value, needs_effect: true }
    }

    fn valid() -> Case {
        case(Change::Valid, Some(json!(2)))
    }

    fn invalid() -> Case {
        case(Change::Invalid("-1".to_owned()), Some(json!(-1)))
    }

    fn settled(ready: bool, message: &str, differences: &[&str]) -> Reaction {
        let differences = differences.iter().map(|&one| one.to_owned()).collect();
        Reaction::Settled(Settled { ready, failed: !ready, message: message.to_owned(), differences })
    }

    fn refused(message: &str) -> Reaction {
        Reaction::Refused(message.to_owned())
    }

    #[test]
    fn each_reaction_has_its_finding() {
        let words = |text: &str| text.to_owned();
        for (case, reaction, finding) in [
            (valid(), settled(true, "", &["Deployment a differs"]), Finding::Effect),
            (valid(), settled(true, "", &[]), Finding::Ignored),
            (valid(), settled(true, "spec.size has no effect", &[]), Finding::Reported),
            (valid(), settled(false, "it does not work", &["Deployment a differs"]), Finding::Unclear),
            (valid(), refused("spec.size: cannot be changed"), Finding::Refused),
            (valid(), refused("no"), Finding::Unclear),
            (invalid(), refused("spec.size: Invalid value: -1"), Finding::Refused),
            (invalid(), refused("spec.size in body must be of type integer: \"string\""), Finding::Refused),
            (invalid(), refused("spec.size is wrong"), Finding::Unclear),
            (invalid(), settled(false, "size -1 is too small", &[]), Finding::Reported),
            (invalid(), settled(false, "waiting", &["Deployment a differs"]), Finding::Unclear),
            (invalid(), settled(true, "", &["Deployment a differs"]), Finding::Taken),
            (invalid(), settled(true, "", &[]), Finding::Ignored),
            (valid(), Reaction::Hang(words("h")), Finding::Hang),
            (valid(), Reaction::HotLoop(words("l")), Finding::HotLoop),
            (valid(), Reaction::Crash(words("c")), Finding::Crash),
        ] {
            let reactions = [reaction];
            assert_eq!(judge(&case, &reactions, &WayBack::Same).0, finding, "{case} {reactions:?}");
        }
    }

    #[test]
    fn a_way_back_that_differs_is_a_failure_and_a_refused_one_is_told() {
        let effect = [settled(true, "", &["Deployment a differs"])];
        let differs = WayBack::Differs(vec!["Deployment b is left over".to_owned()]);
        assert_eq!(
            judge(&valid(), &effect, &differs),
            (Finding::WayBack, "Deployment b is left over".to_owned())
        );
        let (finding, message) = judge(&valid(), &effect, &WayBack::Refused("never smaller".to_owned()));
        assert_eq!(finding, Finding::Effect);
        assert!(message.ends_with("the way back is refused: never smaller"), "{message}");
        let broken = WayBack::Broken(Reaction::Hang("h".to_owned()));
        assert_eq!(judge(&valid(), &effect, &broken).0, Finding::Hang);
    }

    #[test]
    fn a_start_may_be_refused_if_the_field_is_named() {
        let below = Case { path: PropertyPath::root("spec").field("charts").field("size"), ..valid() };
        assert_eq!(judge_start(&below, &refused("charts went with 2.9")).0, Finding::Refused);
        assert_eq!(judge_start(&below, &refused("spec is wrong")).0, Finding::Unclear);
    }

    #[test]
    fn exceptions_fail_when_what_they_list_works() {
        let exceptions =
            Exceptions::parse("no-effect spec.size old schema\ndefect spec.size=removed issue 7").unwrap();
        let with = |case: &Case, finding| with_exceptions(case, finding, String::new(), &exceptions).0;
        assert_eq!(with(&valid(), Finding::Ignored), Finding::Listed);
        assert_eq!(with(&valid(), Finding::Effect), Finding::Mended);
        assert_eq!(with(&valid(), Finding::Hang), Finding::Hang, "only the lack of an effect is listed");
        let removed = case(Change::Removed, None);
        let of_case = Exceptions::parse("no-effect spec.size=removed as documented").unwrap();
        let with_line = |case: &Case, finding| with_exceptions(case, finding, String::new(), &of_case).0;
        assert_eq!(with_line(&removed, Finding::Ignored), Finding::Listed);
        assert_eq!(with_line(&removed, Finding::Effect), Finding::Mended);
        assert_eq!(with_line(&valid(), Finding::Ignored), Finding::Ignored);
        assert_eq!(with(&removed, Finding::Unclear), Finding::Defect);
        assert_eq!(with(&removed, Finding::Effect), Finding::Mended);
    }

    #[test]
    fn a_case_that_is_not_judged_yet_fails_no_test() {
        let exceptions = Exceptions::parse("unjudged spec.size* nobody has looked").unwrap();
        let with = |finding| with_exceptions(&valid(), finding, String::new(), &exceptions).0;
        assert_eq!((with(Finding::Hang), with(Finding::Effect)), (Finding::Unjudged, Finding::Effect));
    }

    #[test]
    fn failures_are_the_last_of_all_findings() {
        let failures: Vec<&str> =
            Finding::ALL.into_iter().filter(|one| one.is_failure()).map(Finding::word).collect();
        assert_eq!(failures, ["IGNORED", "UNCLEAR", "HANG", "HOT-LOOP", "CRASH", "WAY-BACK", "MENDED"]);
    }
}
