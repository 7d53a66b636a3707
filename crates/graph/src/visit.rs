//! One visit on its way: the caller's future, its deadline, and its panics.
//!
//! It promises to end in a value whatever the caller's code does short of blocking
//! the thread: a panic in the call, in a poll or in a destructor stays in here.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep};

use crate::{Failure, Outcome, Progress};

struct Deadline {
    limit: Duration,
    sleep: Pin<Box<Sleep>>,
}

pin_project! {
    /// A started visit.
    pub(crate) struct Visit<F> {
        index: u32,
        started: Instant,
        deadline: Option<Deadline>,
        // The message of a panic that left no future to poll.
        panicked: Option<String>,
        #[pin]
        future: Option<F>,
    }

    impl<F> PinnedDrop for Visit<F> {
        fn drop(this: Pin<&mut Self>) {
            // One visit's destructor must not keep the others from being dropped. The
            // panic was reported by the panic hook, and there is no node to blame any more.
            let mut this = this.project();
            let _ = guarded(|| this.future.set(None));
        }
    }
}

/// A visit that ended.
pub(crate) struct Ended<E, W> {
    pub(crate) index: u32,
    pub(crate) duration: Duration,
    pub(crate) outcome: Outcome<E, W>,
}

impl<F> Visit<F> {
    /// Starts the visit of a node; `begin` gives the future and its deadline.
    pub(crate) fn start(index: u32, begin: impl FnOnce() -> (F, Option<Duration>)) -> Self {
        let started = Instant::now();
        let call = guarded(|| {
            let (future, limit) = begin();
            // Asking for a timer outside of a runtime panics: also the node's failure.
            let deadline = limit.map(|limit| Deadline { limit, sleep: Box::pin(sleep(limit)) });
            (future, deadline)
        });
        match call {
            Ok((future, deadline)) => {
                Visit { index, started, deadline, panicked: None, future: Some(future) }
            }
            Err(message) => Visit { index, started, deadline: None, panicked: Some(message), future: None },
        }
    }

    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

impl<E, W, F: Future<Output = Result<Progress<W>, E>>> Future for Visit<F> {
    type Output = Ended<E, W>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let outcome = if let Some(message) = this.panicked.take() {
            Outcome::Failed(Failure::Panicked(message))
        } else {
            let future = this.future.as_mut().as_pin_mut();
            match guarded(|| poll_until(future, this.deadline, cx)) {
                Ok(polled) => ready!(polled),
                Err(message) => Outcome::Failed(Failure::Panicked(message)),
            }
        };
        // The future goes now, not with the task that held it, so that a panic in its
        // destructor is this node's failure too, and what it holds is free before
        // anything after this node starts.
        let outcome = match guarded(|| this.future.set(None)) {
            Ok(()) => outcome,
            Err(message) => Outcome::Failed(Failure::Panicked(message)),
        };
        Poll::Ready(Ended { index: *this.index, duration: this.started.elapsed(), outcome })
    }
}

fn poll_until<E, W, F: Future<Output = Result<Progress<W>, E>>>(
    future: Option<Pin<&mut F>>,
    deadline: &mut Option<Deadline>,
    cx: &mut Context<'_>,
) -> Poll<Outcome<E, W>> {
    // The future is gone only once the visit has ended: there is no more to come.
    let Some(future) = future else { return Poll::Pending };
    if let Poll::Ready(result) = future.poll(cx) {
        return Poll::Ready(result.into());
    }
    match deadline {
        Some(Deadline { limit, sleep }) => {
            ready!(sleep.as_mut().poll(cx));
            Poll::Ready(Outcome::Failed(Failure::DeadlineExceeded(*limit)))
        }
        None => Poll::Pending,
    }
}

/// Runs the caller's code; a panic becomes its message.
///
/// Unwind safety is the caller's: state that its visits share is seen by the others
/// after a panic, as it is between threads with a lock that does not poison. What is
/// in here is dropped or overwritten.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| message(payload.as_ref()))
}

fn message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "with something that is not text".to_owned()
    }
}
