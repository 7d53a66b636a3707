//! The write history of an owner: what was written, refused and left unfinished between two reconciles. All of it may be
//! lost: it only spares requests.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_runtime::controller::Class;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::Uid;

use crate::error::NodeError;

/// How long the server's word on a content stands before it is asked again.
pub(crate) const REFUSAL: Duration = Duration::from_mins(5);
/// The same for an internal error, which may be the content's fault or that of a webhook which does not answer at the moment.
pub(crate) const UNEXPLAINED: Duration = Duration::from_secs(30);
/// How often a content must be refused with an internal error before that is taken for its last word.
const PATIENCE: u32 = 3;

/// How often one object may be written, before that is called a fight: so many at once, and one more each minute.
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
    /// Boxed: it is rare.
    refusal: Option<Box<Refusal>>,
    writes: Option<Writes>,
    unfinished: Option<Instant>,
    /// The server has taken a write of its object.
    written: bool,
}

struct Refusal {
    attempt: String,
    error: NodeError,
    times: u32,
    at: Instant,
}

impl Refusal {
    /// How long it stands.
    fn term(&self) -> Duration {
        if self.error.class == Class::Terminal { REFUSAL } else { UNEXPLAINED }
    }
}

struct Writes {
    digest: String,
    left: f64,
    at: Instant,
    told: bool,
}

/// Whether a write may be made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    Granted,
    /// It was just refused for this content: the same answer is not asked for again. Look again after this time.
    Refused(NodeError, Duration),
    /// It has been written too often: wait so long. `true` the first time.
    Fight(Duration, bool),
}

