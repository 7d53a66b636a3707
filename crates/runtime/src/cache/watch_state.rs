//! The state machine of a watch: decides the next request from the end of the last one. Pure: no I/O, no
//! clock.
//!
//! ```text
//!            end bookmark, last page                 server closes, connection cut
//!   List ─────────────────────────────► Watch(rv) ─────────────────────────────────► Watch(rv)
//!    ▲  └─ many objects: in one piece;      │
//!    │     no end: page by page             │
//!    └──────────────────────────────────────┘  410, silent twice, a view was added, history went backwards
//! ```
//!
//! Kinds with a label or field selector are streamed, because they usually have few objects: list and watch
//! are one request then. With many objects a stream costs the server about twice the CPU of an unpaged list,
//! and three times that of metadata alone (10,000 objects of 3 KB, Kubernetes 1.36), so a long stream is
//! aborted in favour of an unpaged list. Aborting has a price: the server copies every object for the stream,
//! even after the client is gone. That was a quarter of its time with 50,000 objects, and a third with their
//! metadata. Therefore a kind without a selector, whose size is unknown, starts with an unpaged list, at the
//! cost of one more request.
//!
//! Promises: a resource version is kept until the server rejects it or the watch stays silent; repeated
//! failures without progress back off exponentially; a kind that is missing or forbidden is retried slowly,
//! without end.

use std::time::Duration;

use super::change::Cause;
use crate::meta::ResourceVersion;

/// Consecutive failures before readers see the server as unreachable.
const PATIENCE: u32 = 3;

/// The next request of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NextRequest {
    /// Streaming list: a watch with initial events, which continues as the watch.
    StreamList,
    /// Unpaged list, then watch.
    WholeList,
    /// Paged list, then watch.
    PagedList,
    /// Watch from a known resource version.
    Watch(ResourceVersion),
}

/// The mean distance of the requests by which closed watches are opened again.
const REOPEN: Duration = Duration::from_millis(1);
/// The longest time over which closed watches are opened again.
const REOPEN_MOST: Duration = Duration::from_secs(5);

/// The delay before the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    None,
    /// A part of the time over which the watches of this process are opened again: an API server that stops
    /// closes all of them at once.
    Reopen,
    /// Exponential backoff with jitter after the n-th consecutive failure (from 1).
    Backoff(u32),
    /// Slower backoff after the n-th consecutive time that the kind is missing or forbidden.
    Slow(u32),
    /// The delay of the server's `Retry-After` header.
    Asked(Duration),
}

/// The meaning of an error status from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// 404: the kind is not served.
    Missing,
    /// 403: RBAC does not allow the request.
    Forbidden,
    /// 400 or 422: the server rejects the parameters of the request.
    Invalid,
    /// 410, as a response or as an event: the resource version is too old.
    Expired,
    /// The server has not reached our resource version: it was restored, or it lags.
    FromTheFuture,
    /// 429 or 503 with a `Retry-After` header.
    Throttled(Duration),
    /// Any other error status.
    Other,
}

/// The end of a list or watch request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    /// A list finished at this resource version.
    Listed(ResourceVersion),
    /// The server closed the stream normally, as it does every few minutes; `early`: within seconds.
    Closed {
        early: bool,
    },
    /// The connection broke or could not be opened.
    Cut,
    /// The response did not start in time.
    NoAnswer,
    /// Nothing was received for so long that the connection must be dead.
    Silent,
    /// A streaming list has more objects than the limit.
    Many,
    /// An unpaged list did not finish in time.
    NoEnd,
    Refused(Rejection),
    /// A reader with a new shape was added, which needs a list.
    ViewsChanged,
    /// The list is older than the cache: the server was restored from a backup.
    WentBackwards,
}

/// The health of a watch as readers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WatchHealth {
    Synced,
    Missing,
    Forbidden,
    Unreachable,
}

impl WatchHealth {
    /// Returns the cause for readers; `rule` supplies the missing RBAC rule, which only the caller knows.
    pub(crate) fn cause(&self, rule: impl FnOnce() -> super::RbacRule) -> Option<Cause> {
        match self {
            Self::Synced => None,
            Self::Missing => Some(Cause::Missing),
            Self::Forbidden => Some(Cause::Forbidden(rule())),
            Self::Unreachable => Some(Cause::Unreachable),
        }
    }
}

