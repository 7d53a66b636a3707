//! Owning tasks and locks: nothing that the proxy started outlives it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::task::{AbortHandle, JoinSet};

/// Locks, also after a panic elsewhere: every critical section here leaves its data consistent.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All tasks of one proxy. Tasks hold references to what holds this, so it is ended by [`Tasks::close`], not
/// by the last reference.
#[derive(Debug)]
pub(super) struct Tasks(Mutex<Option<JoinSet<()>>>);

impl Tasks {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Some(JoinSet::new())))
    }

    /// Starts a task, which lives until it ends, is aborted, or the proxy closes. Once closed, nothing starts
    /// and the future is dropped.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Option<AbortHandle> {
        let mut guard = lock(&self.0);
        let tasks = guard.as_mut()?;
        // Finished tasks stay in the set until somebody looks.
        while tasks.try_join_next().is_some() {}
        Some(tasks.spawn(task))
    }

    /// Aborts everything and starts nothing more.
    pub(super) fn close(&self) {
        let tasks = lock(&self.0).take();
        drop(tasks);
    }
}

/// Ends a task with its owner.
#[derive(Debug)]
pub(super) struct AbortOnDrop(pub(super) AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn closing_ends_every_task_and_starts_no_more() {
        let tasks = Tasks::new();
        let (alive, ended) = oneshot::channel::<()>();
        tasks.spawn(async move {
            std::future::pending::<()>().await;
            drop(alive);
        });
        tasks.close();
        assert!(ended.await.is_err(), "the task was dropped, and with it its sender");
        assert!(tasks.spawn(async {}).is_none());
    }
}