impl WriteHistory {
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }

    /// Asks whether this content may be written to this node's object, and counts it if so.
    ///
    /// `attempt` is the content with what it is written to: a refusal counts for that alone, a fight for the content.
    pub(crate) fn may_write(
        &self,
        key: &ObjectKey,
        uid: Uid,
        node: &str,
        digest: &str,
        attempt: &str,
        limit: u32,
    ) -> Permission {
        self.with(key, uid, |owner| {
            let node = owner.nodes.entry(node.to_owned()).or_default();
            if let Some(refusal) = &node.refusal
                && refusal.attempt == attempt
                && refusal.at.elapsed() < refusal.term()
                && (refusal.error.class == Class::Terminal || refusal.times >= PATIENCE)
            {
                let left = refusal.term().saturating_sub(refusal.at.elapsed());
                return Permission::Refused(refusal.error.clone(), left);
            }
            let now = Instant::now();
            let fresh = || Writes { digest: digest.to_owned(), left: f64::from(limit), at: now, told: false };
            let writes = node.writes.get_or_insert_with(fresh);
            if writes.digest != digest {
                *writes = fresh();
            }
            let refilled = now.duration_since(writes.at).as_secs_f64() / REFILL.as_secs_f64();
            writes.left = (writes.left + refilled).min(f64::from(limit));
            writes.at = now;
            if writes.left < 1.0 {
                let wait = REFILL.mul_f64(1.0 - writes.left);
                return Permission::Fight(wait, !std::mem::replace(&mut writes.told, true));
            }
            writes.left -= 1.0;
            Permission::Granted
        })
    }

    /// Takes back that a write was counted: it failed.
    pub(crate) fn not_written(&self, key: &ObjectKey, uid: Uid, node: &str) {
        self.with(key, uid, |owner| {
            if let Some(writes) = owner.nodes.get_mut(node).and_then(|node| node.writes.as_mut()) {
                writes.left += 1.0;
            }
        });
    }

    /// Remembers that the server would not have this content.
    pub(crate) fn refused(
        &self,
        key: &ObjectKey,
        uid: Uid,
        node: &str,
        attempt: &str,
        error: &NodeError,
    ) -> u32 {
        self.with(key, uid, |owner| {
            let node = owner.nodes.entry(node.to_owned()).or_default();
            let times = node
                .refusal
                .as_ref()
                .filter(|refusal| refusal.attempt == attempt)
                .map_or(0, |refusal| refusal.times)
                + 1;
            node.refusal = Some(Box::new(Refusal {
                attempt: attempt.to_owned(),
                error: error.clone(),
                times,
                at: Instant::now(),
            }));
            times
        })
    }

    /// Returns whether so many refusals are the last word.
    pub(crate) fn is_last_word(times: u32) -> bool {
        times >= PATIENCE
    }

    /// The server took it after all.
    pub(crate) fn accepted(&self, key: &ObjectKey, uid: Uid, node: &str) {
        self.with(key, uid, |owner| {
            if let Some(node) = owner.nodes.get_mut(node) {
                node.refusal = None;
                node.written = true;
            }
        });
    }

    /// Returns whether this node's object has been written in this life.
    pub(crate) fn was_written(&self, key: &ObjectKey, uid: Uid, node: &str) -> bool {
        self.with(key, uid, |owner| owner.nodes.get(node).is_some_and(|node| node.written))
    }

    /// How long a step has been unfinished; from now on, if it was not.
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

    const UID: Uid = Uid::from_bytes([1; 16]);

    #[tokio::test(start_paused = true)]
    async fn a_content_that_was_found_wrong_is_not_sent_again_until_it_changes_or_time_passes() {
        let history = WriteHistory::default();
        let wrong = NodeError::terminal(Reason::Invalid, "no");
        assert_eq!(history.may_write(&key(), UID, "n", "a", "a", 9), Permission::Granted);
        history.refused(&key(), UID, "n", "a", &wrong);
        assert_eq!(
            history.may_write(&key(), UID, "n", "a", "a", 9),
            Permission::Refused(wrong.clone(), REFUSAL)
        );
        assert_eq!(history.may_write(&key(), UID, "n", "b", "b", 9), Permission::Granted);
        assert_eq!(history.may_write(&key(), UID, "n", "a", "a on another", 9), Permission::Granted);
        tokio::time::advance(REFUSAL).await;
        assert_eq!(history.may_write(&key(), UID, "n", "a", "a", 9), Permission::Granted);
    }

    #[tokio::test(start_paused = true)]
    async fn an_internal_error_is_believed_the_third_time_but_not_for_long() {
        let history = WriteHistory::default();
        let broken = NodeError::transient(Reason::Unavailable, "500");
        for _ in 0..2 {
            history.refused(&key(), UID, "n", "a", &broken);
            assert_eq!(history.may_write(&key(), UID, "n", "a", "a", 9), Permission::Granted);
        }
        let times = history.refused(&key(), UID, "n", "a", &broken);
        assert!(WriteHistory::is_last_word(times));
        assert_eq!(
            history.may_write(&key(), UID, "n", "a", "a", 9),
            Permission::Refused(broken, UNEXPLAINED)
        );
        tokio::time::advance(UNEXPLAINED).await;
        assert_eq!(history.may_write(&key(), UID, "n", "a", "a", 9), Permission::Granted);
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_is_written_again_and_again_is_a_fight() {
        let history = WriteHistory::default();
        for _ in 0..3 {
            assert_eq!(history.may_write(&key(), UID, "n", "a", "a", 3), Permission::Granted);
        }
        assert!(matches!(history.may_write(&key(), UID, "n", "a", "a", 3), Permission::Fight(_, true)));
        assert!(matches!(history.may_write(&key(), UID, "n", "a", "a", 3), Permission::Fight(_, false)));
        assert_eq!(history.may_write(&key(), UID, "other", "a", "a", 3), Permission::Granted);
        assert_eq!(
            history.may_write(&key(), UID, "n", "b", "b", 3),
            Permission::Granted,
            "other content is no fight"
        );
        tokio::time::advance(REFILL).await;
        assert_eq!(history.may_write(&key(), UID, "n", "b", "b", 3), Permission::Granted);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_failed_is_no_part_of_a_fight() {
        let history = WriteHistory::default();
        for _ in 0..10 {
            assert_eq!(history.may_write(&key(), UID, "n", "a", "a", 3), Permission::Granted);
            history.not_written(&key(), UID, "n");
        }
        assert_eq!(history.may_write(&key(), UID, "n", "a", "a", 3), Permission::Granted);
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_the_server_took_was_written() {
        let history = WriteHistory::default();
        history.accepted(&key(), UID, "n");
        assert!(!history.was_written(&key(), UID, "n"), "nothing was sent");
        assert_eq!(history.may_write(&key(), UID, "n", "a", "a", 3), Permission::Granted);
        assert!(!history.was_written(&key(), UID, "n"), "no answer yet");
        history.accepted(&key(), UID, "n");
        assert!(history.was_written(&key(), UID, "n"));
        assert!(!history.was_written(&key(), Uid::from_bytes([2; 16]), "n"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_owner_of_an_old_name_starts_afresh() {
        let history = WriteHistory::default();
        history.refused(&key(), UID, "n", "a", &NodeError::terminal(Reason::Invalid, "no"));
        assert_eq!(
            history.may_write(&key(), Uid::from_bytes([2; 16]), "n", "a", "a", 9),
            Permission::Granted
        );
    }
}