/// The way in which objects are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListMode {
    Streamed,
    Whole,
    Paged,
}

/// The state of one watch.
#[derive(Debug)]
pub(crate) struct WatchState {
    mode: ListMode,
    position: Option<ResourceVersion>,
    /// Failures since the last progress.
    failures: u32,
    /// Responses "missing" or "forbidden" since the last progress.
    refusals: u32,
    /// True if the present list or watch has received anything.
    progressed: bool,
    /// Consecutive sessions that received nothing.
    silent: u32,
}

impl WatchState {
    pub(crate) fn new(mode: ListMode) -> Self {
        Self { mode, position: None, failures: 0, refusals: 0, progressed: false, silent: 0 }
    }

    /// Returns true if lists are paged, by choice or after an unpaged list failed.
    pub(crate) fn is_paged(&self) -> bool {
        self.mode == ListMode::Paged
    }

    /// Returns the next request.
    pub(crate) fn next_request(&self) -> NextRequest {
        match (&self.position, self.mode) {
            (Some(position), _) => NextRequest::Watch(position.clone()),
            (None, ListMode::Streamed) => NextRequest::StreamList,
            (None, ListMode::Whole) => NextRequest::WholeList,
            (None, ListMode::Paged) => NextRequest::PagedList,
        }
    }

    /// Records that the server accepted the request. A cache that was complete before is up to date again.
    pub(crate) fn opened(&mut self) -> Option<WatchHealth> {
        self.progressed = false;
        self.position.is_some().then_some(WatchHealth::Synced)
    }

    /// Records progress: a streaming list finished, or an event or bookmark arrived with this resource
    /// version.
    pub(crate) fn progressed(&mut self, version: &ResourceVersion) {
        self.progressed = true;
        self.failures = 0;
        self.refusals = 0;
        self.silent = 0;
        if !version.is_unknown() {
            self.position = Some(version.clone());
        }
    }

    /// Records the end of a request. Returns the delay before the [next request](Self::next_request), and the
    /// new health, if it changed.
    pub(crate) fn ended(&mut self, end: &RequestEnd) -> (Pause, Option<WatchHealth>) {
        match end {
            RequestEnd::Listed(version) => {
                self.progressed(version);
                (Pause::None, Some(WatchHealth::Synced))
            }
            RequestEnd::Closed { early } if self.progressed || !early => (Pause::Reopen, None),
            // A server that is too slow for an unpaged list may manage a page.
            RequestEnd::NoAnswer if self.next_request() == NextRequest::WholeList => {
                self.mode = ListMode::Paged;
                self.failed()
            }
            // A server that accepts a watch only to close it at once is failing too.
            RequestEnd::Closed { .. }
            | RequestEnd::Cut
            | RequestEnd::NoAnswer
            | RequestEnd::Refused(Rejection::Other) => self.failed(),
            RequestEnd::Silent => {
                self.silent += 1;
                if self.silent > 1 {
                    // A watch from a resource version that the server has not reached stays silent without
                    // end.
                    self.position = None;
                }
                if self.silent > PATIENCE { self.failed() } else { (Pause::None, None) }
            }
            RequestEnd::Refused(Rejection::Invalid) if self.is_paged() || self.position.is_some() => {
                self.position = None;
                self.failed()
            }
            RequestEnd::Many => {
                self.mode = ListMode::Whole;
                (Pause::None, None)
            }
            RequestEnd::NoEnd | RequestEnd::Refused(Rejection::Invalid) => {
                self.mode = ListMode::Paged;
                (Pause::None, None)
            }
            RequestEnd::Refused(Rejection::Expired | Rejection::FromTheFuture) => {
                let first = self.position.take().is_some();
                if first && self.failures == 0 { (Pause::None, None) } else { self.failed() }
            }
            RequestEnd::Refused(Rejection::Missing) => {
                // A kind that is removed and added again is a different kind under the same name.
                self.position = None;
                self.refusals += 1;
                (Pause::Slow(self.refusals), Some(WatchHealth::Missing))
            }
            RequestEnd::Refused(Rejection::Forbidden) => {
                self.refusals += 1;
                (Pause::Slow(self.refusals), Some(WatchHealth::Forbidden))
            }
            RequestEnd::Refused(Rejection::Throttled(wait)) => {
                let (_, health) = self.failed();
                (Pause::Asked(*wait), health)
            }
            RequestEnd::ViewsChanged => {
                self.position = None;
                (Pause::None, None)
            }
            RequestEnd::WentBackwards => {
                self.position = None;
                self.failed()
            }
        }
    }

