//! The work queue between caches and workers.
//!
//! It promises:
//! - **One worker per key.** A key in progress is not handed out again before it is finished. Further adds
//!   are merged into one more run.
//! - **No lost change.** Every add is followed by a run that starts after it. An [`Item`] that is dropped
//!   unfinished (a worker was cancelled) puts its key back.
//! - **Order.** Higher [`Priority`] first; first come, first served within a priority. A key whose priority
//!   is raised goes to the end of its new priority; a priority is never lowered. A delayed key is queued when
//!   its delay has passed.
//! - **Backoff.** A key whose run failed is retried after its own exponential [`Backoff`]. A failure of a run
//!   that started early, because something changed, is not counted: only a retry after the full delay makes
//!   the next delay longer.
//!
//! It does not keep objects (a worker gets only a key), does not know Kubernetes, and does not limit how
//! often keys run in total.
//!
//! # Timers
//! A key has two timers. The delay of *its own last run* ([`Next::After`], [`Next::Retry`]) is replaced by
//! the result of the next run, so an earlier change cancels it. The delay of an *add* ([`Add::after`]) always
//! fires, even if the key is ready at that time, since the run that is about to start cannot know about a
//! later moment. Two delayed adds become one, the earlier, with the higher priority: a key has few timers,
//! however often it is added.
//!
//! # Why no shared bucket
//! A token bucket over all keys (10 per second, for example) protects an API server from ten thousand keys
//! that fail at the same time; it also makes a healthy key wait a quarter of an hour behind them, and keeps
//! everything slow long after the cause is gone. Here the number of workers bounds concurrency, backoff with
//! jitter bounds how often a failing key runs, the client obeys the server's own throttling, and no key waits
//! for another.
//!
//! # Example
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use windlass_runtime::queue::{Add, Next, Priority, Queue};
//!
//! let queue = Queue::new(Default::default());
//! queue.add("resync", Add::now().priority(Priority::LOW));
//! queue.add("changed", Add::now());
//!
//! let item = queue.get().await.expect("the queue is open");
//! assert_eq!(*item.key(), "changed");
//! item.finish(Next::Forget);
//! # }
//! ```

mod backoff;
#[cfg(test)]
mod model;
mod state;
mod stats;

use std::fmt;
use std::hash::Hash;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

pub use self::backoff::Backoff;
use self::state::{Handed, QueueState};
pub use self::stats::{Depth, Histogram, PRIORITIES_COUNTED, Stats};

/// The priority of a key: higher ones run first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub i32);

impl Priority {
    /// Low priority: the initial list, and objects delivered again unchanged.
    pub const LOW: Self = Self(-100);
    /// Normal priority: objects that changed.
    pub const NORMAL: Self = Self(0);
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Options of an add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "it does nothing until it is passed to `Queue::add`"]
pub struct Add {
    /// The priority; the highest of all merged adds counts.
    pub priority: Priority,
    /// The delay before the key is queued.
    pub after: Duration,
    /// Reset past failures: their cause may have been repaired.
    pub fresh: bool,
}

impl Add {
    /// Adds the key now, at normal priority.
    pub fn now() -> Self {
        Self::default()
    }

    /// Adds the key after `delay`.
    pub fn after(delay: Duration) -> Self {
        Self { after: delay, ..Self::default() }
    }

    /// Sets the priority.
    pub fn priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// Resets past failures.
    pub fn fresh(self) -> Self {
        Self { fresh: true, ..self }
    }
}

/// The next state of a key whose run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The key rests until it is added again; past failures are reset.
    Forget,
    /// The key runs again after a delay; past failures are reset.
    After(Duration),
    /// The run failed; the key runs again after its backoff, or after `at_most` if that is shorter.
    Retry {
        /// The longest delay for this kind of failure.
        at_most: Option<Duration>,
    },
    /// The key was not worked on and is queued again.
    Release,
}

/// A queue of keys. Clones are handles of the same queue.
///
/// See [the module](self) for its promises.
pub struct Queue<K: Clone + Eq + Hash> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    state: Mutex<QueueState<K>>,
    /// Notifies one worker when there is something to do, all when the queue closes.
    wake: Notify,
    /// Notifies when the last running key of a closed queue has finished.
    idle: Notify,
    began: Instant,
}

