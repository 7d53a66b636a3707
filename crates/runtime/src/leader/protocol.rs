//! The election protocol: decides the next action of a candidate as a pure function of its observations and
//! the time.
//!
//! Promises: clocks are never compared (a holder has expired when its record did not change *in our view* for
//! the duration in the record); every write names the version that it replaces; a leader has stopped before
//! any other candidate that follows these rules can lead.
//!
//! Does not: wait, read or write. [`campaign`](super::campaign) does.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::record::{Found, Record, to_micros};
use super::times::Times;

/// This many consecutive conflicts are retried without a delay.
const CALM_CONFLICTS: u32 = 3;

/// The next action of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LeaseAction {
    /// Read the Lease.
    Read,
    /// Write the Lease: to acquire it, to renew it or to release it.
    Write(Write),
    /// Do nothing before this time, unless the Lease changes.
    Wait(Instant),
    /// The lease is lost: stop all work.
    Lost(Loss),
}

/// A write of the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) record: Record,
    /// The version that it replaces; `None`: it creates the Lease, and fails if there is one.
    pub(super) replaces: Option<String>,
}

/// The reason why a leader lost the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// No renewal succeeded before the renew deadline.
    Deadline,
    /// The Lease names another holder (or, empty, none).
    Taken(String),
}

/// The meaning of a failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// The Lease was written since it was read; nothing was written by us.
    Conflict,
    /// Any other failure. It is not known whether a write was done.
    Unknown,
}

/// The state of one candidate.
#[derive(Clone, Debug)]
pub(super) struct Protocol {
    me: String,
    times: Times,
    sight: Sight,
    /// The last record seen, even if the Lease is deleted by now.
    last: Option<Record>,
    /// The time until which the holder of `last` may lead: its duration after it was first seen.
    held_until: Option<Instant>,
    /// The time at which our last successful write as a leader was sent.
    renewed: Option<Instant>,
    /// No request before this time, unless something new was seen.
    not_before: Instant,
    /// True if a write of ours was ever sent.
    claimed: bool,
    /// Conflicts since the last successful write.
    conflicts: u32,
    /// True if a watch delivers changes of the Lease.
    watched: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Sight {
    /// The Lease was not read yet, or a write was sent and its result is unknown.
    Unsure,
    Absent,
    Found(Found),
}

impl Protocol {
    pub(super) fn new(me: String, times: Times, now: Instant) -> Self {
        Self {
            me,
            times,
            sight: Sight::Unsure,
            last: None,
            held_until: None,
            renewed: None,
            not_before: now,
            claimed: false,
            conflicts: 0,
            watched: false,
        }
    }

    /// Returns true while we lead: from the first successful write until the lease is released or lost.
    pub(super) fn leads(&self) -> bool {
        self.renewed.is_some()
    }

    /// The holder of the Lease, as far as we know.
    pub(super) fn holder(&self) -> Option<&str> {
        self.last.as_ref().map(|record| &*record.holder).filter(|holder| !holder.is_empty())
    }

    /// The last seen resource version, to watch from.
    pub(super) fn version(&self) -> Option<&str> {
        match &self.sight {
            Sight::Found(found) => Some(&found.version),
            Sight::Unsure | Sight::Absent => None,
        }
    }

    /// The time at which a leader must have stopped, if no renewal succeeds until then.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.renewed.map(|renewed| renewed + self.times.renew_deadline)
    }

    /// Returns the next action. `wall` is only written to the Lease.
    pub(super) fn decide(&self, now: Instant, wall: Timestamp) -> LeaseAction {
        match self.renewed {
            Some(renewed) => self.decide_leading(renewed, now, wall),
            None => self.decide_standing_by(now, wall),
        }
    }

    fn decide_leading(&self, renewed: Instant, now: Instant, wall: Timestamp) -> LeaseAction {
        let deadline = renewed + self.times.renew_deadline;
        if let Sight::Found(found) = &self.sight
            && found.record.holder != self.me
        {
            return LeaseAction::Lost(Loss::Taken(found.record.holder.clone()));
        }
        if now >= deadline {
            return LeaseAction::Lost(Loss::Deadline);
        }
        let (due, step) = match &self.sight {
            Sight::Unsure => (self.not_before, LeaseAction::Read),
            Sight::Absent => (self.not_before, LeaseAction::Write(self.claim(None, wall))),
            Sight::Found(found) => (
                self.not_before.max(renewed + self.times.retry_period),
                LeaseAction::Write(self.claim(Some(&found.version), wall)),
            ),
        };
        if now >= due { step } else { LeaseAction::Wait(due.min(deadline)) }
    }

