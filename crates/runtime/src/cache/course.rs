//! What a watch does next, given what just happened: pure, no I/O, no clock.
//!
//! ```text
//!            end bookmark, last page                 server closes, connection cut
//!   List ─────────────────────────────► Watch(rv) ─────────────────────────────────► Watch(rv)
//!    ▲  └─ many objects: in one piece;      │
//!    │     no end: page by page             │
//!    └──────────────────────────────────────┘  410, silent twice, a view was added, history went backwards
//! ```
//!
//! What is selected by labels or fields is mostly few, and is streamed: list and watch are one request then. Of many, a stream
//! costs the server about twice the CPU of a list in one piece, and three times that of metadata alone (10,000 objects of 3 KB, Kubernetes 1.36), so
//! that a stream which proves long is given up for that. But not for nothing: the server copies every object for it, up to the last, after its reader has gone.
//! That was a quarter of its time with 50,000 objects, and a third with their metadata. So a whole kind, of which nobody knows how much there is, is listed in one piece
//! from the start, which is a request more.
//!
//! Promises: a position once gained is kept until the server refuses it or it proves dead; what repeats without any
//! progress waits longer each time; a kind that is missing or forbidden is asked for slowly, for ever.

use std::time::Duration;

use super::change::Cause;
use crate::meta::ResourceVersion;

/// Failures in a row before readers are told that the server cannot be reached.
const PATIENCE: u32 = 3;

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Watch with initial events: the list comes as a stream, and the same stream goes on as the watch.
    StreamList,
    /// List in one piece, then watch.
    WholeList,
    /// List page by page, then watch.
    PagedList,
    /// Watch from where we are.
    Watch(ResourceVersion),
}

/// How long to wait before doing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    None,
    /// The n-th failure in a row (from 1): exponential, with jitter.
    Backoff(u32),
    /// The n-th time in a row that the kind is missing or forbidden: slower.
    Slow(u32),
    /// What the server asked for.
    Asked(Duration),
}

/// What the server said instead of answering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// 404: no such kind.
    Missing,
    /// 403.
    Forbidden,
    /// 400 or 422: the server does not like the request itself.
    Invalid,
    /// 410, as an answer or as an event: our position is too old.
    Expired,
    /// The server does not know our position yet: it went backwards, or lags.
    FromTheFuture,
    /// 429 or 503 with a time to wait.
    Throttled(Duration),
    /// Anything else.
    Other,
}

/// How a list or watch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A list came to its end, by which it is at this version.
    Listed(ResourceVersion),
    /// The server ended the stream in good order, as it does every few minutes; `early`: within seconds.
    Closed {
        early: bool,
    },
    /// The connection broke, or never came about.
    Cut,
    /// The request was not answered in time.
    NoAnswer,
    /// Nothing came for so long that the connection must be dead.
    Silent,
    /// A streamed list turned out to be of many objects.
    Many,
    /// A list that is not paged did not end within its deadline.
    NoEnd,
    Refused(Refusal),
    /// A reader with a new shape came: it needs a list.
    ViewsChanged,
    /// The list is older than what was seen before: the server was restored from a backup.
    WentBackwards,
}

/// What readers are to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    Synced,
    Missing,
    Forbidden,
    Unreachable,
}

impl Standing {
    /// The cause, except for the rule that RBAC lacks, which only the caller knows.
    pub(crate) fn cause(&self, rule: impl FnOnce() -> super::RbacRule) -> Option<Cause> {
        match self {
            Self::Synced => None,
            Self::Missing => Some(Cause::Missing),
            Self::Forbidden => Some(Cause::Forbidden(rule())),
            Self::Unreachable => Some(Cause::Unreachable),
        }
    }
}

/// How objects are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Streamed,
    Whole,
    Paged,
}

/// The way of one watch.
#[derive(Debug)]
pub(crate) struct Course {
    way: Way,
    position: Option<ResourceVersion>,
    /// Failures since the last progress.
    failures: u32,
    /// Refusals as missing or forbidden since the last progress.
    refusals: u32,
    /// Whether the present list or watch has brought anything.
    progressed: bool,
    /// Sessions in a row that were silent from start to end.
    silent: u32,
}

impl Course {
    pub(crate) fn new(way: Way) -> Self {
        Self { way, position: None, failures: 0, refusals: 0, progressed: false, silent: 0 }
    }

    /// Whether lists are paged, by choice or by experience.
    pub(crate) fn is_paged(&self) -> bool {
        self.way == Way::Paged
    }

