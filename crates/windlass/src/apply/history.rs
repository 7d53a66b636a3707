//! The write history of an owner: writes, refusals and unfinished steps between two reconciles. All of it may
//! be lost: it only saves requests.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_runtime::controller::Class;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::Uid;

use crate::error::NodeError;

/// The time for which a refused content is not sent again.
pub(crate) const REFUSAL: Duration = Duration::from_mins(5);
/// The same time for an internal error: its cause may be the content, or a webhook that does not answer at
/// the moment.
pub(crate) const UNEXPLAINED: Duration = Duration::from_secs(30);
/// The time for which a refused content is tried again after an object is gone that may have been the cause:
/// ports and quotas are released a little after the object that held them.
const GRACE: Duration = Duration::from_mins(1);
/// The number of internal errors after which a content counts as refused.
const PATIENCE: u32 = 3;

/// The number of times that one object may be written before the writes count as a fight; one more write is
/// allowed each minute.
pub(crate) const WRITES: u32 = 20;
const REFILL: Duration = Duration::from_mins(1);

/// The write history of each node, by owner.
#[derive(Default)]
pub(crate) struct WriteHistory(Mutex<HashMap<ObjectKey, Owner>>);

struct Owner {
    uid: Uid,
    nodes: HashMap<String, Node>,
}

#[derive(Default)]
struct Node {
    /// Boxed, because refusals are rare.
    refusal: Option<Box<RefusedWrite>>,
    writes: Option<Writes>,
    unfinished: Option<Instant>,
    /// True if the server has accepted a write of the object.
    written: bool,
}

struct RefusedWrite {
    content: String,
    beside: String,
    /// The time since which an object is gone that may have been the cause.
    freed: Option<Instant>,
    error: NodeError,
    times: u32,
    at: Instant,
}

impl RefusedWrite {
    fn is_of(&self, attempt: Attempt<'_>) -> bool {
        self.content == attempt.content
    }

    /// Returns whether the cause may have been removed a moment ago.
    fn is_just_freed(&self) -> bool {
        self.freed.is_some_and(|freed| freed.elapsed() < GRACE)
    }

    /// Returns the time for which the refusal stands.
    fn term(&self) -> Duration {
        if self.error.class == Class::Terminal { REFUSAL } else { UNEXPLAINED }
    }
}

struct Writes {
    /// The generation of the owner's spec that the writes are for.
    generation: i64,
    digest: String,
    /// The number of times that the content differed from the one before.
    changes: u32,
    left: f64,
    at: Instant,
    reported: bool,
}

/// A content that was sent to the server, and its surroundings: a refusal counts only for this combination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt<'a> {
    /// The content, and the live object that it was applied to.
    pub(crate) content: &'a str,
    /// The objects that have left the plan and still exist. One of them may be the cause of a refusal.
    pub(crate) beside: &'a str,
}

/// The answer of the server to a write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LastWord {
    /// The number of times that this content was refused.
    pub(crate) times: u32,
    /// False if the cause may have been removed a moment ago: then another attempt is worthwhile.
    pub(crate) stands: bool,
}

/// The write budget of an object: the number of writes for one generation of its owner's spec, whatever their
/// content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) generation: i64,
    pub(crate) limit: u32,
}

/// The answer to the question whether a write may be made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    Granted,
    /// This content was refused a short time ago, and is not sent again. Look again after this time.
    Refused(NodeError, Duration),
    /// The object has been written too often.
    Exhausted {
        /// The time until the next write may be made.
        wait: Duration,
        /// True if this is the first time that the budget is exhausted.
        first: bool,
        /// True if most writes had other content than the one before: the plan does not converge.
        restless: bool,
    },
}

