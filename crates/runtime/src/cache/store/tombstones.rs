//! Deleted objects that must not come back.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::meta::Uid;

/// The time for which a deletion is remembered when no event confirms it (the object was outside the
/// selection).
pub(super) const LIFE: Duration = Duration::from_mins(15);

/// Deleted objects by uid: events with such a uid are ignored.
///
/// Recording a deletion costs the same however many are remembered: a controller that deletes ten thousand
/// objects would otherwise look at fifty million tombstones.
#[derive(Default)]
pub(super) struct Tombstones {
    by_uid: HashMap<Uid, Tombstone>,
    /// The uids in order of time. Confirmed deletions stay here until their time is over.
    by_time: VecDeque<(Instant, Uid)>,
}

struct Tombstone {
    /// The number of lists when the tombstone was created: a later list confirms the deletion.
    lists: u32,
    at: Instant,
}

impl Tombstones {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_uid.len()
    }

    pub(super) fn contains(&self, uid: &Uid) -> bool {
        self.by_uid.contains_key(uid)
    }

    pub(super) fn insert(&mut self, uid: Uid, lists: u32, now: Instant) {
        self.by_uid.insert(uid, Tombstone { lists, at: now });
        self.by_time.push_back((now, uid));
    }

    /// Forgets a deletion that an event has confirmed.
    pub(super) fn confirm(&mut self, uid: &Uid) {
        self.by_uid.remove(uid);
        if self.by_uid.is_empty() {
            self.by_time.clear();
        }
    }

    /// Forgets the deletions before this list.
    pub(super) fn confirm_before(&mut self, list: u32) {
        self.by_uid.retain(|_, tombstone| tombstone.lists >= list);
        let by_uid = &self.by_uid;
        self.by_time.retain(|(_, uid)| by_uid.contains_key(uid));
    }

    pub(super) fn clear(&mut self) {
        self.by_uid.clear();
        self.by_time.clear();
    }

    /// Forgets deletions that nothing has confirmed for a long time. Returns the number of tombstones that it
    /// looked at.
    pub(super) fn expire(&mut self, now: Instant) -> usize {
        let mut seen = 0;
        while let Some((at, uid)) = self.by_time.front() {
            seen += 1;
            if now.duration_since(*at) < LIFE {
                break;
            }
            // The same uid may have been recorded again since.
            if self.by_uid.get(uid).is_some_and(|tombstone| tombstone.at == *at) {
                self.by_uid.remove(uid);
            }
            self.by_time.pop_front();
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(number: usize) -> Uid {
        format!("00000000-0000-0000-0000-{number:012}").parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn seam_low_a_delete_does_not_look_at_all_earlier_ones() {
        let (mut tombstones, now) = (Tombstones::default(), Instant::now());
        let mut seen = 0;
        for number in 0..10_000 {
            seen += tombstones.expire(now);
            tombstones.insert(uid(number), 0, now);
        }
        assert!(seen <= 10_000, "{seen} tombstones were looked at");
        assert_eq!(tombstones.len(), 10_000);
        tombstones.confirm(&uid(3));
        assert!(!tombstones.contains(&uid(3)) && tombstones.contains(&uid(4)));
        assert_eq!(tombstones.expire(now + LIFE), 10_000);
        assert_eq!((tombstones.len(), tombstones.by_time.len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_uid_that_is_recorded_again_lives_from_then() {
        let (mut tombstones, now) = (Tombstones::default(), Instant::now());
        tombstones.insert(uid(1), 0, now);
        tombstones.insert(uid(1), 0, now + LIFE / 2);
        tombstones.expire(now + LIFE);
        assert!(tombstones.contains(&uid(1)));
        tombstones.confirm_before(1);
        assert_eq!((tombstones.len(), tombstones.by_time.len()), (0, 0));
    }
}
