//! The log of the requests that went through the proxy, in the order in which they arrived.

use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::fault::Fault;
use super::matching::Match;
use super::request::RequestSeen;

/// One request and what became of it so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedRequest {
    /// Counts the proxy's requests from 1, in order of arrival. Requests under way at the same time may reach
    /// the server in another order.
    pub sequence: u64,
    /// The request as the proxy understood it.
    pub request: RequestSeen,
    /// The fault that hit it, from the moment that it did.
    pub fault: Option<Fault>,
    /// The status code of the server's answer: a write with a 2xx here is committed, whatever the client saw.
    pub server: Option<u16>,
    /// The part of the answer that reached the client.
    pub client: Delivery,
}

impl fmt::Display for LoggedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {}: ", self.sequence, self.request)?;
        match self.server {
            Some(code) => write!(f, "server {code}")?,
            None => f.write_str("no answer of the server")?,
        }
        write!(f, ", client {}", self.client)?;
        match &self.fault {
            Some(fault) => write!(f, " [{fault}]"),
            None => Ok(()),
        }
    }
}

/// The part of an answer that reached the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Delivery {
    /// The client has received nothing yet.
    Waiting,
    /// An answer with this status; its body may still be flowing.
    Answered(u16),
    /// An answer with this status whose body was then broken off by a fault.
    Broken(u16),
    /// A closed connection and no answer.
    Closed,
    /// The client left before there was an answer.
    Left,
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting => f.write_str("waiting"),
            Self::Answered(code) => write!(f, "{code}"),
            Self::Broken(code) => write!(f, "{code}, broken off"),
            Self::Closed => f.write_str("closed"),
            Self::Left => f.write_str("left"),
        }
    }
}

/// The last requests; older ones are forgotten.
#[derive(Debug)]
pub(super) struct Log {
    entries: VecDeque<LoggedRequest>,
    capacity: usize,
    next: u64,
}

impl Log {
    pub(super) fn new(capacity: usize) -> Self {
        Self { entries: VecDeque::new(), capacity: capacity.max(1), next: 1 }
    }

    /// Writes an arrival down and gives its number.
    pub(super) fn arrived(&mut self, request: RequestSeen) -> u64 {
        let sequence = self.next;
        self.next += 1;
        if self.entries.len() == self.capacity {
            self.entries.pop_front();
        }
        self.entries.push_back(LoggedRequest {
            sequence,
            request,
            fault: None,
            server: None,
            client: Delivery::Waiting,
        });
        sequence
    }

    /// An entry to complete; `None` once it is forgotten.
    pub(super) fn entry(&mut self, sequence: u64) -> Option<&mut LoggedRequest> {
        let oldest = self.entries.front()?.sequence;
        let index = usize::try_from(sequence.checked_sub(oldest)?).ok()?;
        self.entries.get_mut(index)
    }

    /// All that is remembered, oldest first.
    pub(super) fn entries(&self) -> impl DoubleEndedIterator<Item = &LoggedRequest> {
        self.entries.iter()
    }

    /// The first remembered request after a number that is meant.
    pub(super) fn first_after(&self, sequence: u64, wanted: &Match) -> Option<&LoggedRequest> {
        self.entries.iter().find(|seen| seen.sequence > sequence && wanted.matches(&seen.request))
    }

    /// The number of the last arrival; 0 before the first.
    pub(super) fn last(&self) -> u64 {
        self.next - 1
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};

    use super::*;

    fn request(path: &str) -> RequestSeen {
        RequestSeen::parse(&Method::GET, &path.parse().unwrap(), &HeaderMap::new())
    }

    #[test]
    fn the_log_forgets_the_oldest_and_keeps_its_numbers() {
        let mut log = Log::new(2);
        for path in ["/a", "/b", "/c"] {
            log.arrived(request(path));
        }
        assert_eq!(log.entry(1), None);
        log.entry(3).unwrap().server = Some(200);
        let kept: Vec<_> = log.entries().map(|seen| (seen.sequence, seen.server)).collect();
        assert_eq!(kept, [(2, None), (3, Some(200))]);
        assert_eq!(log.entry(4), None);
        assert_eq!(log.last(), 3);
    }

    #[test]
    fn a_search_begins_after_the_given_number() {
        let mut log = Log::new(10);
        for path in ["/a", "/b", "/a"] {
            log.arrived(request(path));
        }
        let find = |after| log.first_after(after, &Match::any().path("/a")).map(|seen| seen.sequence);
        assert_eq!([find(0), find(1), find(3)], [Some(1), Some(3), None]);
    }

    #[test]
    fn an_entry_prints_both_sides_of_the_story() {
        let mut log = Log::new(10);
        let sequence = log.arrived(request("/version"));
        let seen = log.entry(sequence).unwrap();
        assert_eq!(seen.to_string(), "#1 get /version: no answer of the server, client waiting");
        seen.server = Some(201);
        seen.client = Delivery::Closed;
        seen.fault = Some(Fault::on(Match::any()).first().then(crate::proxy::Action::DropAfter));
        assert_eq!(
            seen.to_string(),
            "#1 get /version: server 201, client closed \
             [1st request: drop the connection after the server committed]"
        );
    }
}
