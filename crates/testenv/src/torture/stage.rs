//! One repetition's stage: its namespace, its operator in one life after the other, and what both have done
//! so far.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ledger::Ledger;
use super::operator::Life;
use super::plan::Plan;
use super::point::{NAMESPACE, Write};
use super::scenario::Scene;
use crate::env::TestEnv;
use crate::error::{Error, Result};
use crate::proxy::{Delivery, FaultProxy, LoggedRequest, Match, RequestVerb};
use crate::user::TestUser;

/// The number of recent requests that are reported for an operator that does not come to rest.
const SHOWN: usize = 20;

/// The setting of one repetition: proxy, operator and ledger.
pub(super) struct Stage<'a> {
    pub(super) plan: &'a Plan,
    pub(super) env: &'a TestEnv,
    pub(super) user: TestUser,
    pub(super) scene: Scene,
    pub(super) ledger: Ledger,
    cast: Mutex<Cast>,
}

/// The present life of the operator and the record of those before.
#[derive(Default)]
struct Cast {
    /// The running operator; `None` before the first life, and between a kill and the next start.
    life: Option<Life>,
    lives: u32,
    /// An operator that waits for the Lease.
    standby: Option<Life>,
    /// The requests of the lives before.
    past: Vec<LoggedRequest>,
    /// A disturbance is going on: nothing is at rest.
    disturbed: bool,
}

/// A measure of activity: two equal values with time between them mean rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bustle {
    pub(super) pace: Pace,
    pub(super) events: u64,
}

/// The progress of the operator: the number of its life, and of its last request that was work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    pub(super) life: u32,
    pub(super) request: u64,
}

/// Differs when something happened that may change an answer of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct News {
    events: u64,
    request: u64,
}

