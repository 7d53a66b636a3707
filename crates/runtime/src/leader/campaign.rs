//! The campaign of one candidate: stands by, leads while the work runs, releases the lease.
//!
//! It executes the decisions of the [protocol](super::protocol), and nothing else.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use jiff::Timestamp;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::lock::{LeaseError, Lock};
use super::protocol::{Failed, LeaseAction, Loss, Protocol, Write};
use super::record::Found;
use super::standing::{Stand, Standing};
use super::times::Times;
use crate::jitter::chance;
use crate::stop::Stop;

/// The delay before a failed watch is opened again. Reads continue meanwhile, so there is no hurry.
const WATCH_AGAIN: Duration = Duration::from_secs(30);

/// The lease was lost, and the work was dropped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseLost {
    /// No renewal succeeded before the renew deadline.
    #[error(
        "the lease {lease} could not be renewed for {renew_deadline:?} ({why}); all work that needs it was stopped, \
         because another replica may lead soon"
    )]
    Deadline {
        /// Namespace and name of the Lease.
        lease: String,
        /// The renew deadline.
        renew_deadline: Duration,
        /// The last failure.
        why: String,
    },
    /// Another holder was written into the Lease while this process held it.
    #[error(
        "the lease {lease} was taken by {holder:?} while it was held here; all work that needs it was stopped; \
         the Lease was changed by hand, or candidates have different times"
    )]
    Taken {
        /// Namespace and name of the Lease.
        lease: String,
        /// The new holder; empty if there is none.
        holder: String,
    },
}

pub(super) struct Campaign<'a, L> {
    pub(super) lock: &'a L,
    pub(super) lease: String,
    pub(super) times: Times,
    pub(super) protocol: Protocol,
    pub(super) stand: Stand<'a>,
    /// The last failure: logged once, and part of the error when the lease is lost.
    last_failure: Option<String>,
}

impl<'a, L: Lock> Campaign<'a, L> {
    pub(super) fn new(lock: &'a L, lease: String, me: String, times: Times, stand: Stand<'a>) -> Self {
        let protocol = Protocol::new(me, times, Instant::now());
        Self { lock, lease, times, protocol, stand, last_failure: None }
    }

    /// Takes part in the election: the implementation of [`Election::lead`](super::Election::lead).
    pub(super) async fn run<T, W: Future<Output = T>>(
        mut self,
        stop: &Stop,
        work: impl FnOnce() -> W,
    ) -> Result<Option<T>, LeaseLost> {
        if !self.stand_by(stop).await {
            self.release().await;
            return Ok(None);
        }
        self.stand.take(Standing::Leading);
        tracing::info!(lease = self.lease, "this process is the leader");
        let ended = {
            let mut work = pin!(work());
            tokio::select! {
                // The lease is checked first: work that is ready does not run without it.
                biased;
                loss = self.keep() => Err(loss),
                done = &mut work => Ok(done),
            }
            // The work is dropped here, so that nothing of it runs when the loss of the lease is published.
        };
        match ended {
            Ok(done) => {
                self.release().await;
                Ok(Some(done))
            }
            Err(loss) => {
                self.stand.take(Standing::Ended);
                let error = self.explain(loss);
                tracing::error!(%error, "this process is no longer the leader");
                Err(error)
            }
        }
    }

    /// Waits until this candidate leads; returns `false` if a stop is requested before.
    async fn stand_by(&mut self, stop: &Stop) -> bool {
        let mut watch = Watch::default();
        while !self.protocol.leads() {
            match self.protocol.decide(Instant::now(), Timestamp::now()) {
                LeaseAction::Read => {
                    // Either there is no watch, or it missed a change.
                    watch.close(&mut self.protocol);
                    tokio::select! {
                        biased;
                        () = stop.requested() => return false,
                        () = self.read() => {}
                    }
                }
                // Not cancelled by a stop: an acquired lease must be released. The request has its own
                // deadline.
                LeaseAction::Write(write) => self.write(write).await,
                LeaseAction::Wait(until) => {
                    watch.open(self.lock, &mut self.protocol);
                    tokio::select! {
                        biased;
                        () = stop.requested() => return false,
                        heard = watch.next(&mut self.protocol) => match heard {
                            Some(Ok(found)) => self.saw(found),
                            Some(Err(why)) => {
                                tracing::debug!(lease = self.lease, %why, "lease watch failed; polling the lease");
                            }
                            None => {}
                        },
                        () = sleep_until(until) => {}
                    }
                }
                // Only a leader can lose the lease.
                LeaseAction::Lost(_) => return false,
            }
            if stop.is_requested() {
                return false;
            }
        }
        true
    }

    /// Keeps the lease until it is lost. Cancel safe: the result of a cancelled renewal counts as unknown.
    async fn keep(&mut self) -> Loss {
        loop {
            match self.protocol.decide(Instant::now(), Timestamp::now()) {
                LeaseAction::Read => self.read().await,
                LeaseAction::Write(write) => {
                    self.write(write).await;
                    if self.protocol.version().is_none() {
                        self.stand.slow_path();
                    }
                }
                LeaseAction::Wait(until) => sleep_until(until).await,
                LeaseAction::Lost(loss) => {
                    self.stand.fence().close();
                    return loss;
                }
            }
        }
    }

