//! The protocol: what a candidate does next, as a pure function of what it has seen and of the time.
//!
//! Promises: nobody is judged by comparing clocks (a holder is gone when its record did not change *in our eyes* for the
//! duration that the record says); every write names the version that it replaces; who leads has stopped before
//! anybody who follows these rules can lead.
//!
//! Does not: wait, read or write. [`campaign`](super::campaign) does.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::record::{Found, Record, to_micros};
use super::times::Times;

/// So many conflicts in a row are looked into without a pause.
const CALM_CONFLICTS: u32 = 3;

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Read the Lease.
    Read,
    /// Write the Lease: to acquire it, to renew it or to release it.
    Write(Write),
    /// Nothing before this time, unless the Lease is seen to change.
    Wait(Instant),
    /// The lease is lost: stop all work.
    Lost(Loss),
}

/// A write of the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) record: Record,
    /// The version that it replaces; `None`: it creates, and fails if there is one.
    pub(super) replaces: Option<String>,
}

/// How a leader ceased to be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// No renewal worked for the renew deadline.
    Deadline,
    /// The Lease is somebody else's (or, empty, nobody's).
    Taken(String),
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// Somebody wrote since we read; nothing was written.
    Conflict,
    /// Anything else. Whether a write was done is not known.
    Unknown,
}

/// One candidate's view of the election.
#[derive(Clone, Debug)]
pub(super) struct Protocol {
    me: String,
    times: Times,
    sight: Sight,
    /// The last record that was there, also when the Lease is gone by now.
    last: Option<Record>,
    /// Until when the holder of `last` may lead: its duration after it was first seen.
    held_until: Option<Instant>,
    /// When our last write that worked was sent, if that was as a leader.
    renewed: Option<Instant>,
    /// No request before this time, except where something new was seen.
    not_before: Instant,
    /// Whether a write of ours ever went out.
    claimed: bool,
    /// Conflicts since the last write that worked.
    conflicts: u32,
    /// Whether changes of the Lease are told to us.
    watched: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Sight {
    /// Not read yet, or a write went out and its fate is not known.
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

    /// Whether we lead: from the first write that worked until the lease is released or lost.
    pub(super) fn leads(&self) -> bool {
        self.renewed.is_some()
    }

    /// Who holds the Lease, as far as we know.
    pub(super) fn holder(&self) -> Option<&str> {
        self.last.as_ref().map(|record| &*record.holder).filter(|holder| !holder.is_empty())
    }

    /// The version that was seen last, to watch from.
    pub(super) fn version(&self) -> Option<&str> {
        match &self.sight {
            Sight::Found(found) => Some(&found.version),
            Sight::Unsure | Sight::Absent => None,
        }
    }

    /// When a leader must have stopped, if no renewal works until then.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.renewed.map(|renewed| renewed + self.times.renew_deadline)
    }

    /// What to do now. `wall` is only written down.
    pub(super) fn decide(&self, now: Instant, wall: Timestamp) -> Step {
        match self.renewed {
            Some(renewed) => self.decide_leading(renewed, now, wall),
            None => self.decide_standing_by(now, wall),
        }
    }

    fn decide_leading(&self, renewed: Instant, now: Instant, wall: Timestamp) -> Step {
        let deadline = renewed + self.times.renew_deadline;
        if let Sight::Found(found) = &self.sight
            && found.record.holder != self.me
        {
            return Step::Lost(Loss::Taken(found.record.holder.clone()));
        }
        if now >= deadline {
            return Step::Lost(Loss::Deadline);
        }
        let (due, step) = match &self.sight {
            Sight::Unsure => (self.not_before, Step::Read),
            Sight::Absent => (self.not_before, Step::Write(self.claim(None, wall))),
            Sight::Found(found) => (
                self.not_before.max(renewed + self.times.retry_period),
                Step::Write(self.claim(Some(&found.version), wall)),
            ),
        };
        if now >= due { step } else { Step::Wait(due.min(deadline)) }
    }

    fn decide_standing_by(&self, now: Instant, wall: Timestamp) -> Step {
        let free_at = self.held_until.unwrap_or(now);
        let replaces = match &self.sight {
            Sight::Unsure if now >= self.not_before => return Step::Read,
            Sight::Unsure => return Step::Wait(self.not_before),
            // Somebody deleted the Lease, not its holder: who was seen to hold it may not know yet.
            Sight::Absent => None,
            Sight::Found(found) => Some(&*found.version),
        };
        if now >= free_at {
            return Step::Write(self.claim(replaces, wall));
        }
        match (self.watched, now >= self.not_before) {
            (true, _) => Step::Wait(free_at),
            (false, true) => Step::Read,
            (false, false) => Step::Wait(free_at.min(self.not_before)),
        }
    }

    /// The record that makes us the holder, or keeps us so.
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

    /// What to do to release the lease, after all work has ended; `None` when there is nothing to do.
    pub(super) fn release(&self, now: Instant, wall: Timestamp) -> Option<Step> {
        if !self.claimed {
            return None;
        }
        let found = match &self.sight {
            Sight::Unsure if now < self.not_before => return Some(Step::Wait(self.not_before)),
            Sight::Unsure => return Some(Step::Read),
            Sight::Found(found) if found.record.holder == self.me => found,
            Sight::Absent | Sight::Found(_) => return None,
        };
        let now = found.record.next_renewal(wall);
        let record = Record {
            holder: String::new(),
            // Not zero, which the API server would not take.
            duration: Some(Duration::from_secs(1)),
            acquired: Some(now),
            renewed: Some(now),
            transitions: found.record.transitions,
        };
        Some(Step::Write(Write { record, replaces: Some(found.version.clone()) }))
    }

    /// The Lease was seen: read, watched, or as the answer to a write. `pause` is how long to wait before we look again
    /// by ourselves.
    pub(super) fn saw(&mut self, found: Option<Found>, now: Instant, pause: Duration) {
        self.not_before = match self.renewed {
            // What to do now is known, and a leader has no time to lose.
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

    /// Whether changes of the Lease are told to us from now on; looking is then needed only when it seems to be free.
    pub(super) fn watched(&mut self, watched: bool) {
        self.watched = watched;
    }

    /// A write goes out. Until its fate is known, nothing is: also if nobody waits for the answer.
    pub(super) fn sending(&mut self) {
        self.claimed = true;
        self.sight = Sight::Unsure;
    }

    /// A write that was sent then was done, and this is the Lease now.
    pub(super) fn wrote(&mut self, found: Found, sent: Instant, now: Instant) {
        self.renewed = (found.record.holder == self.me).then_some(sent);
        self.conflicts = 0;
        self.saw(Some(found), now, Duration::ZERO);
    }

    /// A request that was sent then failed. The next one comes `pause` after that, not after the failure: time that went by
    /// while it hung is time lost already.
    pub(super) fn failed(&mut self, failed: &Failed, sent: Instant, now: Instant, pause: Duration) {
        // What we believed to know may be what failed.
        self.sight = Sight::Unsure;
        self.conflicts += u32::from(*failed == Failed::Conflict);
        // A conflict or two are a race that somebody won. More are something else, and must not become a storm.
        let at_once = *failed == Failed::Conflict && self.conflicts <= CALM_CONFLICTS;
        self.not_before = if at_once { now } else { now.max(sent + pause) };
    }
}

#[cfg(test)]
mod tests;