    fn failed(&mut self) -> (Pause, Option<WatchHealth>) {
        self.failures += 1;
        let health = (self.failures >= PATIENCE).then_some(WatchHealth::Unreachable);
        (Pause::Backoff(self.failures), health)
    }
}

/// Timeouts, backoff and list limits of a watch.
#[derive(Debug, Clone)]
pub struct WatchTiming {
    /// First and longest pause after failures.
    pub backoff: (Duration, Duration),
    /// First and longest pause while a kind is missing or forbidden.
    pub slow_backoff: (Duration, Duration),
    /// Shortest and longest duration of a watch request, drawn at random for each request; the server closes
    /// the watch then.
    pub session: (Duration, Duration),
    /// A watch with bookmarks (about one per minute) that receives nothing for this long is considered dead.
    pub idle: Duration,
    /// An unpaged list that receives nothing for this long is given up, and paged lists are used instead.
    pub list_idle: Duration,
    /// An unpaged list that takes longer than this is replaced by a paged list.
    pub list_total: Duration,
    /// A streaming list with more objects than this is replaced by an unpaged list, which costs the server
    /// less at the price of one more request.
    pub streamed: usize,
    /// Stream kinds without a selector too, instead of an unpaged list. This saves one request per kind; but
    /// with many objects the server copies all of them for a stream that is aborted.
    pub stream_all: bool,
    /// Timeout for the start of a response, and for a page of a paged list.
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
    /// Returns the first list mode of a watch, with or without a selector.
    pub(crate) fn first(&self, selects: bool) -> ListMode {
        if selects || self.stream_all { ListMode::Streamed } else { ListMode::Whole }
    }

