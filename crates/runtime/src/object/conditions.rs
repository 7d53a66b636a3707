//! Conditions of an object's status.
//!
//! ```
//! use jiff::Timestamp;
//! use windlass_runtime::object::conditions::{self, Fact, Truth};
//!
//! let mut list = Vec::new();
//! let fact = Fact::new("Ready", Truth::False, "Starting").message("0 of 3 replicas").generation(4);
//! assert!(conditions::set(&mut list, fact.clone(), Timestamp::now()));
//! // Said again, nothing changes, so there is nothing to write.
//! assert!(!conditions::set(&mut list, fact, Timestamp::now()));
//! ```

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The longest message that the API accepts.
const LONGEST_MESSAGE: usize = 32_768;
/// The longest reason that the API accepts.
const LONGEST_REASON: usize = 1024;

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Truth {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The status cannot be determined.
    Unknown,
}

impl Truth {
    /// Returns the status as the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A condition without its transition time, which [`set`] determines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a fact becomes a condition by `conditions::set`"]
pub struct Fact {
    kind: String,
    truth: Truth,
    reason: String,
    message: String,
    generation: Option<i64>,
}

impl Fact {
    /// Creates a condition of this type, with the reason in `CamelCase`.
    ///
    /// The API rejects an empty reason and characters other than letters, digits and `_,:`. Such characters
    /// are removed, so that a status is never rejected because of a careless reason.
    pub fn new(kind: impl Into<String>, truth: impl Into<Truth>, reason: impl AsRef<str>) -> Self {
        Self {
            kind: kind.into(),
            truth: truth.into(),
            reason: acceptable_reason(reason.as_ref()),
            message: String::new(),
            generation: None,
        }
    }

    /// Sets the message for people. It is cut at the API's length limit.
    pub fn message(self, message: impl Into<String>) -> Self {
        let mut message = message.into();
        let end = message.floor_char_boundary(LONGEST_MESSAGE);
        message.truncate(end);
        Self { message, ..self }
    }

    /// Sets the `metadata.generation` that the condition was computed for.
    pub fn generation(self, generation: i64) -> Self {
        Self { generation: Some(generation), ..self }
    }
}

/// Sets a condition in a list, and returns true if the list changed.
///
/// The transition time is `now`, to the second, if the condition is new or its status changed; it is kept if
/// only reason, message or generation changed. Other conditions, and their order, are not touched. If the
/// list contains the type twice, the first one is kept.
pub fn set(conditions: &mut Vec<Condition>, fact: Fact, now: Timestamp) -> bool {
    let first = conditions.iter().position(|condition| condition.type_ == fact.kind);
    let since = first
        .map(|index| &conditions[index])
        .filter(|condition| condition.status == fact.truth.as_str())
        .map_or_else(|| Time(to_the_second(now)), |condition| condition.last_transition_time.clone());
    let condition = Condition {
        last_transition_time: since,
        message: fact.message,
        observed_generation: fact.generation,
        reason: fact.reason,
        status: fact.truth.as_str().to_owned(),
        type_: fact.kind,
    };
    let Some(index) = first else {
        conditions.push(condition);
        return true;
    };
    let changed = conditions[index] != condition;
    let length = conditions.len();
    let mut position = 0;
    conditions.retain(|other| {
        position += 1;
        position - 1 == index || other.type_ != condition.type_
    });
    let deduplicated = conditions.len() != length;
    conditions[index] = condition;
    changed || deduplicated
}

/// Removes a condition, and returns true if it was present.
pub fn remove(conditions: &mut Vec<Condition>, kind: &str) -> bool {
    let length = conditions.len();
    conditions.retain(|condition| condition.type_ != kind);
    conditions.len() != length
}

/// Returns the condition of a type.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Returns true if a condition is present and `True`.
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    find(conditions, kind).is_some_and(|condition| condition.status == Truth::True.as_str())
}

