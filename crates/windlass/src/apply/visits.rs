//! The ends of the visits of a run: an effect waits until the objects that it names are applied.

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::plan::drawn::Drawn;

/// The end of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VisitEnd {
    /// The node is ready.
    Ready,
    /// The node is applied and waits for something.
    Waiting,
    /// The node failed.
    Failed,
}

/// The ends of the visits of one run, by node.
pub(super) struct Visits {
    ends: Mutex<Vec<Option<VisitEnd>>>,
    ended: Notify,
}

impl Visits {
    pub(super) fn new(nodes: usize) -> Self {
        Self { ends: Mutex::new(vec![None; nodes]), ended: Notify::new() }
    }

    /// Records the end of a visit.
    pub(super) fn end(&self, index: usize, end: VisitEnd) {
        self.ends.lock()[index] = Some(end);
        self.ended.notify_waiters();
    }

    /// Waits until a node has been visited, and returns the end of its visit. Returns `None` for a node that
    /// is not visited in this run, because a node before it is not ready.
    ///
    /// Cancel safe.
    pub(super) async fn end_of(&self, index: usize, drawn: &Drawn) -> Option<VisitEnd> {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // Registered before the look, so that an end in between is not missed.
            ended.as_mut().enable();
            if let Some(end) = self.ends.lock()[index] {
                return Some(end);
            }
            if self.is_held(index, drawn) {
                return None;
            }
            ended.await;
        }
    }

    /// Returns whether a node is held back by a node before it that is not ready.
    fn is_held(&self, index: usize, drawn: &Drawn) -> bool {
        let places: Vec<_> = drawn.places().collect();
        let ends = self.ends.lock();
        let mut pending = vec![index];
        let mut seen = vec![false; places.len()];
        while let Some(at) = pending.pop() {
            for before in &places[at].after {
                match ends[*before] {
                    Some(VisitEnd::Waiting | VisitEnd::Failed) => return true,
                    Some(VisitEnd::Ready) => {}
                    None if std::mem::replace(&mut seen[*before], true) => {}
                    None => pending.push(*before),
                }
            }
        }
        false
    }
}