    /// What to do now.
    pub(crate) fn step(&self) -> Step {
        match (&self.position, self.way) {
            (Some(position), _) => Step::Watch(position.clone()),
            (None, Way::Streamed) => Step::StreamList,
            (None, Way::Whole) => Step::WholeList,
            (None, Way::Paged) => Step::PagedList,
        }
    }

    /// The server accepted the request. Readers that had seen everything before are up to date again.
    pub(crate) fn opened(&mut self) -> Option<Standing> {
        self.progressed = false;
        self.position.is_some().then_some(Standing::Synced)
    }

    /// A streamed list has ended, or an event or bookmark came: we are at this version.
    pub(crate) fn progressed(&mut self, version: &ResourceVersion) {
        self.progressed = true;
        self.failures = 0;
        self.refusals = 0;
        self.silent = 0;
        if !version.is_unknown() {
            self.position = Some(version.clone());
        }
    }

    /// Something ended: how long to pause before the next [`step`](Self::step), and what to tell readers.
    pub(crate) fn ended(&mut self, outcome: &Outcome) -> (Pause, Option<Standing>) {
        match outcome {
            Outcome::Listed(version) => {
                self.progressed(version);
                (Pause::None, Some(Standing::Synced))
            }
            Outcome::Closed { early } if self.progressed || !early => (Pause::None, None),
            // A server that has no time for all of it may have some for a part.
            Outcome::NoAnswer if self.step() == Step::WholeList => {
                self.way = Way::Paged;
                self.failed()
            }
            // A server that takes a watch only to end it at once is failing too.
            Outcome::Closed { .. } | Outcome::Cut | Outcome::NoAnswer | Outcome::Refused(Refusal::Other) => {
                self.failed()
            }
            Outcome::Silent => {
                self.silent += 1;
                if self.silent > 1 {
                    // A watch from a version that the server has not reached is silent for ever.
                    self.position = None;
                }
                if self.silent > PATIENCE { self.failed() } else { (Pause::None, None) }
            }
            Outcome::Refused(Refusal::Invalid) if self.is_paged() || self.position.is_some() => {
                self.position = None;
                self.failed()
            }
            Outcome::Many => {
                self.way = Way::Whole;
                (Pause::None, None)
            }
            Outcome::NoEnd | Outcome::Refused(Refusal::Invalid) => {
                self.way = Way::Paged;
                (Pause::None, None)
            }
            Outcome::Refused(Refusal::Expired | Refusal::FromTheFuture) => {
                let first = self.position.take().is_some();
                if first && self.failures == 0 { (Pause::None, None) } else { self.failed() }
            }
            Outcome::Refused(Refusal::Missing) => {
                // If it comes back, it is another kind under the same name.
                self.position = None;
                self.refusals += 1;
                (Pause::Slow(self.refusals), Some(Standing::Missing))
            }
            Outcome::Refused(Refusal::Forbidden) => {
                self.refusals += 1;
                (Pause::Slow(self.refusals), Some(Standing::Forbidden))
            }
            Outcome::Refused(Refusal::Throttled(wait)) => {
                let (_, standing) = self.failed();
                (Pause::Asked(*wait), standing)
            }
            Outcome::ViewsChanged => {
                self.position = None;
                (Pause::None, None)
            }
            Outcome::WentBackwards => {
                self.position = None;
                self.failed()
            }
        }
    }

    fn failed(&mut self) -> (Pause, Option<Standing>) {
        self.failures += 1;
        let standing = (self.failures >= PATIENCE).then_some(Standing::Unreachable);
        (Pause::Backoff(self.failures), standing)
    }
}

/// How fast a watch tries again, and how long it waits for what.
#[derive(Debug, Clone)]
pub struct WatchTiming {
    /// First and longest pause after failures.
    pub backoff: (Duration, Duration),
    /// First and longest pause while a kind is missing or forbidden.
    pub slow_backoff: (Duration, Duration),
    /// How long a watch request lasts; the server picks nothing longer, and each is drawn anew from the range.
    pub session: (Duration, Duration),
    /// Nothing for so long on a watch that had bookmarks (about one a minute): it is dead.
    pub idle: Duration,
    /// Nothing for so long in the middle of a list that is not paged: this server will not end it.
    pub list_idle: Duration,
    /// A list that takes longer than this is done by pages instead.
    pub list_total: Duration,
    /// A streamed list of more objects than this is done in one piece instead, which costs the server less and us a request more.
    pub streamed: usize,
    /// Whether kinds that are followed without a selector are streamed too, and not listed in one piece at once. A request less for
    /// each; but where there are many objects, the server copies all of them for a stream that is given up.
    pub stream_all: bool,
    /// How long a request may take to be answered at all, and a page to come.
    pub answer: Duration,
    /// Objects per page of a paged list.
    pub page: u32,
}

