//! Workers: take a key, call the reconciler, finish the key.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use tokio::time::Instant;
use tracing::Instrument;

use super::{Class, Error, Reconcile, Requeue};
use crate::key::ObjectKey;
use crate::metrics::{ControllerMetrics, ReconcileResult};
use crate::panics::panic_message;
use crate::queue::{Next, Queue};

/// The longest delay after consecutive conflicts: they resolve quickly, but must not cause a hot loop.
const CONFLICT_WAIT: Duration = Duration::from_secs(1);

/// The end of one call of a reconciler.
#[derive(Debug)]
enum Ending {
    Returned(Result<Requeue, Error>),
    Panicked(String),
    Overdue(Duration),
}

pub(super) struct Worker<R> {
    pub(super) controller: Arc<str>,
    pub(super) reconciler: Arc<R>,
    pub(super) queue: Queue<ObjectKey>,
    pub(super) deadline: Option<Duration>,
    pub(super) metrics: ControllerMetrics,
}

impl<R: Reconcile> Worker<R> {
    /// Works until the queue is shut down.
    ///
    /// Dropping the future gives its key back to the queue.
    pub(super) async fn work(self) {
        while let Some(item) = self.queue.get().await {
            let key = item.key().clone();
            let span = tracing::error_span!(
                "reconcile",
                controller = &*self.controller,
                object = %key,
                reconcile_id = %ReconcileId::next(),
            );
            let active = self.metrics.begin();
            let began = Instant::now();
            let ending = self.call(key).instrument(span.clone()).await;
            let (next, result) = judge(&ending);
            span.in_scope(|| report(&ending, item.failures()));
            active.end(result, began.elapsed());
            item.finish(next);
            // A reconcile that never waits would otherwise starve other tasks on this thread.
            tokio::task::consume_budget().await;
        }
    }

    async fn call(&self, key: ObjectKey) -> Ending {
        // The block includes the call itself, before its first await, in what is caught.
        let guarded = AssertUnwindSafe(async { self.reconciler.reconcile(key).await }).catch_unwind();
        let caught = match self.deadline {
            None => guarded.await,
            Some(deadline) => match tokio::time::timeout(deadline, guarded).await {
                Ok(caught) => caught,
                Err(_) => return Ending::Overdue(deadline),
            },
        };
        match caught {
            Ok(result) => Ending::Returned(result),
            Err(panic) => Ending::Panicked(panic_message(&*panic)),
        }
    }
}

/// Returns what happens to the key next, and the result label of the metric.
fn judge(ending: &Ending) -> (Next, ReconcileResult) {
    match ending {
        Ending::Returned(Ok(Requeue::OnChange)) => (Next::Forget, ReconcileResult::Success),
        Ending::Returned(Ok(Requeue::After(delay))) => (Next::After(*delay), ReconcileResult::RequeueAfter),
        Ending::Returned(Err(error)) => match error.class() {
            Class::Transient => (Next::Retry { at_most: error.longest() }, ReconcileResult::Error),
            Class::Conflict => (Next::Retry { at_most: Some(CONFLICT_WAIT) }, ReconcileResult::Requeue),
            Class::Terminal => (Next::Forget, ReconcileResult::TerminalError),
        },
        Ending::Panicked(_) => (Next::Retry { at_most: None }, ReconcileResult::Panic),
        Ending::Overdue(_) => (Next::Retry { at_most: None }, ReconcileResult::Timeout),
    }
}

fn report(ending: &Ending, failures: u32) {
    match ending {
        Ending::Returned(Ok(requeue)) => tracing::debug!(?requeue, "reconciled"),
        Ending::Returned(Err(error)) => match error.class() {
            Class::Transient => tracing::warn!(%error, failures, "reconcile failed, will retry with backoff"),
            Class::Conflict => tracing::debug!(%error, "reconcile met a conflict, will retry"),
            Class::Terminal => {
                tracing::error!(%error, "reconcile failed, will not retry before something changes");
            }
        },
        Ending::Panicked(message) => {
            tracing::error!(panic = message, "reconcile panicked, will retry with backoff");
        }
        Ending::Overdue(deadline) => {
            tracing::warn!(
                ?deadline,
                "reconcile exceeded its deadline and was cancelled, will retry with backoff"
            );
        }
    }
}

/// Identifies one call of a reconciler in the log.
#[derive(Clone, Copy)]
struct ReconcileId(u64);

