//! Writes what was recorded: the one place of this module that talks to the API server.

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
use super::ledger::{Entry, Ledger, Outcome, Write};
use super::metrics::Counts;
use crate::client::{Client, ClientError, Failure, Patch};
use crate::key::ObjectKey;
use crate::manager::{BoxError, Context, OnFailure, Part, Stop};

/// How long one write may take. Events are worth a try, not patience.
const WRITE_DEADLINE: Duration = Duration::from_secs(10);

/// The longest name of an object.
const LONGEST_NAME: usize = 253;

/// An event and when it happened.
pub(super) type Recorded = (Event, Timestamp);

/// Writes events in the background. Nothing is written before it [runs](Self::run).
#[must_use = "events are written only while it runs"]
pub struct Publisher {
    pub(super) recorded: mpsc::Receiver<Recorded>,
    pub(super) ledger: Ledger,
    pub(super) desk: Desk,
    pub(super) counts: Arc<Counts>,
    pub(super) flush: Duration,
    pub(super) window: Duration,
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher").field("controller", &self.desk.controller).finish_non_exhaustive()
    }
}

impl Publisher {
    /// Writes until a stop is requested, then what is left, within the flush deadline. After it has ended, recorders drop what
    /// they are given.
    ///
    /// Cancellation: dropped, it writes no more, and forgets nothing; it can be run again.
    pub async fn run(&mut self, stop: &Stop) {
        let mut underway: Option<BoxFuture<'static, (Write, Outcome)>> = None;
        self.ledger.recover(Instant::now());
        let mut sweep = Instant::now() + self.window;
        loop {
            let now = Instant::now();
            if now >= sweep {
                self.ledger.sweep(now);
                sweep = now + self.window;
            }
            if underway.is_none() {
                underway = self.ledger.next(now).map(|write| self.desk.write(write));
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

    /// As a part of a manager, for [`Stage::Everywhere`](crate::manager::Stage::Everywhere): it stops after everything that
    /// has something to say.
    pub fn into_part(self) -> Part {
        let publisher = Arc::new(Mutex::new(self));
        let part = Part::new("events", move |context: Context| {
            let publisher = Arc::clone(&publisher);
            async move {
                context.ready();
                publisher.lock().await.run(&context.stop).await;
                Ok::<_, BoxError>(())
            }
        });
        part.on_failure(OnFailure::Restart)
    }

    fn enter(&mut self, event: Event, at: Timestamp) {
        let entry = self.ledger.record(event, at, Instant::now());
        let counter = match entry {
            Entry::New | Entry::Repeated => return,
            Entry::Limited => &self.counts.limited,
            Entry::Full => &self.counts.overflown,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn done(&mut self, write: &Write, outcome: Outcome) {
        if outcome == Outcome::Done {
            let counter = if write.exists { &self.counts.patched } else { &self.counts.created };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let lost = self.ledger.done(write, outcome, Instant::now());
        self.counts.failed.fetch_add(lost.into(), Ordering::Relaxed);
    }

    /// Writes what is left, as far as the deadline allows.
    async fn finish(&mut self, mut underway: Option<BoxFuture<'static, (Write, Outcome)>>) {
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
                underway = self.ledger.next(Instant::now()).map(|write| self.desk.write(write));
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
            tracing::warn!(lost, "events could not be written before the end");
        }
    }
}

async fn pending_unless<T>(future: Option<&mut BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Where events are put into words and sent.
pub(super) struct Desk {
    pub(super) client: Client,
    pub(super) controller: String,
    pub(super) instance: String,
    pub(super) names: RandomState,
}

impl Desk {
    /// Does a write. It goes on for as long as it is polled; the outcome comes with the write that it is of.
    fn write(&self, write: Write) -> BoxFuture<'static, (Write, Outcome)> {
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
                Ok(Ok(_)) => Outcome::Done,
                Ok(Err(error)) => judge(&error, write.exists),
                Err(_) => Outcome::Failed,
            };
            (write, outcome)
        }
        .boxed()
    }

    /// The same for the same series in every attempt, so that a creation whose answer was lost is not done twice.
    fn key(&self, write: &Write) -> ObjectKey {
        let unique = format!("{:016x}", self.names.hash_one((write.series, write.edition)));
        let regarding = &write.event.regarding;
        let stem = regarding.stem(LONGEST_NAME - unique.len() - 1);
        ObjectKey::namespaced(regarding.home(), format!("{stem}.{unique}"))
    }

    fn body(&self, key: &ObjectKey, write: &Write) -> Value {
        // A count of one is no series.
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

fn judge(error: &ClientError, exists: bool) -> Outcome {
    match error.failure() {
        // The first attempt had worked, and its answer was lost.
        Failure::AlreadyExists if !exists => Outcome::Done,
        Failure::NotFound if exists => Outcome::Gone,
        Failure::Throttled { .. }
        | Failure::Timeout
        | Failure::Unavailable
        | Failure::Internal
        | Failure::Unauthorized
        | Failure::Conflict
        | Failure::Garbled => Outcome::Failed,
        _ => {
            tracing::warn!(%error, "an event was refused and is dropped");
            Outcome::Refused
        }
    }
}
