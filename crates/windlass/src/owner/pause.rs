//! A pause of an owner, requested by its user.
//!
//! The operator writes only the status of a paused owner: `Ready` continues to report the observed state, so
//! that neither parents nor alerts take a pause for a failure.

use jiff::Timestamp;

use crate::names::ask;
use crate::plan::owner::OwnerView;

/// A pause of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    /// The time at which the pause ends by itself.
    pub(crate) until: Option<Timestamp>,
    message: String,
}

impl Pause {
    /// Returns the pause of an owner, if it has one now.
    pub(crate) fn of(owner: &OwnerView, now: Timestamp) -> Option<Self> {
        Self::read(owner.annotation(ask::PAUSED)?, owner.annotation(ask::PAUSED_BECAUSE), now)
    }

    /// Reads the annotation. An invalid value pauses the owner, because its author wanted nothing to be
    /// written.
    fn read(value: &str, because: Option<&str>, now: Timestamp) -> Option<Self> {
        let (until, when) = match value.trim() {
            "" | "false" => return None,
            "true" => (None, String::new()),
            value => match value.parse::<Timestamp>() {
                Ok(until) if until <= now => return None,
                Ok(until) => (Some(until), format!(" until {until}")),
                Err(_) => {
                    (None, format!(" (the value {value:?} is neither true nor a time such as {now:.0})"))
                }
            },
        };
        let because = because.map(|because| format!(" because {}", because.trim())).unwrap_or_default();
        let message = format!("paused{when}{because}: remove the annotation {} to continue", ask::PAUSED);
        Some(Self { until, message })
    }

    /// Returns the message of the condition, with the number of objects that differ from the plan.
    pub(crate) fn message(&self, differing: usize) -> String {
        match differing {
            0 => self.message.clone(),
            1 => format!("{}; 1 object differs from the plan", self.message),
            many => format!("{}; {many} objects differ from the plan", self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Option<Pause> {
        Pause::read(value, None, "2026-01-01T00:00:00Z".parse().unwrap())
    }

    #[test]
    fn a_pause_has_no_end_or_ends_at_its_time() {
        assert_eq!(read("false"), None);
        assert_eq!(read("true").unwrap().until, None);
        let until = read("2026-01-01T00:00:01Z").unwrap();
        assert_eq!(until.until, Some("2026-01-01T00:00:01Z".parse().unwrap()));
        assert!(until.message(0).starts_with("paused until 2026-01-01T00:00:01Z: "), "{until:?}");
        assert_eq!(read("2026-01-01T00:00:00Z"), None, "it is over");
    }

    #[test]
    fn a_value_that_cannot_be_understood_pauses_and_is_named() {
        let pause = read("tomorrow").unwrap();
        assert!(pause.message(0).contains("\"tomorrow\" is neither true nor a time"), "{pause:?}");
    }

    #[test]
    fn the_message_names_the_reason_and_what_differs() {
        let pause = Pause::read("true", Some("we migrate"), Timestamp::UNIX_EPOCH).unwrap();
        let words = "paused because we migrate: remove the annotation windlass.dev/paused to continue";
        assert_eq!(pause.message(0), words);
        assert_eq!(pause.message(2), format!("{words}; 2 objects differ from the plan"));
    }
}