impl ReconcileId {
    fn next() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Self(COUNT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Hashed, so that two calls are easily distinguished and ids of two processes rarely collide.
impl std::fmt::Display for ReconcileId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::hash::{BuildHasher, RandomState};
        use std::sync::OnceLock;
        static PROCESS: OnceLock<RandomState> = OnceLock::new();
        write!(f, "{:016x}", PROCESS.get_or_init(RandomState::new).hash_one(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{ClientError, Failure, Operation};
    use crate::metrics::Metrics;
    use crate::queue::{Add, Backoff};
    use crate::resource::ResourceType;
    use k8s_openapi::api::core::v1::Secret;
    use parking_lot::Mutex;

    /// Runs one worker over scripted results of one key; returns the times of its calls in milliseconds.
    async fn times(
        deadline: Option<Duration>,
        script: Vec<fn() -> Result<Requeue, Error>>,
    ) -> (Vec<u128>, String) {
        times_within(Duration::from_secs(100), deadline, script).await
    }

    async fn times_within(
        limit: Duration,
        deadline: Option<Duration>,
        script: Vec<fn() -> Result<Requeue, Error>>,
    ) -> (Vec<u128>, String) {
        let metrics = Metrics::new();
        let queue = Queue::new(Backoff { jitter: 0.0, ..Backoff::default() });
        let began = Instant::now();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let reconciler = {
            let calls = Arc::clone(&calls);
            move |_key: ObjectKey| {
                let step = {
                    let mut calls = calls.lock();
                    calls.push(began.elapsed().as_millis());
                    script.get(calls.len() - 1).copied()
                };
                async move {
                    match step {
                        Some(step) => step(),
                        None => std::future::pending().await,
                    }
                }
            }
        };
        let worker = Worker {
            controller: "test".into(),
            reconciler: Arc::new(reconciler),
            queue: queue.clone(),
            deadline,
            metrics: metrics.controller("test", 1),
        };
        queue.add(ObjectKey::cluster("a"), Add::now());
        let _ = tokio::time::timeout(limit, worker.work()).await;
        let calls = calls.lock().clone();
        (calls, metrics.encode())
    }

    fn transient() -> Result<Requeue, Error> {
        Err(Error::transient("not yet"))
    }

    fn conflict() -> Result<Requeue, Error> {
        Err(Error::conflict("too late"))
    }

    #[allow(clippy::unnecessary_wraps)] // one of several endings
    fn done() -> Result<Requeue, Error> {
        Ok(Requeue::OnChange)
    }

    fn line(text: &str, start: &str) -> u64 {
        let line =
            text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start} in {text}"));
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn c9_a_transient_error_is_retried_with_backoff_until_it_succeeds() {
        let (calls, text) = times(None, vec![transient, transient, transient, done]).await;
        assert_eq!(calls, [0, 5, 15, 35]);
        assert_eq!(
            line(&text, "controller_runtime_reconcile_total{controller=\"test\",result=\"error\"}"),
            3
        );
        assert_eq!(
            line(&text, "controller_runtime_reconcile_total{controller=\"test\",result=\"success\"}"),
            1
        );
        assert_eq!(line(&text, "controller_runtime_reconcile_errors_total{controller=\"test\"}"), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn seam_low_a_missing_right_is_retried_at_least_once_a_minute() {
        let forbidden: fn() -> Result<Requeue, Error> = || {
            let operation = Operation { verb: "get", resource: ResourceType::of::<Secret>(), key: None };
            Err(ClientError::new(operation, Failure::Forbidden, "").into())
        };
        let longest = |calls: &[u128]| calls.windows(2).map(|pair| pair[1] - pair[0]).max();
        let hours = Duration::from_hours(2);
        let (calls, _) = times_within(hours, None, vec![forbidden; 200]).await;
        assert_eq!(longest(&calls), Some(60_000));
        let (calls, _) = times_within(hours, None, vec![transient; 200]).await;
        assert_eq!(longest(&calls), Some(1_000_000), "other errors back off further");
    }

    #[tokio::test(start_paused = true)]
    async fn c10_a_terminal_error_is_not_retried() {
        let (calls, text) = times(None, vec![|| Err(Error::terminal("never"))]).await;
        assert_eq!(calls, [0]);
        assert_eq!(line(&text, "controller_runtime_terminal_reconcile_errors_total{controller=\"test\"}"), 1);
        assert_eq!(line(&text, "controller_runtime_reconcile_errors_total{controller=\"test\"}"), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn c11_the_backoff_starts_over_after_a_success() {
        let again = || Ok(Requeue::After(Duration::from_secs(1)));
        let (calls, _) = times(None, vec![transient, transient, again, transient, done]).await;
        assert_eq!(calls, [0, 5, 15, 1015, 1020]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_conflict_is_retried_within_a_second_and_does_not_count_as_an_error() {
        let (calls, text) = times(None, [vec![conflict as fn() -> _; 12], vec![done]].concat()).await;
        let waits: Vec<_> = calls.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000, 1000]);
        assert_eq!(
            line(&text, "controller_runtime_reconcile_total{controller=\"test\",result=\"requeue\"}"),
            12
        );
        assert_eq!(line(&text, "controller_runtime_reconcile_errors_total{controller=\"test\"}"), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn c1_a_panic_is_an_error_of_its_key_and_the_worker_continues() {
        let (calls, text) = times(None, vec![|| panic!("boom"), done]).await;
        assert_eq!(calls, [0, 5]);
        assert_eq!(line(&text, "controller_runtime_reconcile_panics_total{controller=\"test\"}"), 1);
        assert_eq!(line(&text, "controller_runtime_reconcile_errors_total{controller=\"test\"}"), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn c2_a_hanging_reconcile_is_cancelled_at_its_deadline_and_retried() {
        let (calls, text) = times(Some(Duration::from_mins(1)), vec![]).await;
        assert_eq!(calls, [0, 60_005]);
        assert_eq!(line(&text, "controller_runtime_reconcile_timeouts_total{controller=\"test\"}"), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_worker_returns_its_key_to_the_queue() {
        let queue = Queue::new(Backoff::default());
        let worker = Worker {
            controller: "test".into(),
            reconciler: Arc::new(|_key: ObjectKey| std::future::pending::<Result<Requeue, Error>>()),
            queue: queue.clone(),
            deadline: None,
            metrics: Metrics::new().controller("test", 1),
        };
        queue.add(ObjectKey::cluster("a"), Add::now());
        let mut work = Box::pin(worker.work());
        assert!((&mut work).now_or_never().is_none());
        assert_eq!((queue.len(), queue.in_flight()), (0, 1));
        drop(work);
        assert_eq!((queue.len(), queue.in_flight()), (1, 0));
    }
}
