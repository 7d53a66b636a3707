//! The publisher writes recorded events: the one place of this module that calls the API server.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::events::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::event::Event;
use super::ledger::{Entry, Ledger, Write, WriteResult};
use super::metrics::Counts;
use crate::client::{Client, ClientError, Failure, Patch};
use crate::key::ObjectKey;
use crate::manager::{BoxError, Context, OnFailure, Runnable, Stop};

/// The deadline of one write. Events are best effort.
const WRITE_DEADLINE: Duration = Duration::from_secs(10);

/// Maximum length of an object name.
const LONGEST_NAME: usize = 253;

/// An event and its time.
pub(super) type Recorded = (Event, Timestamp);

/// Writes events in the background. Nothing is written before it [runs](Self::run).
#[must_use = "events are written only while it runs"]
pub struct Publisher {
    pub(super) recorded: mpsc::Receiver<Recorded>,
    pub(super) ledger: Ledger,
    pub(super) writer: EventWriter,
    pub(super) counts: Arc<Counts>,
    pub(super) flush: Duration,
    pub(super) window: Duration,
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher").field("controller", &self.writer.controller).finish_non_exhaustive()
    }
}

impl Publisher {
    /// Writes until a stop is requested, then writes what is left, within the flush deadline. After it has
    /// ended, recorders drop new events.
    ///
    /// Cancellation: dropping the future pauses writing and forgets nothing; it can be run again.
    pub async fn run(&mut self, stop: &Stop) {
        let mut underway: Option<BoxFuture<'static, (Write, WriteResult)>> = None;
        self.ledger.recover(Instant::now());
        let mut sweep = Instant::now() + self.window;
        loop {
            let now = Instant::now();
            if now >= sweep {
                self.ledger.sweep(now);
                sweep = now + self.window;
            }
            if underway.is_none() {
                underway = self.ledger.next(now).map(|write| self.writer.write(write));
            }
            let due = if underway.is_some() { None } else { self.ledger.due() };
            tokio::select! {
                biased;
                () = stop.requested() => break,
                (write, outcome) = pending_unless(underway.as_mut()) => {
                    underway = None;
                    self.done(&write, outcome);
                }
                Some((event, at)) = self.recorded.recv() => self.enter(event, at),
                () = sleep_until(due.map_or(sweep, |due| due.min(sweep))) => {}
            }
        }
        self.finish(underway).await;
    }

    /// Returns a runnable for [`Stage::Everywhere`](crate::manager::Stage::Everywhere): it stops after
    /// everything that records events.
    pub fn into_runnable(self) -> Runnable {
        let publisher = Arc::new(Mutex::new(self));
        let runnable = Runnable::new("events", move |context: Context| {
            let publisher = Arc::clone(&publisher);
            async move {
                context.ready();
                publisher.lock().await.run(&context.stop).await;
                Ok::<_, BoxError>(())
            }
        });
        runnable.on_failure(OnFailure::Restart)
    }

