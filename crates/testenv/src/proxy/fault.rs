//! Faults as values: which request, at which occurrence, what happens to it.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::matching::Match;

/// One thing that goes wrong: on which requests, when, and what then.
///
/// ```
/// use windlass_testenv::proxy::{Action, Fault, Match, RequestVerb};
///
/// let lost = Fault::on(Match::verb(RequestVerb::Patch).resource("configmaps").namespace("x").name("y"))
///     .nth(2)
///     .then(Action::DropAfter);
/// assert_eq!(
///     lost.to_string(),
///     "2nd patch of configmaps x/y: drop the connection after the server committed"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The requests that the fault applies to.
    pub on: Match,
    /// The occasion: which of the matching requests.
    pub when: When,
    /// The action taken on such a request.
    pub then: Action,
}

impl Fault {
    /// Begins a fault; without further words it happens at every matching request.
    pub fn on(on: Match) -> Occasion {
        Occasion { on, when: When::default() }
    }
}

/// A fault that lacks only its [`Action`]. Of [`nth`](Occasion::nth) and the others the last call counts,
/// except that [`after`](Occasion::after) and [`times`](Occasion::times) go together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an occasion becomes a fault by `.then(action)`"]
pub struct Occasion {
    on: Match,
    when: When,
}

impl Occasion {
    /// Applies at the first matching request only.
    pub fn first(self) -> Self {
        self.nth(1)
    }

    /// Applies at the n-th matching request only, counted from 1 from when the fault was added to the proxy,
    /// whatever other faults did to those before. With 0 it never applies.
    pub fn nth(self, n: u64) -> Self {
        Self { when: When::Nth(n), ..self }
    }

    /// Applies at most n times; a request that an earlier fault of the script took does not use one up.
    pub fn times(self, n: u64) -> Self {
        Self { when: When::Each { after: self.when.after(), times: Some(n) }, ..self }
    }

    /// Does not apply to the first n matching requests.
    pub fn after(self, n: u64) -> Self {
        Self { when: When::Each { after: n, times: self.when.times() }, ..self }
    }

    /// Completes the fault. Takes an [`Action`], an [`Answer`] or a [`WatchFault`].
    #[must_use]
    pub fn then(self, action: impl Into<Action>) -> Fault {
        Fault { on: self.on, when: self.when, then: action.into() }
    }
}

/// The choice among the matching requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum When {
    /// Exactly the n-th matching request, counted from 1.
    Nth(u64),
    /// Every matching request.
    Each {
        /// The number of requests at the start that are not hit.
        after: u64,
        /// The maximum number of times.
        times: Option<u64>,
    },
}

impl When {
    fn after(self) -> u64 {
        match self {
            Self::Nth(_) => 0,
            Self::Each { after, .. } => after,
        }
    }

    fn times(self) -> Option<u64> {
        match self {
            Self::Nth(_) => None,
            Self::Each { times, .. } => times,
        }
    }

    /// Returns true if the fault applies now: `ordinal` counts the matching requests, this one included;
    /// `taken` counts how often the fault was applied.
    pub(super) fn is_due(self, ordinal: u64, taken: u64) -> bool {
        match self {
            Self::Nth(n) => ordinal == n,
            Self::Each { after, times } => ordinal > after && times.is_none_or(|times| taken < times),
        }
    }
}

impl Default for When {
    fn default() -> Self {
        Self::Each { after: 0, times: None }
    }
}

/// The action of a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// The request waits in the network until it is released, then reaches the server, also when the client
    /// has given up or died meanwhile: a late write. A discarded one never reaches it.
    Hold,
    /// Holds the request like [`Action::Hold`], for a fixed time.
    Delay(Duration),
    /// The connection is closed; the request never reaches the server.
    DropBefore,
    /// The server answers, so it has committed; the answer is thrown away and the connection closed.
    DropAfter,
    /// The server answers, so it has committed; the answer waits until it is released. A discarded answer is
    /// lost as with [`Action::DropAfter`].
    HoldAnswer,
    /// The proxy answers; the request never reaches the server.
    Answer(Answer),
    /// The request passes, and the stream of its answer breaks. Meant for watches.
    Watch {
        /// The number of whole events (lines, bookmarks included) that pass first. With 0 the client gets the
        /// head of the answer and no event.
        after_events: u64,
        /// The way in which the stream breaks.
        then: WatchFault,
    },
}

/// The way in which the stream of an answer breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WatchFault {
    /// Bytes stop flowing and the connection stays open. Released, it flows on and nothing is missing.
    Freeze,
    /// The connection is cut, as when a cable is pulled and the peer reset it.
    Cut,
    /// Breaks like [`WatchFault::Cut`], with half of the next event delivered. Happens when that event comes.
    Tear,
    /// The client's connection stays open, and nothing ever arrives again; the server's is closed.
    HalfOpen,
    /// The stream ends in good order, as the server ends it when its time is over.
    End,
    /// An `ERROR` event with this failure, then the end: how a server says 410 to a watch.
    Error(Answer),
}

impl WatchFault {
    /// The same after so many events have passed.
    #[must_use]
    pub fn after_events(self, n: u64) -> Action {
        Action::Watch { after_events: n, then: self }
    }
}

impl From<WatchFault> for Action {
    fn from(fault: WatchFault) -> Self {
        fault.after_events(0)
    }
}

