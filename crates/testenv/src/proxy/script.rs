//! Scripts, and the pure bookkeeping of which fault takes which request.
//!
//! Promise: [`Cast::offer`] is deterministic. The same faults offered the same requests in the same order
//! take the same ones.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::fault::{Action, Fault};
use super::request::RequestSeen;

/// An ordered list of faults. A request goes to the first fault that matches it and is due; at most one.
///
/// Every fault counts all requests that match it, also those that an earlier fault took: "2nd patch" is the
/// second patch on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Script {
    /// The faults, in order.
    pub faults: Vec<Fault>,
}

impl Script {
    /// A script of these faults.
    pub fn new(faults: impl IntoIterator<Item = Fault>) -> Self {
        Self { faults: faults.into_iter().collect() }
    }
}

impl FromIterator<Fault> for Script {
    fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
        Self::new(faults)
    }
}

impl<const N: usize> From<[Fault; N]> for Script {
    fn from(faults: [Fault; N]) -> Self {
        Self::new(faults)
    }
}

impl From<Fault> for Script {
    fn from(fault: Fault) -> Self {
        Self::new([fault])
    }
}

/// One line a fault.
impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.faults.iter().try_for_each(|fault| writeln!(f, "{fault}"))
    }
}

/// Names a fault of one proxy; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FaultId(pub(super) u64);

/// The faults of a proxy and how far each of them is.
#[derive(Debug, Default)]
pub(super) struct Cast {
    roles: Vec<Role>,
}

#[derive(Debug)]
struct Role {
    id: FaultId,
    fault: Fault,
    /// Requests that matched.
    matched: u64,
    /// Requests that it took.
    taken: u64,
}

impl Cast {
    /// Adds a fault as the last one.
    pub(super) fn add(&mut self, id: FaultId, fault: Fault) {
        self.roles.push(Role { id, fault, matched: 0, taken: 0 });
    }

    /// Takes a fault out; of one that is not in, nothing happens.
    pub(super) fn remove(&mut self, id: FaultId) {
        self.roles.retain(|role| role.id != id);
    }

    /// Takes all out.
    pub(super) fn clear(&mut self) {
        self.roles.clear();
    }

    /// Counts the request, and returns the fault that takes it and its action.
    pub(super) fn offer(&mut self, request: &RequestSeen) -> Option<(FaultId, Action)> {
        let mut winner = None;
        for role in &mut self.roles {
            if !role.fault.on.matches(request) {
                continue;
            }
            role.matched += 1;
            if winner.is_none() && role.fault.when.is_due(role.matched, role.taken) {
                role.taken += 1;
                winner = Some((role.id, role.fault.then.clone()));
            }
        }
        winner
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};

    use super::*;
    use crate::proxy::{Answer, Match, Occasion, RequestVerb};

    /// The faults (by position) that apply to a row of gets (`g`) and puts (`p`).
    fn taken(faults: impl IntoIterator<Item = Fault>, requests: &str) -> Vec<Option<u64>> {
        let mut cast = Cast::default();
        for (id, fault) in (0..).zip(faults) {
            cast.add(FaultId(id), fault);
        }
        let path = "/api/v1/nodes/n".parse().unwrap();
        requests
            .chars()
            .map(|letter| if letter == 'g' { Method::GET } else { Method::PUT })
            .map(|method| RequestSeen::parse(&method, &path, &HeaderMap::new()))
            .map(|request| cast.offer(&request).map(|(id, _)| id.0))
            .collect()
    }

    fn gets() -> Occasion {
        Fault::on(Match::verb(RequestVerb::Get))
    }

    fn any() -> Occasion {
        Fault::on(Match::any())
    }

    #[test]
    fn a_fault_happens_at_the_requests_it_names() {
        let act = Action::DropBefore;
        for (fault, expected) in [
            (gets().then(act.clone()), [Some(0), None, Some(0), Some(0)]),
            (gets().first().then(act.clone()), [Some(0), None, None, None]),
            (gets().nth(2).then(act.clone()), [None, None, Some(0), None]),
            (gets().nth(0).then(act.clone()), [None; 4]),
            (gets().times(2).then(act.clone()), [Some(0), None, Some(0), None]),
            (gets().times(0).then(act.clone()), [None; 4]),
            (gets().after(1).then(act.clone()), [None, None, Some(0), Some(0)]),
            (gets().after(1).times(1).then(act.clone()), [None, None, Some(0), None]),
        ] {
            let line = fault.to_string();
            assert_eq!(taken([fault], "gpgg"), expected, "{line}");
        }
    }

    #[test]
    fn the_first_fault_that_is_due_wins() {
        let faults = [any().nth(2).then(Action::DropBefore), any().then(Action::DropAfter)];
        assert_eq!(taken(faults, "ggg"), [Some(1), Some(0), Some(1)]);
    }

    #[test]
    fn an_exhausted_fault_makes_room_for_the_next() {
        let faults = [any().times(1).then(Answer::conflict()), any().times(1).then(Answer::internal_error())];
        assert_eq!(taken(faults, "ggg"), [Some(0), Some(1), None]);
    }

    #[test]
    fn an_ordinal_counts_the_requests_that_other_faults_took() {
        let faults = [any().first().then(Action::DropBefore), gets().nth(2).then(Action::DropAfter)];
        assert_eq!(taken(faults, "ggg"), [Some(0), Some(1), None]);
    }

    #[test]
    fn a_removed_fault_takes_nothing_more() {
        let mut cast = Cast::default();
        cast.add(FaultId(1), any().then(Action::DropBefore));
        cast.add(FaultId(2), any().then(Action::DropAfter));
        let request = RequestSeen::parse(&Method::GET, &"/version".parse().unwrap(), &HeaderMap::new());
        cast.remove(FaultId(1));
        assert_eq!(cast.offer(&request), Some((FaultId(2), Action::DropAfter)));
        cast.clear();
        assert_eq!(cast.offer(&request), None);
    }

    #[test]
    fn a_script_prints_one_line_a_fault() {
        let script = Script::from([any().first().then(Action::Hold), any().then(Answer::expired())]);
        assert_eq!(
            script.to_string(),
            "1st request: hold it before the server sees it\nevery request: answer 410 Expired\n"
        );
    }
}
