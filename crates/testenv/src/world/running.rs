//! An operator as a task of the test.

use std::fmt;
use std::future::Future;

use tokio::task::JoinHandle;

use super::metrics::{is_idle, sum, value};
use crate::error::{Error, Result};
use crate::eventually::eventually;

/// Any error, boxed.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// An operator at work, as a task of the test. Dropped, it is asked to stop if dropping its `stop` closure
/// does that.
#[must_use = "it ends when it is dropped"]
pub struct Running {
    readiness: Box<dyn Fn() -> (bool, String) + Send + Sync>,
    metrics: Box<dyn Fn() -> String + Send + Sync>,
    stop: Box<dyn FnOnce() + Send>,
    task: JoinHandle<Result<(), BoxError>>,
}

impl Running {
    /// Starts an operator. It need not be ready yet.
    ///
    /// `readiness` returns true when the operator is ready, with the report of its checks, one per line;
    /// `metrics` returns its metrics as text; `stop` asks it to end, and then `operator` ends.
    pub fn new<E>(
        readiness: impl Fn() -> (bool, String) + Send + Sync + 'static,
        metrics: impl Fn() -> String + Send + Sync + 'static,
        stop: impl FnOnce() + Send + 'static,
        operator: impl Future<Output = Result<(), E>> + Send + 'static,
    ) -> Self
    where
        E: Into<BoxError>,
    {
        Self {
            readiness: Box::new(readiness),
            metrics: Box::new(metrics),
            stop: Box::new(stop),
            task: tokio::spawn(async move { operator.await.map_err(Into::into) }),
        }
    }

    /// Waits until it is ready.
    pub async fn ready(&self) -> Result<()> {
        eventually("the operator is ready", || async {
            let (ready, report) = (self.readiness)();
            if ready { Ok(()) } else { Err(report) }
        })
        .await
    }

    /// Waits until it is ready, and this controller of it works.
    pub async fn controller_ready(&self, controller: &str) -> Result<()> {
        let works = format!("[+] controller {controller}\n");
        eventually("the operator is ready, and its controller works", || async {
            let (ready, report) = (self.readiness)();
            if ready && report.contains(&works) { Ok(()) } else { Err(report) }
        })
        .await
    }

    /// True if it is ready now.
    pub fn is_ready(&self) -> bool {
        (self.readiness)().0
    }

    /// The report of its readiness checks.
    pub fn report(&self) -> String {
        (self.readiness)().1
    }

    /// All metrics of the program, as text.
    pub fn metrics(&self) -> String {
        (self.metrics)()
    }

    /// The sum of all samples whose lines begin with this text.
    pub fn metric(&self, start: &str) -> u64 {
        sum(&self.metrics(), start)
    }

    /// The value of the first sample whose line begins with this text.
    pub fn metric_value(&self, start: &str) -> Option<f64> {
        value(&self.metrics(), start)
    }

    /// Waits until the samples whose lines begin with this text add up to this number. For metrics that are
    /// computed from the operator's cache, which hears of a write after the API server does.
    pub async fn metric_becomes(&self, start: &str, expected: u64) -> Result<()> {
        eventually(format!("the metric {start} to be {expected}"), || async {
            match self.metric(start) {
                sum if sum == expected => Ok(()),
                sum => Err(format!("it is {sum}")),
            }
        })
        .await
    }

    /// Waits until every recorded event is written or dropped. Events are written in the background, after
    /// the reconcile that recorded them: a test that counts writes from a mark waits for them first.
    pub async fn events_written(&self) -> Result<()> {
        self.metric_becomes("windlass_events_waiting", 0).await
    }

    /// Waits until at least this many reconciles have ended, and none is queued or under way.
    pub async fn idle_after(&self, reconciles: u64) -> Result<()> {
        eventually(format!("{reconciles} reconciles, and then peace"), || async {
            is_idle(&self.metrics(), reconciles)
        })
        .await
    }

    /// Waits until nothing is left to do: two looks at the count of reconciles agree, with nothing queued.
    /// Returns the count.
    pub async fn settled(&self) -> Result<u64> {
        let total = || self.metric("controller_runtime_reconcile_total");
        loop {
            let before = total();
            self.idle_after(before).await?;
            tokio::task::yield_now().await;
            if total() == before {
                return Ok(before);
            }
        }
    }

    /// Stops it in order. An error if it ends with one.
    pub async fn stop(self) -> Result<()> {
        (self.stop)();
        ended(self.task).await
    }

    /// Waits until it ends by itself, which an operator should not.
    pub async fn run(self) -> Result<()> {
        let _stop = self.stop;
        ended(self.task).await
    }

    /// Ends it at its next await, as a crash does.
    pub async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

async fn ended(task: JoinHandle<Result<(), BoxError>>) -> Result<()> {
    match task.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Error::Operator(error.to_string())),
        Err(error) => Err(Error::Operator(error.to_string())),
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("report", &self.report()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Notify;

    use super::*;

    const METRICS: &str = "controller_runtime_reconcile_total 2\nworkqueue_depth 0\n";

    fn operator(end: Result<(), String>) -> Running {
        let asked = Arc::new(Notify::new());
        let stop = Arc::clone(&asked);
        let work = async move {
            asked.notified().await;
            end
        };
        let readiness = || (true, "[+] controller shops\n".to_owned());
        Running::new(readiness, || METRICS.to_owned(), move || stop.notify_one(), work)
    }

    #[tokio::test]
    async fn an_operator_is_watched_and_stopped() {
        let running = operator(Ok(()));
        running.ready().await.unwrap();
        running.controller_ready("shops").await.unwrap();
        assert_eq!(running.settled().await.unwrap(), 2);
        running.stop().await.unwrap();
    }

    #[tokio::test]
    async fn an_operator_that_ends_with_an_error_is_an_error() {
        let error = operator(Err("the lease is lost".to_owned())).stop().await.unwrap_err();
        assert_eq!(error.to_string(), "the operator ended with an error: the lease is lost");
    }
}