impl From<Answer> for Action {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.when {
            When::Nth(n) => write!(f, "{n}{} {}", ordinal_suffix(n), self.on)?,
            When::Each { after, times } => {
                write!(f, "every {}", self.on)?;
                if after > 0 {
                    write!(f, " after the first {after}")?;
                }
                match times {
                    Some(1) => f.write_str(", once")?,
                    Some(times) => write!(f, ", {times} times")?,
                    None => {}
                }
            }
        }
        write!(f, ": {}", self.then)
    }
}

fn ordinal_suffix(n: u64) -> &'static str {
    match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hold => f.write_str("hold it before the server sees it"),
            Self::Delay(delay) => write!(f, "delay it by {delay:?}"),
            Self::DropBefore => f.write_str("drop the connection before the server sees it"),
            Self::DropAfter => f.write_str("drop the connection after the server committed"),
            Self::HoldAnswer => f.write_str("hold the answer after the server committed"),
            Self::Answer(answer) => write!(f, "answer {answer}"),
            Self::Watch { after_events, then } => {
                write!(f, "{then}")?;
                match after_events {
                    0 => Ok(()),
                    1 => f.write_str(" after 1 event"),
                    n => write!(f, " after {n} events"),
                }
            }
        }
    }
}

impl fmt::Display for WatchFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Freeze => f.write_str("freeze the stream"),
            Self::Cut => f.write_str("cut the connection"),
            Self::Tear => f.write_str("cut the connection in the middle of an event"),
            Self::HalfOpen => f.write_str("leave the client on a dead connection"),
            Self::End => f.write_str("end the stream"),
            Self::Error(answer) => write!(f, "end the stream with an error event ({answer})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::RequestVerb;

    #[test]
    fn every_fault_prints_as_one_readable_line() {
        let patch = || Match::verb(RequestVerb::Patch).resource("configmaps").namespace("x").name("y");
        let watch = || Match::watches().resource("pods").namespace("x");
        let table = [
            (
                Fault::on(patch()).nth(2).then(Action::DropAfter),
                "2nd patch of configmaps x/y: drop the connection after the server committed",
            ),
            (
                Fault::on(patch()).first().then(Action::DropBefore),
                "1st patch of configmaps x/y: drop the connection before the server sees it",
            ),
            (
                Fault::on(Match::writes().except("leases")).nth(11).then(Action::Hold),
                "11th write (but to leases): hold it before the server sees it",
            ),
            (
                Fault::on(Match::writes()).nth(23).then(Action::HoldAnswer),
                "23rd write: hold the answer after the server committed",
            ),
            (
                Fault::on(Match::any()).then(Action::Delay(Duration::from_millis(1500))),
                "every request: delay it by 1.5s",
            ),
            (
                Fault::on(patch()).after(3).times(2).then(Answer::conflict()),
                "every patch of configmaps x/y after the first 3, 2 times: answer 409 Conflict",
            ),
            (
                Fault::on(Match::verbs([RequestVerb::Get, RequestVerb::List]).group("apps"))
                    .times(1)
                    .then(Answer::too_many_requests(Duration::from_secs(2))),
                "every get or list of group apps, once: answer 429 TooManyRequests, retry after 2 s",
            ),
            (Fault::on(watch()).then(WatchFault::Freeze), "every watch of pods in x: freeze the stream"),
            (
                Fault::on(watch()).first().then(WatchFault::Cut.after_events(1)),
                "1st watch of pods in x: cut the connection after 1 event",
            ),
            (
                Fault::on(watch()).first().then(WatchFault::Tear.after_events(2)),
                "1st watch of pods in x: cut the connection in the middle of an event after 2 events",
            ),
            (
                Fault::on(watch()).nth(3).then(WatchFault::HalfOpen),
                "3rd watch of pods in x: leave the client on a dead connection",
            ),
            (Fault::on(watch()).nth(4).then(WatchFault::End), "4th watch of pods in x: end the stream"),
            (
                Fault::on(watch().user_agent("replica-a"))
                    .nth(101)
                    .then(WatchFault::Error(Answer::expired())),
                "101st watch of pods in x by \"replica-a\": end the stream with an error event (410 Expired)",
            ),
            (
                Fault::on(Match::any().path("/version")).then(Answer::unavailable()),
                "every request to /version: answer 503 ServiceUnavailable",
            ),
        ];
        for (fault, expected) in table {
            assert_eq!(fault.to_string(), expected);
        }
    }

    #[test]
    fn a_fault_survives_being_written_down_and_read_again() {
        let faults = vec![
            Fault::on(Match::writes().except("leases")).nth(7).then(Action::HoldAnswer),
            Fault::on(Match::watches()).after(1).times(2).then(WatchFault::Cut.after_events(3)),
            Fault::on(Match::any()).then(Answer::too_many_requests(Duration::from_secs(1))),
        ];
        let text = serde_json::to_string(&faults).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Fault>>(&text).unwrap(), faults);
    }

    #[test]
    fn the_last_word_on_the_occasion_counts() {
        let any = || Fault::on(Match::any());
        assert_eq!(any().nth(3).times(2).when, When::Each { after: 0, times: Some(2) });
        assert_eq!(any().times(2).after(3).when, When::Each { after: 3, times: Some(2) });
        assert_eq!(any().after(3).first().when, When::Nth(1));
    }
}