    fn enter(&mut self, event: Event, at: Timestamp) {
        let entry = self.ledger.record(event, at, Instant::now());
        let dropped = match entry {
            Entry::New | Entry::Repeated => None,
            Entry::Limited => Some(&self.counts.limited),
            Entry::Full => Some(&self.counts.overflown),
        };
        if let Some(counter) = dropped {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        self.counts.in_ledger.store(self.ledger.waiting(), Ordering::Release);
        self.counts.taken.fetch_add(1, Ordering::Release);
    }

    fn done(&mut self, write: &Write, outcome: WriteResult) {
        if outcome == WriteResult::Done {
            let counter = if write.exists { &self.counts.patched } else { &self.counts.created };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let lost = self.ledger.done(write, outcome, Instant::now());
        self.counts.failed.fetch_add(lost.into(), Ordering::Relaxed);
        self.counts.in_ledger.store(self.ledger.waiting(), Ordering::Release);
    }

    /// Writes what is left, as far as the deadline allows.
    async fn finish(&mut self, mut underway: Option<BoxFuture<'static, (Write, WriteResult)>>) {
        self.recorded.close();
        while let Ok((event, at)) = self.recorded.try_recv() {
            self.enter(event, at);
        }
        self.ledger.flush(Instant::now());
        let deadline = Instant::now() + self.flush;
        let all = async {
            loop {
                if let Some(writing) = underway.take() {
                    let (write, outcome) = writing.await;
                    self.done(&write, outcome);
                }
                underway = self.ledger.next(Instant::now()).map(|write| self.writer.write(write));
                match (&underway, self.ledger.due()) {
                    (Some(_), _) => {}
                    (None, Some(due)) => sleep_until(due).await,
                    (None, None) => return,
                }
            }
        };
        if timeout_at(deadline, all).await.is_err() {
            let lost = self.ledger.waiting();
            self.counts.failed.fetch_add(lost, Ordering::Relaxed);
            self.counts.in_ledger.store(0, Ordering::Release);
            tracing::warn!(lost, "events could not be written before the process ended");
        }
    }
}

async fn pending_unless<T>(future: Option<&mut BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Formats events and sends them.
pub(super) struct EventWriter {
    pub(super) client: Client,
    pub(super) controller: String,
    pub(super) instance: String,
    pub(super) names: RandomState,
}

impl EventWriter {
    /// Executes a write while it is polled; returns the write with its result.
    fn write(&self, write: Write) -> BoxFuture<'static, (Write, WriteResult)> {
        let key = self.key(&write);
        let events = self.client.objects::<api::Event>();
        let (body, controller) = (self.body(&key, &write), self.controller.clone());
        async move {
            let sent = async {
                if write.exists {
                    events.patch(&key, &Patch::Merge(body), &controller).await
                } else {
                    events.create(&key, &body).await
                }
            };
            let outcome = match timeout(WRITE_DEADLINE, sent).await {
                Ok(Ok(_)) => WriteResult::Done,
                Ok(Err(error)) => judge(&error, write.exists),
                Err(_) => WriteResult::Failed,
            };
            (write, outcome)
        }
        .boxed()
    }

    /// The name is the same in every attempt of a series, so that a creation whose response was lost is not
    /// repeated under another name.
    fn key(&self, write: &Write) -> ObjectKey {
        let unique = format!("{:016x}", self.names.hash_one((write.series, write.edition)));
        let regarding = &write.event.regarding;
        let stem = regarding.stem(LONGEST_NAME - unique.len() - 1);
        ObjectKey::namespaced(regarding.event_namespace(), format!("{stem}.{unique}"))
    }

    fn body(&self, key: &ObjectKey, write: &Write) -> Value {
        // A count of one is not a series.
        let series = (write.count > 1)
            .then(|| json!({"count": write.count, "lastObservedTime": MicroTime(write.last)}));
        if write.exists {
            return json!({"series": series});
        }
        let event = &*write.event;
        let mut body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": key.name(), "namespace": key.namespace()},
            "eventTime": MicroTime(write.first),
            "type": event.kind.as_str(),
            "reason": event.reason,
            "action": event.action,
            "note": event.note,
            "regarding": event.regarding.reference(),
            "reportingController": self.controller,
            "reportingInstance": self.instance,
        });
        if let Some(related) = &event.related {
            body["related"] = json!(related.reference());
        }
        if let Some(series) = series {
            body["series"] = series;
        }
        body
    }
}

fn judge(error: &ClientError, exists: bool) -> WriteResult {
    match error.failure() {
        // The first attempt had succeeded, and its response was lost.
        Failure::AlreadyExists if !exists => WriteResult::Done,
        Failure::NotFound if exists => WriteResult::Gone,
        Failure::Throttled { .. }
        | Failure::Timeout
        | Failure::Unavailable
        | Failure::Internal
        | Failure::Unauthorized
        | Failure::Conflict
        | Failure::Fenced
        | Failure::Garbled => WriteResult::Failed,
        _ if has_no_namespace(error) => {
            tracing::debug!(%error, "event dropped: its namespace is being deleted");
            WriteResult::Refused
        }
        _ => {
            tracing::warn!(%error, "event rejected by the API server and dropped");
            WriteResult::Refused
        }
    }
}

/// Returns whether an event cannot be created because its namespace is being deleted or gone: every object in
/// the namespace has events about its end, and nobody can read them.
fn has_no_namespace(error: &ClientError) -> bool {
    matches!(error.failure(), Failure::Terminating | Failure::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Operation;
    use crate::resource::ResourceType;

    #[test]
    fn users_n19_events_of_a_namespace_that_is_being_deleted_are_dropped_without_a_warning() {
        for (failure, silent) in [
            (Failure::Terminating, true),
            (Failure::NotFound, true),
            (Failure::Forbidden, false),
            (Failure::Invalid(Vec::new()), false),
        ] {
            let resource = ResourceType::of::<api::Event>();
            let operation = Operation { verb: "create", resource, key: None };
            let error = ClientError::new(operation, failure.clone(), "");
            assert_eq!(judge(&error, false), WriteResult::Refused, "{failure}");
            assert_eq!(has_no_namespace(&error), silent, "{failure}");
        }
    }
}