/// The API keeps whole seconds: a finer time would differ from what is read back, and would be written again
/// and again.
fn to_the_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn acceptable_reason(reason: &str) -> String {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':');
    let mut kept: String =
        reason.chars().filter(|c| inner(*c)).skip_while(|c| !c.is_ascii_alphabetic()).collect();
    kept.truncate(LONGEST_REASON);
    let end = kept.trim_end_matches([',', ':']).len();
    kept.truncate(end);
    if kept.is_empty() { "Unspecified".to_owned() } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn fact(truth: Truth, message: &str) -> Fact {
        Fact::new("Ready", truth, "Because").message(message)
    }

    #[test]
    fn the_transition_time_changes_only_with_the_status() {
        let mut list = Vec::new();
        assert!(set(&mut list, fact(Truth::False, "a"), second(10)));
        assert!(set(&mut list, fact(Truth::False, "b").generation(2), second(20)));
        assert_eq!((list[0].last_transition_time.0, list[0].message.as_str()), (second(10), "b"));
        assert_eq!(list[0].observed_generation, Some(2));
        assert!(set(&mut list, fact(Truth::True, "b").generation(2), second(30)));
        assert_eq!(list[0].last_transition_time.0, second(30));
    }

    #[test]
    fn setting_the_same_condition_again_changes_nothing() {
        let mut list = Vec::new();
        set(&mut list, fact(Truth::True, "a"), second(10));
        let before = list.clone();
        assert!(!set(&mut list, fact(Truth::True, "a"), second(99)));
        assert_eq!(list, before);
    }

    #[test]
    fn transition_times_are_whole_seconds() {
        let mut list = Vec::new();
        set(&mut list, fact(Truth::True, ""), Timestamp::from_millisecond(1999).unwrap());
        assert_eq!(list[0].last_transition_time.0, second(1));
    }

    #[test]
    fn other_conditions_and_their_order_are_kept() {
        let mut list = Vec::new();
        for kind in ["A", "Ready", "B"] {
            set(&mut list, Fact::new(kind, true, "Because"), second(1));
        }
        set(&mut list, fact(Truth::False, ""), second(2));
        assert_eq!(list.iter().map(|c| c.type_.as_str()).collect::<Vec<_>>(), ["A", "Ready", "B"]);
        assert!(is_true(&list, "A") && !is_true(&list, "Ready") && !is_true(&list, "Absent"));
        assert!(remove(&mut list, "A") && !remove(&mut list, "A"));
    }

    #[test]
    fn a_duplicate_condition_type_is_removed() {
        let mut list = Vec::new();
        set(&mut list, fact(Truth::True, "a"), second(1));
        list.push(list[0].clone());
        assert!(set(&mut list, fact(Truth::True, "a"), second(2)));
        assert_eq!(list.len(), 1);
    }

    #[test]
    fn a_message_is_cut_between_characters() {
        let cut = fact(Truth::True, &"é".repeat(LONGEST_MESSAGE));
        assert_eq!(cut.message.len(), LONGEST_MESSAGE);
        let odd = fact(Truth::True, &format!("x{}", "é".repeat(LONGEST_MESSAGE)));
        assert_eq!(odd.message.len(), LONGEST_MESSAGE - 1);
    }

    proptest! {
        #[test]
        fn every_reason_becomes_one_that_the_api_accepts(reason in ".*") {
            let kept = acceptable_reason(&reason);
            prop_assert!(!kept.is_empty() && kept.len() <= LONGEST_REASON);
            prop_assert!(kept.starts_with(|c: char| c.is_ascii_alphabetic()));
            prop_assert!(kept.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_'));
            prop_assert_eq!(acceptable_reason(&kept), kept.clone());
        }
    }

    #[test]
    fn a_valid_reason_is_kept_as_it_is() {
        for reason in ["Starting", "X", "A_b,c:D9"] {
            assert_eq!(acceptable_reason(reason), reason);
        }
        assert_eq!(acceptable_reason("image pull back-off!"), "imagepullbackoff");
        assert_eq!(acceptable_reason("…"), "Unspecified");
    }
}
