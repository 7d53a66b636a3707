//! Suspension of an operator that runs in this process, as by SIGSTOP.

use std::future::Future;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Poll;

/// The switch of a [`Gate`]. Dropped, it opens the gate for ever.
#[derive(Debug, Default)]
pub(super) struct Suspension(Gate);

impl Suspension {
    pub(super) fn gate(&self) -> Gate {
        self.0.clone()
    }

    pub(super) fn begin(&self) {
        self.0.set(true);
    }

    pub(super) fn end(&self) {
        self.0.set(false);
    }
}

impl Drop for Suspension {
    fn drop(&mut self) {
        self.end();
    }
}

/// A gate that blocks threads while it is closed. A clone is the same gate.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn set(&self, suspended: bool) {
        let (state, changed) = &*self.0;
        *state.lock().unwrap_or_else(PoisonError::into_inner) = suspended;
        changed.notify_all();
    }

    /// Blocks the present thread until the suspension ends.
    pub(super) fn wait(&self) {
        let (state, changed) = &*self.0;
        let suspended = state.lock().unwrap_or_else(PoisonError::into_inner);
        drop(changed.wait_while(suspended, |suspended| *suspended).unwrap_or_else(PoisonError::into_inner));
    }

    /// A future that is not polled while suspended: its thread waits instead.
    pub(super) async fn guard<F: Future>(self, future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|context| -> Poll<F::Output> {
            self.wait();
            future.as_mut().poll(context)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_suspended_future_is_not_polled_and_goes_on_afterwards() {
        let suspension = Suspension::default();
        suspension.begin();
        let polls = Arc::new(AtomicU32::new(0));
        let (gate, counter) = (suspension.gate(), Arc::clone(&polls));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(gate.guard(async move { counter.fetch_add(1, Ordering::SeqCst) }))
        });
        assert_eq!(polls.load(Ordering::SeqCst), 0);
        suspension.end();
        assert_eq!(thread.join().unwrap(), 0);
        assert_eq!(polls.load(Ordering::SeqCst), 1);
    }
}