    /// Computes the length of a delay. `chance` is from 0 to 1; delays are spread over the upper half of
    /// their length, so that watches that failed together do not retry together. `watches` is the number of
    /// watches that may end together.
    pub(crate) fn pause(&self, pause: Pause, watches: usize, chance: f64) -> Duration {
        let grown = |(first, most): (Duration, Duration), nth: u32| {
            let doubled = first.saturating_mul(1 << nth.saturating_sub(1).min(16));
            doubled.min(most).mul_f64(0.5 + chance / 2.0)
        };
        match pause {
            Pause::None => Duration::ZERO,
            Pause::Reopen => {
                let watches = u32::try_from(watches).unwrap_or(u32::MAX);
                REOPEN.saturating_mul(watches).min(REOPEN_MOST).mul_f64(chance)
            }
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

    /// Returns the state of a watch that has listed up to version 10.
    fn watching() -> WatchState {
        let mut watch_state = WatchState::new(ListMode::Streamed);
        watch_state.opened();
        watch_state.progressed(&version(10));
        watch_state
    }

    #[test]
    fn each_end_of_a_watch_leads_to_its_next_request() {
        let resume = NextRequest::Watch(version(10));
        for (end, step, pause, health) in [
            (RequestEnd::Closed { early: true }, resume.clone(), Pause::Reopen, None),
            (RequestEnd::Cut, resume.clone(), Pause::Backoff(1), None),
            (RequestEnd::NoAnswer, resume.clone(), Pause::Backoff(1), None),
            (RequestEnd::Silent, resume.clone(), Pause::None, None),
            (RequestEnd::Refused(Rejection::Expired), NextRequest::StreamList, Pause::None, None),
            (RequestEnd::Refused(Rejection::FromTheFuture), NextRequest::StreamList, Pause::None, None),
            (RequestEnd::Refused(Rejection::Other), resume.clone(), Pause::Backoff(1), None),
            (
                RequestEnd::Refused(Rejection::Throttled(Duration::from_secs(7))),
                resume.clone(),
                Pause::Asked(Duration::from_secs(7)),
                None,
            ),
            (RequestEnd::Refused(Rejection::Forbidden), resume, Pause::Slow(1), Some(WatchHealth::Forbidden)),
            (
                RequestEnd::Refused(Rejection::Missing),
                NextRequest::StreamList,
                Pause::Slow(1),
                Some(WatchHealth::Missing),
            ),
            (RequestEnd::Refused(Rejection::Invalid), NextRequest::StreamList, Pause::Backoff(1), None),
            (RequestEnd::ViewsChanged, NextRequest::StreamList, Pause::None, None),
            (RequestEnd::WentBackwards, NextRequest::StreamList, Pause::Backoff(1), None),
        ] {
            let mut watch_state = watching();
            assert_eq!(watch_state.ended(&end), (pause, health), "{end:?}");
            assert_eq!(watch_state.next_request(), step, "{end:?}");
        }
    }

    #[test]
    fn each_end_of_a_first_list_leads_to_its_next_request() {
        for (end, step, pause, health) in [
            (RequestEnd::Closed { early: true }, NextRequest::StreamList, Pause::Backoff(1), None),
            (RequestEnd::Cut, NextRequest::StreamList, Pause::Backoff(1), None),
            (RequestEnd::NoAnswer, NextRequest::StreamList, Pause::Backoff(1), None),
            (RequestEnd::Many, NextRequest::WholeList, Pause::None, None),
            (RequestEnd::NoEnd, NextRequest::PagedList, Pause::None, None),
            (RequestEnd::Refused(Rejection::Invalid), NextRequest::PagedList, Pause::None, None),
            (
                RequestEnd::Refused(Rejection::Missing),
                NextRequest::StreamList,
                Pause::Slow(1),
                Some(WatchHealth::Missing),
            ),
            (
                RequestEnd::Refused(Rejection::Forbidden),
                NextRequest::StreamList,
                Pause::Slow(1),
                Some(WatchHealth::Forbidden),
            ),
            (
                RequestEnd::Listed(version(4)),
                NextRequest::Watch(version(4)),
                Pause::None,
                Some(WatchHealth::Synced),
            ),
        ] {
            let mut watch_state = WatchState::new(ListMode::Streamed);
            watch_state.opened();
            assert_eq!(watch_state.ended(&end), (pause, health), "{end:?}");
            assert_eq!(watch_state.next_request(), step, "{end:?}");
        }
    }

    #[test]
    fn readers_see_an_unreachable_server_after_three_failures_and_its_return() {
        let mut watch_state = watching();
        assert_eq!(watch_state.ended(&RequestEnd::Cut), (Pause::Backoff(1), None));
        assert_eq!(watch_state.ended(&RequestEnd::Cut), (Pause::Backoff(2), None));
        assert_eq!(watch_state.ended(&RequestEnd::Cut), (Pause::Backoff(3), Some(WatchHealth::Unreachable)));
        assert_eq!(watch_state.opened(), Some(WatchHealth::Synced));
        watch_state.progressed(&version(11));
        assert_eq!(watch_state.ended(&RequestEnd::Cut), (Pause::Backoff(1), None));
    }

    #[test]
    fn a_resource_version_that_stays_silent_twice_is_given_up() {
        let mut watch_state = watching();
        watch_state.ended(&RequestEnd::Silent);
        watch_state.opened();
        assert_eq!(watch_state.next_request(), NextRequest::Watch(version(10)));
        watch_state.ended(&RequestEnd::Silent);
        assert_eq!(watch_state.next_request(), NextRequest::StreamList);
    }

    #[test]
    fn a_list_that_expires_again_and_again_backs_off() {
        let mut watch_state = watching();
        assert_eq!(watch_state.ended(&RequestEnd::Refused(Rejection::Expired)).0, Pause::None);
        assert_eq!(watch_state.ended(&RequestEnd::Refused(Rejection::Expired)).0, Pause::Backoff(1));
        assert_eq!(watch_state.ended(&RequestEnd::Refused(Rejection::Expired)).0, Pause::Backoff(2));
    }

    #[test]
    fn a_watch_that_ends_at_once_without_an_event_backs_off() {
        let mut watch_state = watching();
        watch_state.opened();
        assert_eq!(watch_state.ended(&RequestEnd::Closed { early: true }).0, Pause::Backoff(1));
        watch_state.opened();
        assert_eq!(watch_state.ended(&RequestEnd::Closed { early: false }).0, Pause::Reopen);
    }

    #[test]
    fn a_first_list_is_not_synced_when_its_response_starts() {
        assert_eq!(WatchState::new(ListMode::Streamed).opened(), None);
    }

    #[test]
    fn a_watch_that_needed_pages_keeps_using_them() {
        let mut watch_state = WatchState::new(ListMode::Streamed);
        watch_state.ended(&RequestEnd::NoEnd);
        watch_state.ended(&RequestEnd::Listed(version(3)));
        watch_state.ended(&RequestEnd::Refused(Rejection::Expired));
        assert_eq!(watch_state.next_request(), NextRequest::PagedList);
        assert!(watch_state.is_paged());
    }

    #[test]
    fn a_kind_without_a_selector_is_not_streamed_unless_all_kinds_are() {
        let timing = WatchTiming::default();
        assert_eq!((timing.first(true), timing.first(false)), (ListMode::Streamed, ListMode::Whole));
        let timing = WatchTiming { stream_all: true, ..timing };
        assert_eq!((timing.first(true), timing.first(false)), (ListMode::Streamed, ListMode::Streamed));
    }

    #[test]
    fn a_large_kind_is_listed_unpaged_and_by_pages_if_that_does_not_finish() {
        let mut watch_state = WatchState::new(ListMode::Streamed);
        watch_state.opened();
        watch_state.ended(&RequestEnd::Many);
        watch_state.ended(&RequestEnd::Cut);
        assert_eq!(watch_state.next_request(), NextRequest::WholeList);
        watch_state.ended(&RequestEnd::Listed(version(3)));
        watch_state.ended(&RequestEnd::Refused(Rejection::Expired));
        assert_eq!(watch_state.next_request(), NextRequest::WholeList);
        assert!(!watch_state.is_paged());
        for unwilling in [RequestEnd::NoEnd, RequestEnd::NoAnswer] {
            let mut watch_state = WatchState::new(ListMode::Streamed);
            watch_state.ended(&RequestEnd::Many);
            watch_state.ended(&unwilling);
            assert_eq!(watch_state.next_request(), NextRequest::PagedList, "{unwilling:?}");
        }
    }

    #[test]
    fn backoff_doubles_up_to_its_limit_and_is_spread_over_its_upper_half() {
        let timing = WatchTiming {
            backoff: (Duration::from_secs(1), Duration::from_secs(30)),
            ..WatchTiming::default()
        };
        let at_most = |nth| timing.pause(Pause::Backoff(nth), 1, 1.0);
        assert_eq!([at_most(1), at_most(2), at_most(3)], [1, 2, 4].map(Duration::from_secs));
        assert_eq!(at_most(40), Duration::from_secs(30));
        assert_eq!(timing.pause(Pause::Backoff(3), 1, 0.0), Duration::from_secs(2));
    }

    #[test]
    fn seam_low_watches_that_end_together_are_opened_again_one_after_the_other() {
        let timing = WatchTiming::default();
        let delays = |watches: usize| -> Vec<Duration> {
            let mut delays: Vec<_> =
                (0..watches).map(|_| timing.pause(Pause::Reopen, watches, crate::jitter::chance())).collect();
            delays.sort_unstable();
            delays
        };
        // Three thousand watches by name, closed by an API server that stops in order.
        let many = delays(3000);
        let in_first_tenth = many.iter().filter(|delay| **delay < Duration::from_millis(300)).count();
        assert!(in_first_tenth < 600, "{in_first_tenth} of 3000 at once");
        assert!(*many.last().unwrap() <= Duration::from_secs(3), "{many:?}");
        assert!(*delays(100_000).last().unwrap() <= REOPEN_MOST);
        // Few watches do not need it.
        assert!(*delays(10).last().unwrap() <= Duration::from_millis(10));
    }
}