    fn decide_standing_by(&self, now: Instant, wall: Timestamp) -> LeaseAction {
        let free_at = self.held_until.unwrap_or(now);
        let replaces = match &self.sight {
            Sight::Unsure if now >= self.not_before => return LeaseAction::Read,
            Sight::Unsure => return LeaseAction::Wait(self.not_before),
            // The Lease was deleted, not released: the last known holder may not have noticed yet.
            Sight::Absent => None,
            Sight::Found(found) => Some(&*found.version),
        };
        if now >= free_at {
            return LeaseAction::Write(self.claim(replaces, wall));
        }
        match (self.watched, now >= self.not_before) {
            (true, _) => LeaseAction::Wait(free_at),
            (false, true) => LeaseAction::Read,
            (false, false) => LeaseAction::Wait(free_at.min(self.not_before)),
        }
    }

    /// Returns the write that makes us the holder, or keeps us the holder.
    fn claim(&self, replaces: Option<&str>, wall: Timestamp) -> Write {
        let renewed = match &self.last {
            Some(last) => last.next_renewal(wall),
            None => to_micros(wall),
        };
        let (acquired, transitions) = match &self.last {
            Some(last) if last.holder == self.me => (last.acquired, last.transitions),
            Some(last) => (Some(renewed), last.transitions.saturating_add(1)),
            None => (Some(renewed), 0),
        };
        let record = Record {
            holder: self.me.clone(),
            duration: Some(self.times.lease_duration),
            acquired,
            renewed: Some(renewed),
            transitions,
        };
        Write { record, replaces: replaces.map(str::to_owned) }
    }

    /// Returns the action that releases the lease, after all work has ended; `None` when there is nothing to
    /// do.
    pub(super) fn release(&self, now: Instant, wall: Timestamp) -> Option<LeaseAction> {
        if !self.claimed {
            return None;
        }
        let found = match &self.sight {
            Sight::Unsure if now < self.not_before => return Some(LeaseAction::Wait(self.not_before)),
            Sight::Unsure => return Some(LeaseAction::Read),
            Sight::Found(found) if found.record.holder == self.me => found,
            Sight::Absent | Sight::Found(_) => return None,
        };
        let now = found.record.next_renewal(wall);
        let record = Record {
            holder: String::new(),
            // The API server does not accept a duration of zero.
            duration: Some(Duration::from_secs(1)),
            acquired: Some(now),
            renewed: Some(now),
            transitions: found.record.transitions,
        };
        Some(LeaseAction::Write(Write { record, replaces: Some(found.version.clone()) }))
    }

    /// Records the Lease as it was read, watched, or returned by a write. `pause` is the delay before the
    /// next read.
    pub(super) fn saw(&mut self, found: Option<Found>, now: Instant, pause: Duration) {
        self.not_before = match self.renewed {
            // The next action is known, and a leader has no time to lose.
            Some(_) => now,
            None => now + pause,
        };
        let Some(found) = found else {
            self.sight = Sight::Absent;
            return;
        };
        let record = &found.record;
        if self.last.as_ref() != Some(record) {
            let duration = record.duration.unwrap_or(self.times.lease_duration);
            let held = !record.holder.is_empty() && record.holder != self.me;
            self.held_until = held.then(|| now + duration);
            self.last = Some(record.clone());
        }
        self.sight = Sight::Found(found);
    }

    /// Records whether a watch delivers changes; with one, reads are needed only when the lease seems to be
    /// free.
    pub(super) fn watched(&mut self, watched: bool) {
        self.watched = watched;
    }

    /// Records that a write is sent. Until its result is known the Lease is unknown, even if the write is
    /// cancelled.
    pub(super) fn sending(&mut self) {
        self.claimed = true;
        self.sight = Sight::Unsure;
    }

    /// Records that a write that was sent at `sent` succeeded with this Lease.
    pub(super) fn wrote(&mut self, found: Found, sent: Instant, now: Instant) {
        self.renewed = (found.record.holder == self.me).then_some(sent);
        self.conflicts = 0;
        self.saw(Some(found), now, Duration::ZERO);
    }

    /// Records that a request that was sent at `sent` failed. The next one is due `pause` after it was sent,
    /// not after it failed: the time for which it hung is already lost.
    pub(super) fn failed(&mut self, failed: &Failed, sent: Instant, now: Instant, pause: Duration) {
        // The cached Lease may be what caused the failure.
        self.sight = Sight::Unsure;
        self.conflicts += u32::from(*failed == Failed::Conflict);
        // One or two conflicts are a race that another candidate won. More have another cause, and must not
        // become a storm.
        let at_once = *failed == Failed::Conflict && self.conflicts <= CALM_CONFLICTS;
        self.not_before = if at_once { now } else { now.max(sent + pause) };
    }
}

#[cfg(test)]
mod tests;