    /// Releases the lease, so that a successor does not have to wait. Best effort, within one request's
    /// deadline.
    async fn release(&mut self) {
        self.stand.take(Standing::Ended);
        let deadline = Instant::now() + self.times.request_deadline();
        let release = async {
            while let Some(step) = self.protocol.release(Instant::now(), Timestamp::now()) {
                match step {
                    LeaseAction::Write(write) => self.write(write).await,
                    LeaseAction::Wait(until) => sleep_until(until).await,
                    LeaseAction::Read | LeaseAction::Lost(_) => self.read().await,
                }
            }
        };
        if timeout_at(deadline, release).await.is_err() {
            tracing::warn!(
                lease = self.lease,
                "lease could not be released; the next leader waits until it expires"
            );
        }
    }

    async fn read(&mut self) {
        let sent = Instant::now();
        match timeout_at(self.deadline(sent), self.lock.read()).await {
            Ok(Ok(found)) => self.saw(found),
            Ok(Err(refusal)) => self.failed(&refusal, sent),
            Err(_) => self.failed(&self.no_answer("read"), sent),
        }
    }

    async fn write(&mut self, write: Write) {
        let (sent, clock) = (Instant::now(), self.stand.fence().now());
        self.protocol.sending();
        match timeout_at(self.deadline(sent), self.lock.write(&write)).await {
            Ok(Ok(found)) => {
                self.last_failure = None;
                self.protocol.wrote(found, sent, Instant::now());
                if self.protocol.leads() {
                    self.stand.fence().open_until(clock + self.times.renew_deadline);
                }
            }
            Ok(Err(refusal)) => self.failed(&refusal, sent),
            Err(_) => self.failed(&self.no_answer("written"), sent),
        }
    }

    /// The deadline of a request: it leaves time for another attempt, and is not later than the loss of the
    /// lease.
    fn deadline(&self, now: Instant) -> Instant {
        let deadline = now + self.times.request_deadline();
        self.protocol.deadline().map_or(deadline, |lost| deadline.min(lost))
    }

    fn saw(&mut self, found: Option<Found>) {
        let before = self.protocol.holder().map(str::to_owned);
        self.protocol.saw(found, Instant::now(), self.pause());
        let holder = self.protocol.holder();
        if !self.protocol.leads() && holder != before.as_deref() {
            if let Some(holder) = holder {
                tracing::info!(lease = self.lease, holder, "another process is the leader");
            }
            self.stand.take(Standing::Standby { leader: holder.map(str::to_owned) });
        }
    }

    fn failed(&mut self, refusal: &LeaseError, sent: Instant) {
        self.protocol.failed(&refusal.failed, sent, Instant::now(), self.pause());
        if refusal.failed == Failed::Unknown {
            self.note(refusal);
        } else {
            tracing::debug!(lease = self.lease, %refusal, "another process wrote the lease");
        }
    }

    /// Logs a failure once instead of every two seconds.
    fn note(&mut self, refusal: &LeaseError) {
        if self.last_failure.as_ref() != Some(&refusal.message) {
            tracing::warn!(lease = self.lease, %refusal, "lease request failed, retrying");
            self.last_failure = Some(refusal.message.clone());
        }
    }

    fn pause(&self) -> Duration {
        if self.protocol.leads() { self.times.retry_period } else { self.times.spread_retry(chance()) }
    }

    fn no_answer(&self, what: &str) -> LeaseError {
        let message = format!("the Lease {} could not be {what} in time", self.lease);
        LeaseError { failed: Failed::Unknown, message }
    }

    fn explain(&self, loss: Loss) -> LeaseLost {
        let lease = self.lease.clone();
        match loss {
            Loss::Deadline => LeaseLost::Deadline {
                lease,
                renew_deadline: self.times.renew_deadline,
                why: self.last_failure.clone().unwrap_or_else(|| "no response in time".to_owned()),
            },
            Loss::Taken(holder) => LeaseLost::Taken { lease, holder },
        }
    }
}

/// The watch of a standby. Optional: without it, a standby reads the Lease periodically.
#[derive(Default)]
struct Watch {
    changes: Option<BoxStream<'static, Result<Option<Found>, LeaseError>>>,
    not_before: Option<Instant>,
}

impl Watch {
    fn open(&mut self, lock: &impl Lock, protocol: &mut Protocol) {
        let due = self.not_before.is_none_or(|at| at <= Instant::now());
        if self.changes.is_none() && due {
            self.changes = Some(lock.changes(protocol.version()));
            self.not_before = Some(Instant::now() + WATCH_AGAIN.mul_f64(1.0 + chance()));
        }
    }

    /// Returns the next change; an error or `None` when the watch has ended. Waits without end if there is no
    /// watch. Cancel safe.
    async fn next(&mut self, protocol: &mut Protocol) -> Option<Result<Option<Found>, LeaseError>> {
        let Some(changes) = &mut self.changes else { return std::future::pending().await };
        let heard = changes.next().await;
        match &heard {
            Some(Ok(_)) => protocol.watched(true),
            Some(Err(_)) | None => self.close(protocol),
        }
        heard
    }

    fn close(&mut self, protocol: &mut Protocol) {
        self.changes = None;
        protocol.watched(false);
    }
}
