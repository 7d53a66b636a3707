//! The status debounce: short-lived status changes are delayed, so that quick work costs one write.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::Uid;

use super::status::{Verdict, condition};
use crate::plan::owner::{self, OwnerView};

/// The times at which statuses were written and owners became unready. All of it may be lost: it only saves
/// writes.
pub(crate) struct Debounce {
    within: Duration,
    owners: Mutex<HashMap<ObjectKey, Times>>,
}

struct Times {
    uid: Uid,
    first_seen: Instant,
    /// The time at which the status was last written.
    written: Option<Instant>,
    /// The time since which the owner is not ready, while its status still says that it is.
    unready: Option<Instant>,
}

impl Debounce {
    /// Returns a debounce that delays statuses by up to this long.
    pub(crate) fn new(within: Duration) -> Self {
        Self { within, owners: Mutex::default() }
    }

    /// Returns the time by which a status is delayed, if it is. The first status is delayed, as are another
    /// message about the same wait, and a change from ready to progressing (`observedGeneration` says which
    /// generation a `Ready` is about).
    pub(crate) fn delay(&self, owner: &OwnerView, verdict: &Verdict) -> Option<Duration> {
        if verdict.ready || verdict.failed {
            self.with(owner, |times| times.unready = None);
            return None;
        }
        let since = match owner::condition(&owner.status, condition::READY) {
            None => self.with(owner, |times| times.first_seen.elapsed()),
            Some((status, _)) if status == "True" => {
                self.with(owner, |times| times.unready.get_or_insert_with(Instant::now).elapsed())
            }
            Some((status, reason)) if status == "False" && reason == verdict.reason.as_str() => {
                self.with(owner, |times| times.written.map(|written| written.elapsed()))?
            }
            Some(_) => return None,
        };
        self.within.checked_sub(since).filter(|left| !left.is_zero())
    }

    /// Records that the owner's status was written.
    pub(crate) fn written(&self, owner: &OwnerView) {
        self.with(owner, |times| times.written = Some(Instant::now()));
    }

    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.owners.lock().remove(key);
    }

    fn with<T>(&self, owner: &OwnerView, look: impl FnOnce(&mut Times) -> T) -> T {
        let fresh = || Times { uid: owner.uid, first_seen: Instant::now(), written: None, unready: None };
        let mut owners = self.owners.lock();
        let times = owners.entry(owner.key.clone()).or_insert_with(fresh);
        if times.uid != owner.uid {
            *times = fresh();
        }
        look(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Reason;
    use serde_json::{Value, json};

    fn owner(status: Value) -> OwnerView {
        OwnerView::sample("web", status)
    }

    #[tokio::test(start_paused = true)]
    async fn the_delay_of_an_unready_status_starts_when_the_owner_was_last_ready() {
        let (second, debounce) = (Duration::from_secs(1), Debounce::new(Duration::from_secs(3)));
        let owner = owner(json!({"conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}]}));
        let waiting = Verdict::waiting("more time");
        assert_eq!(debounce.delay(&owner, &waiting), Some(3 * second));
        tokio::time::advance(second).await;
        assert_eq!(debounce.delay(&owner, &waiting), Some(2 * second));
        assert_eq!(debounce.delay(&owner, &Verdict::stopped(Reason::Invalid, "no")), None, "it settles");
        tokio::time::advance(second).await;
        assert_eq!(debounce.delay(&owner, &waiting), Some(3 * second));
        tokio::time::advance(3 * second).await;
        assert_eq!(debounce.delay(&owner, &waiting), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_with_another_reason_is_not_delayed() {
        let debounce = Debounce::new(Duration::from_secs(3));
        let owner = owner(json!({"conditions": [{"type": "Ready", "status": "False", "reason": "Paused"}]}));
        assert_eq!(debounce.delay(&owner, &Verdict::waiting("more time")), None);
    }
}