impl<'a> Stage<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        env: &'a TestEnv,
        user: TestUser,
        scene: Scene,
        ledger: Ledger,
    ) -> Self {
        Self { plan, env, user, scene, ledger, cast: Mutex::default() }
    }

    fn cast(&self) -> MutexGuard<'_, Cast> {
        self.cast.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the operator; `prepare` may script its proxy before the first request.
    pub(super) async fn start<T>(&self, prepare: impl FnOnce(&FaultProxy) -> T) -> Result<T> {
        let number = self.cast().lives + 1;
        let (life, prepared) =
            Life::start(self.env, &self.user, &self.plan.operator, self.scene.namespace(), number, prepare)
                .await?;
        let mut cast = self.cast();
        cast.life = Some(life);
        cast.lives = number;
        Ok(prepared)
    }

    /// Starts a second operator, and returns when it has asked for the Lease.
    pub(super) async fn start_standby(&self) -> Result<()> {
        let number = self.cast().lives + 1;
        let (life, ()) =
            Life::start(self.env, &self.user, &self.plan.operator, self.scene.namespace(), number, |_| ())
                .await?;
        let asked = life.proxy.wait_for_request(&Match::any().resource("leases")).await;
        asked.map_err(|error| Error::Start(format!("the standby did not ask for the Lease: {error}")))?;
        self.cast().standby = Some(life);
        Ok(())
    }

    /// Makes the standby the operator that is judged. Returns the one before, which runs on.
    pub(super) fn promote(&self) -> Option<Life> {
        let mut cast = self.cast();
        let standby = cast.standby.take()?;
        cast.lives += 1;
        cast.life.replace(standby)
    }

    /// Kills the operator and its standby, where they live.
    pub(super) async fn kill(&self) {
        let lives = {
            let mut cast = self.cast();
            [cast.life.take(), cast.standby.take()]
        };
        for life in lives.into_iter().flatten() {
            self.bury(life).await;
        }
    }

    /// Kills an operator that is not on the stage any more, and keeps its requests.
    pub(super) async fn bury(&self, life: Life) {
        let seen = life.kill().await;
        self.cast().past.extend(seen);
    }

    /// The writes that a former operator has sent after the request of this number, in words.
    pub(super) fn writes_after(&self, life: &Life, sequence: u64) -> Vec<String> {
        let seen = life.proxy.seen().into_iter().filter(|seen| seen.sequence > sequence);
        seen.filter(|seen| Match::writes().matches(&seen.request) && !self.is_excluded(seen))
            .map(|seen| seen.request.to_string().replace(self.scene.namespace(), NAMESPACE))
            .collect()
    }

    pub(super) fn set_disturbed(&self, disturbed: bool) {
        self.cast().disturbed = disturbed;
    }

    /// Does something with the proxy of the present life.
    pub(super) fn with_proxy<T>(&self, act: impl FnOnce(&FaultProxy) -> T) -> Option<T> {
        self.cast().life.as_ref().map(|life| act(&life.proxy))
    }

    /// The reason that the operator gave when it ended without being killed.
    pub(super) fn last_words(&self) -> Option<String> {
        self.cast().life.as_ref()?.last_words().cloned()
    }

    /// The activity so far; `None` while a request is in flight.
    pub(super) fn bustle(&self) -> Option<Bustle> {
        let cast = self.cast();
        let proxy = &cast.life.as_ref()?.proxy;
        if cast.disturbed || proxy.last_sequence() == 0 || self.waits(proxy) {
            return None;
        }
        let pace = Pace { life: cast.lives, request: self.last_work(proxy) };
        Some(Bustle { pace, events: self.ledger.events() })
    }

    /// The progress of the operator.
    pub(super) fn pace(&self) -> Pace {
        let cast = self.cast();
        let proxy = cast.life.as_ref().map(|life| &life.proxy);
        Pace { life: cast.lives, request: proxy.map_or(0, |proxy| self.last_work(proxy)) }
    }

    /// Events that may have changed an answer of the server.
    pub(super) fn news(&self) -> News {
        let cast = self.cast();
        let proxy = cast.life.as_ref().map(|life| &life.proxy);
        News { events: self.ledger.events(), request: proxy.map_or(0, |proxy| self.last_work(proxy)) }
    }

    /// The [`bustle`](Self::bustle) of the operator alone, also during a disturbance.
    pub(super) fn own_bustle(&self) -> Option<u64> {
        let cast = self.cast();
        let proxy = &cast.life.as_ref()?.proxy;
        (!self.waits(proxy)).then(|| self.last_work(proxy))
    }

    fn waits(&self, proxy: &FaultProxy) -> bool {
        let waits = |seen: &LoggedRequest| {
            seen.client == Delivery::Waiting
                && seen.request.verb != RequestVerb::Watch
                && !self.is_excluded(seen)
        };
        proxy.last_where(waits).is_some()
    }

    /// The number of the last request that was work; 0 if there was none.
    fn last_work(&self, proxy: &FaultProxy) -> u64 {
        proxy.last_where(|seen| self.is_work(seen)).unwrap_or_default()
    }

    /// Reads of lists, watches, and what is no resource do not disturb the rest.
    fn is_work(&self, seen: &LoggedRequest) -> bool {
        seen.request.resource.is_some()
            && !matches!(seen.request.verb, RequestVerb::Watch | RequestVerb::List)
            && !self.is_excluded(seen)
    }

    fn is_excluded(&self, seen: &LoggedRequest) -> bool {
        seen.request.resource.as_ref().is_some_and(|resource| self.plan.excluded.contains(resource))
    }

    /// The writes of all lives so far that count, in order of arrival.
    pub(super) fn writes(&self) -> Vec<Write> {
        let generated = self.ledger.generated();
        let namespace = self.scene.namespace();
        self.seen()
            .iter()
            .filter(|seen| !self.is_excluded(seen))
            .filter_map(|seen| Write::of(&seen.request, namespace, &generated))
            .collect()
    }

    /// The number of writes so far.
    pub(super) fn count_writes(&self) -> usize {
        let cast = self.cast();
        let counts = |seen: &LoggedRequest| {
            seen.request.resource.is_some()
                && Match::writes().matches(&seen.request)
                && !self.is_excluded(seen)
        };
        let past = cast.past.iter().filter(|seen| counts(seen)).count();
        past + cast.life.as_ref().map_or(0, |life| life.proxy.count(counts))
    }

    fn seen(&self) -> Vec<LoggedRequest> {
        let cast = self.cast();
        let present = cast.life.as_ref().map(|life| life.proxy.seen()).unwrap_or_default();
        cast.past.iter().cloned().chain(present).collect()
    }

    /// The last requests, in words.
    pub(super) fn recent_work(&self) -> String {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let seen = self.seen();
        for seen in seen.iter().rev().filter(|seen| self.is_work(seen)).take(SHOWN) {
            let request = seen.request.to_string().replace(self.scene.namespace(), NAMESPACE);
            let answer = seen.server.map_or("no answer".to_owned(), |code| code.to_string());
            *counts.entry(format!("{request} ({answer})")).or_default() += 1;
        }
        if counts.is_empty() {
            return "none".to_owned();
        }
        let lines: Vec<String> =
            counts.into_iter().map(|(request, count)| format!("{count}× {request}")).collect();
        lines.join(", ")
    }
}