impl WriteHistory {
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }

    /// Returns whether this content may be written to this node's object, and counts the write if so.
    pub(crate) fn may_write(
        &self,
        key: &ObjectKey,
        uid: Uid,
        node: &str,
        digest: &str,
        attempt: Attempt<'_>,
        budget: Budget,
    ) -> Permission {
        self.with(key, uid, |owner| {
            let node = owner.nodes.entry(node.to_owned()).or_default();
            if let Some(refusal) = &node.refusal
                && refusal.is_of(attempt)
                && refusal.beside == attempt.beside
                && !refusal.is_just_freed()
                && refusal.at.elapsed() < refusal.term()
                && (refusal.error.class == Class::Terminal || refusal.times >= PATIENCE)
            {
                let left = refusal.term().saturating_sub(refusal.at.elapsed());
                return Permission::Refused(refusal.error.clone(), left);
            }
            let now = Instant::now();
            let Budget { generation, limit } = budget;
            let (left, digest) = (f64::from(limit), digest.to_owned());
            let fresh =
                Writes { generation, digest: digest.clone(), changes: 0, left, at: now, reported: false };
            let writes = node.writes.get_or_insert(fresh);
            if writes.generation != generation {
                let (left, changes, reported) = (f64::from(limit), 0, false);
                *writes = Writes { generation, digest: digest.clone(), changes, left, at: now, reported };
            }
            if writes.digest != digest {
                writes.changes += 1;
                writes.digest = digest;
            }
            let refilled = now.duration_since(writes.at).as_secs_f64() / REFILL.as_secs_f64();
            writes.left = (writes.left + refilled).min(f64::from(limit));
            writes.at = now;
            if writes.left < 1.0 {
                let wait = REFILL.mul_f64(1.0 - writes.left);
                let first = !std::mem::replace(&mut writes.reported, true);
                return Permission::Exhausted { wait, first, restless: writes.changes * 2 > limit };
            }
            writes.left -= 1.0;
            Permission::Granted
        })
    }

    /// Removes a failed write from the count.
    pub(crate) fn not_written(&self, key: &ObjectKey, uid: Uid, node: &str) {
        self.with(key, uid, |owner| {
            if let Some(writes) = owner.nodes.get_mut(node).and_then(|node| node.writes.as_mut()) {
                writes.left += 1.0;
            }
        });
    }

    /// Records that the server refused this content.
    pub(crate) fn refused(
        &self,
        key: &ObjectKey,
        uid: Uid,
        node: &str,
        attempt: Attempt<'_>,
        error: &NodeError,
    ) -> LastWord {
        self.with(key, uid, |owner| {
            let node = owner.nodes.entry(node.to_owned()).or_default();
            let before = node.refusal.take().filter(|refusal| refusal.is_of(attempt));
            let now = Instant::now();
            let freed = before.as_ref().and_then(|before| {
                let is_freed = !before.beside.is_empty() && before.beside != attempt.beside;
                if is_freed { Some(now) } else { before.freed }
            });
            let refusal = RefusedWrite {
                content: attempt.content.to_owned(),
                beside: attempt.beside.to_owned(),
                freed,
                error: error.clone(),
                times: before.map_or(0, |before| before.times) + 1,
                at: now,
            };
            let last_word = LastWord { times: refusal.times, stands: !refusal.is_just_freed() };
            node.refusal = Some(Box::new(refusal));
            last_word
        })
    }

    /// Returns whether this number of refusals is final.
    pub(crate) fn is_last_word(times: u32) -> bool {
        times >= PATIENCE
    }

    /// Records that the server accepted the content.
    pub(crate) fn accepted(&self, key: &ObjectKey, uid: Uid, node: &str) {
        self.with(key, uid, |owner| {
            if let Some(node) = owner.nodes.get_mut(node) {
                node.refusal = None;
                node.written = true;
            }
        });
    }

    /// Returns whether this process has written this node's object.
    pub(crate) fn was_written(&self, key: &ObjectKey, uid: Uid, node: &str) -> bool {
        self.with(key, uid, |owner| owner.nodes.get(node).is_some_and(|node| node.written))
    }

    /// Returns the time for which a step has been unfinished; the time starts now if the step was finished
    /// before.
    pub(crate) fn unfinished_for(&self, key: &ObjectKey, uid: Uid, node: &str) -> Duration {
        self.with(key, uid, |owner| {
            let node = owner.nodes.entry(node.to_owned()).or_default();
            node.unfinished.get_or_insert_with(Instant::now).elapsed()
        })
    }

    pub(crate) fn finished(&self, key: &ObjectKey, uid: Uid, node: &str) {
        self.with(key, uid, |owner| {
            if let Some(node) = owner.nodes.get_mut(node) {
                node.unfinished = None;
            }
        });
    }

    fn with<T>(&self, key: &ObjectKey, uid: Uid, look: impl FnOnce(&mut Owner) -> T) -> T {
        let fresh = || Owner { uid, nodes: HashMap::new() };
        let mut owners = self.0.lock();
        let owner = owners.entry(key.clone()).or_insert_with(fresh);
        if owner.uid != uid {
            *owner = fresh();
        }
        look(owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Reason;

    fn key() -> ObjectKey {
        ObjectKey::namespaced("shop", "web")
    }

    fn alone(content: &str) -> Attempt<'_> {
        Attempt { content, beside: "" }
    }

    #[tokio::test(start_paused = true)]
    async fn seam_h3_a_refusal_is_asked_again_for_a_while_when_something_beside_it_is_gone() {
        let history = WriteHistory::default();
        let wrong = NodeError::terminal(Reason::Invalid, "the port is taken");
        let beside = Attempt { content: "a", beside: "Service old" };
        let may = |attempt| history.may_write(&key(), UID, "n", "a", attempt, budget(9));
        assert!(history.refused(&key(), UID, "n", beside, &wrong).stands);
        assert!(matches!(may(beside), Permission::Refused(..)));
        assert_eq!(may(alone("a")), Permission::Granted, "the Service is gone");
        assert!(!history.refused(&key(), UID, "n", alone("a"), &wrong).stands, "its port is not free yet");
        assert_eq!(may(alone("a")), Permission::Granted);
        tokio::time::advance(GRACE).await;
        assert!(history.refused(&key(), UID, "n", alone("a"), &wrong).stands);
        assert!(matches!(may(alone("a")), Permission::Refused(..)));
    }

    fn budget(limit: u32) -> Budget {
        Budget { generation: 1, limit }
    }

    const UID: Uid = Uid::from_bytes([1; 16]);

    #[tokio::test(start_paused = true)]
    async fn a_refused_content_is_not_sent_again_until_it_changes_or_time_passes() {
        let history = WriteHistory::default();
        let wrong = NodeError::terminal(Reason::Invalid, "no");
        assert_eq!(history.may_write(&key(), UID, "n", "a", alone("a"), budget(9)), Permission::Granted);
        history.refused(&key(), UID, "n", alone("a"), &wrong);
        assert_eq!(
            history.may_write(&key(), UID, "n", "a", alone("a"), budget(9)),
            Permission::Refused(wrong.clone(), REFUSAL)
        );
        assert_eq!(history.may_write(&key(), UID, "n", "b", alone("b"), budget(9)), Permission::Granted);
        assert_eq!(
            history.may_write(&key(), UID, "n", "a", alone("a on another"), budget(9)),
            Permission::Granted
        );
        tokio::time::advance(REFUSAL).await;
        assert_eq!(history.may_write(&key(), UID, "n", "a", alone("a"), budget(9)), Permission::Granted);
    }

    #[tokio::test(start_paused = true)]
    async fn a_content_with_three_internal_errors_counts_as_refused_for_a_short_time() {
        let history = WriteHistory::default();
        let broken = NodeError::transient(Reason::Unavailable, "500");
        for _ in 0..2 {
            history.refused(&key(), UID, "n", alone("a"), &broken);
            assert_eq!(history.may_write(&key(), UID, "n", "a", alone("a"), budget(9)), Permission::Granted);
        }
        let last_word = history.refused(&key(), UID, "n", alone("a"), &broken);
        assert!(WriteHistory::is_last_word(last_word.times));
        assert_eq!(
            history.may_write(&key(), UID, "n", "a", alone("a"), budget(9)),
            Permission::Refused(broken, UNEXPLAINED)
        );
        tokio::time::advance(UNEXPLAINED).await;
        assert_eq!(history.may_write(&key(), UID, "n", "a", alone("a"), budget(9)), Permission::Granted);
    }

    #[tokio::test(start_paused = true)]
    async fn repeated_writes_of_one_object_are_a_fight() {
        let history = WriteHistory::default();
        for _ in 0..3 {
            assert_eq!(history.may_write(&key(), UID, "n", "a", alone("a"), budget(3)), Permission::Granted);
        }
        let is_fight = |permission: Permission, the_first: bool| matches!(permission, Permission::Exhausted { first, restless: false, .. } if first == the_first);
        assert!(is_fight(history.may_write(&key(), UID, "n", "a", alone("a"), budget(3)), true));
        assert!(is_fight(history.may_write(&key(), UID, "n", "a", alone("a"), budget(3)), false));
        assert_eq!(history.may_write(&key(), UID, "other", "a", alone("a"), budget(3)), Permission::Granted);
        let edited = Budget { generation: 2, ..budget(3) };
        assert_eq!(
            history.may_write(&key(), UID, "n", "b", alone("b"), edited),
            Permission::Granted,
            "another spec is no fight"
        );
        tokio::time::advance(REFILL).await;
        assert_eq!(history.may_write(&key(), UID, "n", "b", alone("b"), edited), Permission::Granted);
    }

    #[tokio::test(start_paused = true)]
    async fn seam_m7_other_content_each_time_uses_the_budget_up_too() {
        let history = WriteHistory::default();
        for content in ["a", "b", "c"] {
            assert_eq!(
                history.may_write(&key(), UID, "n", content, alone(content), budget(3)),
                Permission::Granted
            );
        }
        let fourth = history.may_write(&key(), UID, "n", "d", alone("d"), budget(3));
        assert!(matches!(fourth, Permission::Exhausted { first: true, restless: true, .. }), "{fourth:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_write_does_not_count_towards_a_fight() {
        let history = WriteHistory::default();
        for _ in 0..10 {
            assert_eq!(history.may_write(&key(), UID, "n", "a", alone("a"), budget(3)), Permission::Granted);
            history.not_written(&key(), UID, "n");
        }
        assert_eq!(history.may_write(&key(), UID, "n", "a", alone("a"), budget(3)), Permission::Granted);
    }

    #[tokio::test(start_paused = true)]
    async fn only_an_accepted_write_counts_as_written() {
        let history = WriteHistory::default();
        history.accepted(&key(), UID, "n");
        assert!(!history.was_written(&key(), UID, "n"), "nothing was sent");
        assert_eq!(history.may_write(&key(), UID, "n", "a", alone("a"), budget(3)), Permission::Granted);
        assert!(!history.was_written(&key(), UID, "n"), "no answer yet");
        history.accepted(&key(), UID, "n");
        assert!(history.was_written(&key(), UID, "n"));
        assert!(!history.was_written(&key(), Uid::from_bytes([2; 16]), "n"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_owner_of_the_same_name_has_an_empty_history() {
        let history = WriteHistory::default();
        history.refused(&key(), UID, "n", alone("a"), &NodeError::terminal(Reason::Invalid, "no"));
        assert_eq!(
            history.may_write(&key(), Uid::from_bytes([2; 16]), "n", "a", alone("a"), budget(9)),
            Permission::Granted
        );
    }
}