impl Default for WatchTiming {
    fn default() -> Self {
        Self {
            backoff: (Duration::from_millis(800), Duration::from_secs(30)),
            slow_backoff: (Duration::from_secs(2), Duration::from_mins(1)),
            session: (Duration::from_secs(290), Duration::from_secs(590)),
            idle: Duration::from_secs(150),
            list_idle: Duration::from_secs(15),
            list_total: Duration::from_mins(5),
            streamed: 1_000,
            stream_all: false,
            answer: Duration::from_secs(30),
            page: 500,
        }
    }
}

impl WatchTiming {
    /// How a watch lists at first, by whether it selects some objects of its kind.
    pub(crate) fn first(&self, selects: bool) -> Way {
        if selects || self.stream_all { Way::Streamed } else { Way::Whole }
    }

    /// How long a pause is. `chance` is from 0 to 1; pauses are spread over the upper half of their length, so
    /// that watches that failed together do not come back together.
    pub(crate) fn pause(&self, pause: Pause, chance: f64) -> Duration {
        let grown = |(first, most): (Duration, Duration), nth: u32| {
            let doubled = first.saturating_mul(1 << nth.saturating_sub(1).min(16));
            doubled.min(most).mul_f64(0.5 + chance / 2.0)
        };
        match pause {
            Pause::None => Duration::ZERO,
            Pause::Backoff(nth) => grown(self.backoff, nth),
            Pause::Slow(nth) => grown(self.slow_backoff, nth),
            Pause::Asked(wait) => wait.min(self.backoff.1).mul_f64(1.0 + chance / 10.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u64) -> ResourceVersion {
        ResourceVersion::number(number)
    }

    /// A course that has listed up to version 10 and watches.
    fn watching() -> Course {
        let mut course = Course::new(Way::Streamed);
        course.opened();
        course.progressed(&version(10));
        course
    }

    #[test]
    fn each_outcome_of_a_watch_leads_to_its_step() {
        let resume = Step::Watch(version(10));
        for (outcome, step, pause, standing) in [
            (Outcome::Closed { early: true }, resume.clone(), Pause::None, None),
            (Outcome::Cut, resume.clone(), Pause::Backoff(1), None),
            (Outcome::NoAnswer, resume.clone(), Pause::Backoff(1), None),
            (Outcome::Silent, resume.clone(), Pause::None, None),
            (Outcome::Refused(Refusal::Expired), Step::StreamList, Pause::None, None),
            (Outcome::Refused(Refusal::FromTheFuture), Step::StreamList, Pause::None, None),
            (Outcome::Refused(Refusal::Other), resume.clone(), Pause::Backoff(1), None),
            (
                Outcome::Refused(Refusal::Throttled(Duration::from_secs(7))),
                resume.clone(),
                Pause::Asked(Duration::from_secs(7)),
                None,
            ),
            (Outcome::Refused(Refusal::Forbidden), resume, Pause::Slow(1), Some(Standing::Forbidden)),
            (Outcome::Refused(Refusal::Missing), Step::StreamList, Pause::Slow(1), Some(Standing::Missing)),
            (Outcome::Refused(Refusal::Invalid), Step::StreamList, Pause::Backoff(1), None),
            (Outcome::ViewsChanged, Step::StreamList, Pause::None, None),
            (Outcome::WentBackwards, Step::StreamList, Pause::Backoff(1), None),
        ] {
            let mut course = watching();
            assert_eq!(course.ended(&outcome), (pause, standing), "{outcome:?}");
            assert_eq!(course.step(), step, "{outcome:?}");
        }
    }

    #[test]
    fn each_outcome_of_a_first_list_leads_to_its_step() {
        for (outcome, step, pause, standing) in [
            (Outcome::Closed { early: true }, Step::StreamList, Pause::Backoff(1), None),
            (Outcome::Cut, Step::StreamList, Pause::Backoff(1), None),
            (Outcome::NoAnswer, Step::StreamList, Pause::Backoff(1), None),
            (Outcome::Many, Step::WholeList, Pause::None, None),
            (Outcome::NoEnd, Step::PagedList, Pause::None, None),
            (Outcome::Refused(Refusal::Invalid), Step::PagedList, Pause::None, None),
            (Outcome::Refused(Refusal::Missing), Step::StreamList, Pause::Slow(1), Some(Standing::Missing)),
            (
                Outcome::Refused(Refusal::Forbidden),
                Step::StreamList,
                Pause::Slow(1),
                Some(Standing::Forbidden),
            ),
            (Outcome::Listed(version(4)), Step::Watch(version(4)), Pause::None, Some(Standing::Synced)),
        ] {
            let mut course = Course::new(Way::Streamed);
            course.opened();
            assert_eq!(course.ended(&outcome), (pause, standing), "{outcome:?}");
            assert_eq!(course.step(), step, "{outcome:?}");
        }
    }

    #[test]
    fn readers_are_told_of_an_unreachable_server_after_three_failures_and_of_its_return() {
        let mut course = watching();
        assert_eq!(course.ended(&Outcome::Cut), (Pause::Backoff(1), None));
        assert_eq!(course.ended(&Outcome::Cut), (Pause::Backoff(2), None));
        assert_eq!(course.ended(&Outcome::Cut), (Pause::Backoff(3), Some(Standing::Unreachable)));
        assert_eq!(course.opened(), Some(Standing::Synced));
        course.progressed(&version(11));
        assert_eq!(course.ended(&Outcome::Cut), (Pause::Backoff(1), None));
    }

    #[test]
    fn a_position_that_stays_silent_twice_is_given_up() {
        let mut course = watching();
        course.ended(&Outcome::Silent);
        course.opened();
        assert_eq!(course.step(), Step::Watch(version(10)));
        course.ended(&Outcome::Silent);
        assert_eq!(course.step(), Step::StreamList);
    }

    #[test]
    fn a_list_that_expires_again_and_again_backs_off() {
        let mut course = watching();
        assert_eq!(course.ended(&Outcome::Refused(Refusal::Expired)).0, Pause::None);
        assert_eq!(course.ended(&Outcome::Refused(Refusal::Expired)).0, Pause::Backoff(1));
        assert_eq!(course.ended(&Outcome::Refused(Refusal::Expired)).0, Pause::Backoff(2));
    }

    #[test]
    fn a_watch_that_ends_at_once_before_anything_came_backs_off() {
        let mut course = watching();
        course.opened();
        assert_eq!(course.ended(&Outcome::Closed { early: true }).0, Pause::Backoff(1));
        course.opened();
        assert_eq!(course.ended(&Outcome::Closed { early: false }).0, Pause::None);
    }

    #[test]
    fn a_first_list_is_not_synced_by_merely_being_answered() {
        assert_eq!(Course::new(Way::Streamed).opened(), None);
    }

    #[test]
    fn pages_are_remembered() {
        let mut course = Course::new(Way::Streamed);
        course.ended(&Outcome::NoEnd);
        course.ended(&Outcome::Listed(version(3)));
        course.ended(&Outcome::Refused(Refusal::Expired));
        assert_eq!(course.step(), Step::PagedList);
        assert!(course.is_paged());
    }

    #[test]
    fn a_whole_kind_is_not_streamed_unless_everything_is() {
        let timing = WatchTiming::default();
        assert_eq!((timing.first(true), timing.first(false)), (Way::Streamed, Way::Whole));
        let timing = WatchTiming { stream_all: true, ..timing };
        assert_eq!((timing.first(true), timing.first(false)), (Way::Streamed, Way::Streamed));
    }

    #[test]
    fn many_are_listed_in_one_piece_from_then_on_and_by_pages_if_that_does_not_end() {
        let mut course = Course::new(Way::Streamed);
        course.opened();
        course.ended(&Outcome::Many);
        course.ended(&Outcome::Cut);
        assert_eq!(course.step(), Step::WholeList);
        course.ended(&Outcome::Listed(version(3)));
        course.ended(&Outcome::Refused(Refusal::Expired));
        assert_eq!(course.step(), Step::WholeList);
        assert!(!course.is_paged());
        for unwilling in [Outcome::NoEnd, Outcome::NoAnswer] {
            let mut course = Course::new(Way::Streamed);
            course.ended(&Outcome::Many);
            course.ended(&unwilling);
            assert_eq!(course.step(), Step::PagedList, "{unwilling:?}");
        }
    }

    #[test]
    fn pauses_double_up_to_their_limit_and_spread_over_their_upper_half() {
        let timing = WatchTiming {
            backoff: (Duration::from_secs(1), Duration::from_secs(30)),
            ..WatchTiming::default()
        };
        let at_most = |nth| timing.pause(Pause::Backoff(nth), 1.0);
        assert_eq!([at_most(1), at_most(2), at_most(3)], [1, 2, 4].map(Duration::from_secs));
        assert_eq!(at_most(40), Duration::from_secs(30));
        assert_eq!(timing.pause(Pause::Backoff(3), 0.0), Duration::from_secs(2));
    }
}
