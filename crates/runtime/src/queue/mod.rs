//! The queue between what happens in a cluster and the workers that answer it.
//!
//! It promises:
//! - **One worker per key.** A key that was handed out is not handed out again before it is finished. What arrives
//!   meanwhile is merged into one more run.
//! - **No lost change.** Every add is followed by a run that starts after it. An [`Item`] that is dropped unfinished
//!   (a worker was cancelled) puts its key back.
//! - **Order.** Higher [`Priority`] first; first come, first served within a priority. A key that is raised stands at the
//!   end of its new priority; a key is never lowered. A delayed key takes its place when it falls due.
//! - **Patience.** A key whose run failed is retried after an exponential [`Backoff`] of its own. A failure of a run that
//!   came early, because something changed, is not counted: only a retry that was waited for makes the next wait longer.
//!
//! It does not keep objects (a key is all a worker gets), does not know Kubernetes, and does not limit how often keys
//! run in total.
//!
//! # Timers
//! A key has two. What *its own last run* asked for ([`Next::After`], [`Next::Retry`]) is replaced by whatever the next
//! run asks for, so a change that arrives early drops it. What *others* asked for ([`Add::after`]) always rings: also when
//! the key is ready at that moment, since the run that is about to start cannot know about a moment that has not come.
//! Two such requests become one, the earlier, with the higher priority: a key has few timers, however often it is asked for.
//!
//! # Why no shared bucket
//! A token bucket over all keys (10 per second, say) protects an API server from ten thousand keys that fail at the same
//! time; it also makes a healthy key wait a quarter of an hour behind them, and keeps everything slow long after the cause is
//! gone. Here the number of workers bounds what runs at once, backoff with jitter bounds how often a failing key runs,
//! the server's own throttling is obeyed by the client, and no key pays for another.
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
use self::state::{Handed, State};
pub use self::stats::{Depth, Histogram, PRIORITIES_COUNTED, Stats};

/// How urgent a key is: the higher, the sooner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub i32);

impl Priority {
    /// For what nobody waits for: the initial list, and objects seen again unchanged.
    pub const LOW: Self = Self(-100);
    /// For what somebody changed.
    pub const NORMAL: Self = Self(0);
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a key is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "it does nothing until it is given to `Queue::add`"]
pub struct Add {
    /// Its priority; the highest of all adds that are merged counts.
    pub priority: Priority,
    /// How long from now it is to wait.
    pub after: Duration,
    /// Whether past failures are forgotten: what made them may have been repaired.
    pub fresh: bool,
}

impl Add {
    /// As soon as possible, at normal priority.
    pub fn now() -> Self {
        Self::default()
    }

    /// Not before `delay` has passed.
    pub fn after(delay: Duration) -> Self {
        Self { after: delay, ..Self::default() }
    }

    /// With this priority.
    pub fn priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// With past failures forgotten.
    pub fn fresh(self) -> Self {
        Self { fresh: true, ..self }
    }
}

/// What becomes of a key whose run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It rests until it is added again; past failures are forgotten.
    Forget,
    /// It runs again after a delay; past failures are forgotten.
    After(Duration),
    /// It failed and runs again after its backoff, or after `at_most` if that is shorter.
    Retry {
        /// The longest wait for this kind of failure.
        at_most: Option<Duration>,
    },
    /// It was not worked on: it goes back in line.
    Release,
}

/// A queue of keys. Clones are handles of the same queue.
///
/// See [the module](self) for its promises.
pub struct Queue<K: Clone + Eq + Hash> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    state: Mutex<State<K>>,
    /// Rings for one worker when there is something to do, for all when the queue closes.
    wake: Notify,
    /// Rings when the last running key of a closed queue has finished.
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
    /// An empty queue.
    pub fn new(backoff: Backoff) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State::new(backoff)),
                wake: Notify::new(),
                idle: Notify::new(),
                began: Instant::now(),
            }),
        }
    }

    /// Adds a key. Does nothing when the queue was shut down.
    pub fn add(&self, key: K, add: Add) {
        let wake = self.shared.state.lock().add(key, add, self.now());
        if wake {
            self.shared.wake.notify_one();
        }
    }

    /// Waits for the next key; `None` once the queue was shut down.
    ///
    /// Cancel safe: a dropped call has taken nothing.
    pub async fn get(&self) -> Option<Item<K>> {
        loop {
            if let Take::Done(taken) = self.take() {
                return taken;
            }
            // Enlist first, look again, then sleep: what is added between the look and the sleep wakes us.
            let mut wake = pin!(self.shared.wake.notified());
            wake.as_mut().enable();
            match self.take() {
                Take::Done(taken) => return taken,
                Take::Sleep(None) => wake.await,
                Take::Sleep(Some(alarm)) => {
                    // Whether it was the alarm or a call that woke us, the next look tells.
                    let _ = tokio::time::timeout_at(self.shared.began + alarm, wake).await;
                }
            }
        }
    }

    /// The number of ready keys; those that wait for a moment to come are not counted.
    pub fn len(&self) -> usize {
        self.shared.state.lock().depth(self.now())
    }

    /// Whether no key is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of keys that are handed out and not finished.
    pub fn in_flight(&self) -> usize {
        self.shared.state.lock().in_flight()
    }

    /// What the queue can tell about itself.
    pub fn stats(&self) -> Stats {
        self.shared.state.lock().stats(self.now())
    }

    /// Shuts the queue down: waiting and later [`get`](Self::get)s answer `None`, what was queued is dropped, adds are ignored.
    ///
    /// Dropping is safe because the keys come from caches: the next process lists everything again.
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

    /// A handle that does not keep the queue.
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
            // Pass the baton: this worker is busy now, and it may be the only one that knew of the next alarm.
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

/// A handle that does not keep its queue.
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
/// Dropped unfinished, the key goes back in line at its priority.
#[must_use = "dropping it puts the key back in line"]
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

    /// The priority that it was handed out with.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// How often in a row it has failed before this run.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Ends the run and says what becomes of the key.
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