impl<K: Clone + Eq + Hash> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Clone + Eq + Hash> fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// Creates an empty queue.
    pub fn new(backoff: Backoff) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(QueueState::new(backoff)),
                wake: Notify::new(),
                idle: Notify::new(),
                began: Instant::now(),
            }),
        }
    }

    /// Adds a key. Does nothing after the queue was shut down.
    pub fn add(&self, key: K, add: Add) {
        let wake = self.shared.state.lock().add(key, add, self.now());
        if wake {
            self.shared.wake.notify_one();
        }
    }

    /// Waits for the next key; `None` once the queue was shut down.
    ///
    /// Cancel safe: a dropped call has taken no key.
    pub async fn get(&self) -> Option<Item<K>> {
        loop {
            if let Take::Done(taken) = self.take() {
                return taken;
            }
            // Register first, check again, then sleep: an add between the check and the sleep wakes this
            // worker.
            let mut wake = pin!(self.shared.wake.notified());
            wake.as_mut().enable();
            match self.take() {
                Take::Done(taken) => return taken,
                Take::Sleep(None) => wake.await,
                Take::Sleep(Some(alarm)) => {
                    // The next check finds out whether a timer or an add woke this worker.
                    let _ = tokio::time::timeout_at(self.shared.began + alarm, wake).await;
                }
            }
        }
    }

    /// Returns the number of ready keys; delayed keys are not counted.
    pub fn len(&self) -> usize {
        self.shared.state.lock().depth(self.now())
    }

    /// Returns true if no key is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of keys that are handed out and not finished.
    pub fn in_flight(&self) -> usize {
        self.shared.state.lock().in_flight()
    }

    /// Returns the counters of the queue.
    pub fn stats(&self) -> Stats {
        self.shared.state.lock().stats(self.now())
    }

    /// Shuts the queue down: waiting and later calls of [`get`](Self::get) return `None`, queued keys are
    /// dropped, adds are ignored.
    ///
    /// Dropping keys is safe because they come from caches: the next process lists everything again.
    pub fn shut_down(&self) {
        self.shared.state.lock().close();
        self.shared.wake.notify_waiters();
        self.shared.idle.notify_waiters();
    }

    /// Shuts the queue down and waits until every key that was handed out has finished.
    ///
    /// Cancel safe: the queue stays shut down.
    pub async fn drain(&self) {
        self.shut_down();
        loop {
            let mut idle = pin!(self.shared.idle.notified());
            idle.as_mut().enable();
            if self.in_flight() == 0 {
                return;
            }
            idle.await;
        }
    }

    /// Returns a handle that does not keep the queue alive.
    pub(crate) fn downgrade(&self) -> WeakQueue<K> {
        WeakQueue(Arc::downgrade(&self.shared))
    }

    fn take(&self) -> Take<K> {
        let mut state = self.shared.state.lock();
        if state.is_closed() {
            return Take::Done(None);
        }
        let Some(Handed { key, priority, failures }) = state.take(self.now()) else {
            return Take::Sleep(state.next_alarm());
        };
        let more = state.has_more();
        drop(state);
        if more {
            // This worker is busy now, and it may be the only one that knew of the next timer: wake another.
            self.shared.wake.notify_one();
        }
        Take::Done(Some(Item { queue: self.clone(), key, priority, failures, finished: false }))
    }

    fn finish(&self, key: &K, next: Next) {
        let mut state = self.shared.state.lock();
        let wake = state.finish(key, next, self.now());
        let idle = state.is_closed() && state.in_flight() == 0;
        drop(state);
        if wake {
            self.shared.wake.notify_one();
        }
        if idle {
            self.shared.idle.notify_waiters();
        }
    }

    fn now(&self) -> Duration {
        self.shared.began.elapsed()
    }
}

/// A handle that does not keep its queue alive.
pub(crate) struct WeakQueue<K>(Weak<Shared<K>>);

impl<K: Clone + Eq + Hash> WeakQueue<K> {
    pub(crate) fn upgrade(&self) -> Option<Queue<K>> {
        self.0.upgrade().map(|shared| Queue { shared })
    }
}

enum Take<K: Clone + Eq + Hash> {
    Done(Option<Item<K>>),
    Sleep(Option<Duration>),
}

/// A key that was handed out. No other worker gets it before this is finished or dropped.
///
/// If it is dropped unfinished, the key is queued again at its priority.
#[must_use = "dropping it queues the key again"]
pub struct Item<K: Clone + Eq + Hash> {
    queue: Queue<K>,
    key: K,
    priority: Priority,
    failures: u32,
    finished: bool,
}

impl<K: Clone + Eq + Hash> Item<K> {
    /// The key to work on.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// The priority of the key when it was handed out.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// The number of consecutive failures before this run.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Ends the run and sets the next state of the key.
    pub fn finish(mut self, next: Next) {
        self.finished = true;
        self.queue.finish(&self.key, next);
    }
}

impl<K: Clone + Eq + Hash> Drop for Item<K> {
    fn drop(&mut self) {
        if !self.finished {
            self.queue.finish(&self.key, Next::Release);
        }
    }
}

impl<K: Clone + Eq + Hash + fmt::Debug> fmt::Debug for Item<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("key", &self.key)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}
