//! One lane: a namespace with an operator and one owner, which gets one manifest after the other.

use std::time::Duration;

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::judge::{Reaction, Settled, WayBack};
use super::owner::OwnerReport;
use super::plan::Plan;
use crate::env::TestEnv;
use crate::error::{Error, Result};
use crate::eventually::{eventually, within};
use crate::namespace::TestNamespace;
use crate::proxy::{Delivery, LoggedRequest, RequestVerb};
use crate::torture::{Ledger, Life, Scene, Scope, Snapshot};
use crate::user::TestUser;

/// The service account of the operators.
pub(super) const ACCOUNT: &str = "operator-under-mutation";

/// The interval between two looks at an operator.
const GLANCE: Duration = Duration::from_millis(25);

/// The interval between two reads of the owner and its objects.
const LOOK: Duration = Duration::from_millis(200);

/// The number of requests in answer to one change that is a hot loop.
const STORM: usize = 400;

/// The number of requests of an operator that never rests by which it is a hot loop, and not merely slow.
const BUSY: usize = 20;

/// The factor by which an operator must be at rest for longer before a change counts as ignored.
const SURE: u32 = 3;

/// The factor by which the quiet time must exceed the operator's longest pause so far.
const PAUSES: u32 = 2;

/// The factor by which the quiet time may exceed the author's setting.
const LIMIT: u32 = 5;

/// The time that the deletion of an owner may take at the end of a lane.
const FAREWELL: Duration = Duration::from_secs(10);

/// A namespace, its operator and its owner.
pub(super) struct Lane<'a> {
    plan: &'a Plan,
    ledger: Ledger,
    life: Life,
    owners: Api<DynamicObject>,
    client: kube::Client,
    path: String,
    name: String,
    /// The objects of the owner when it was fresh.
    pub(super) fresh: Snapshot,
    // Last: its namespace goes after everything else.
    _namespace: TestNamespace,
}

/// The end of one wait.
enum Rest {
    Settled(OwnerReport, Snapshot),
    Broken(Reaction),
}

/// The state that is waited for.
enum Until<'t> {
    /// The operator is at rest; these are the objects before the change. An effect is enough, unless the
    /// message must be awaited.
    Rest { before: &'t Snapshot, patient: bool },
    /// The objects are these again.
    Same { then: &'t Snapshot, ready: bool },
}

impl<'a> Lane<'a> {
    /// Starts an operator in a new namespace and creates the base owner. The inner error is what was wrong.
    pub(super) async fn open(
        plan: &'a Plan,
        env: &TestEnv,
        user: &TestUser,
    ) -> Result<Result<Lane<'a>, String>> {
        let namespace = env.namespace(&plan.name).await?;
        let client = env.client();
        let scene = Scene::new(client.clone(), namespace.name().to_owned());
        if let Some(prepare) = &plan.prepare
            && let Err(error) = prepare(scene.clone()).await
        {
            return Ok(Err(format!("the namespace cannot be prepared: {error}")));
        }
        let ledger = Ledger::open(Scope {
            client: client.clone(),
            namespace: namespace.name().to_owned(),
            kinds: plan.kinds.clone(),
            normalisers: plan.normalisers.clone(),
            account: ACCOUNT.to_owned(),
        })
        .await?;
        let (life, ()) = Life::start(env, user, &plan.operator, namespace.name(), 1, |_| ()).await?;
        if let Some(serves) = &plan.serves {
            eventually("the operator to serve", || async {
                match (life.last_words(), serves(scene.clone()).await) {
                    (Some(words), _) => Err(format!("it ended: {words}")),
                    (None, Ok(true)) => Ok(()),
                    (None, Ok(false)) => Err("not yet".to_owned()),
                    (None, Err(error)) => Err(error.to_string()),
                }
            })
            .await?;
        }
        let owners = Api::namespaced_with(client.clone(), namespace.name(), &plan.owner);
        let name = plan.base["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let path = format!(
            "/apis/{}/namespaces/{}/{}/{name}",
            plan.owner.api_version,
            namespace.name(),
            plan.owner.plural
        );
        let fresh = Snapshot::default();
        let mut lane = Self { plan, ledger, life, owners, client, path, name, fresh, _namespace: namespace };
        if let Err(problem) = lane.create().await {
            return Ok(Err(problem));
        }
        Ok(Ok(lane))
    }

    async fn create(&mut self) -> Result<(), String> {
        let mut base = self.plan.base.clone();
        base["apiVersion"] = json!(self.plan.owner.api_version);
        base["kind"] = json!(self.plan.owner.kind);
        let base: DynamicObject = serde_json::from_value(base).map_err(|error| error.to_string())?;
        let created = self.owners.create(&PostParams::default(), &base).await;
        created.map_err(|error| format!("the base owner is refused: {error}"))?;
        let nothing = Snapshot::default();
        match self
            .rest(Until::Rest { before: &nothing, patient: true }, self.life.proxy.last_sequence(), &|_| {
                false
            })
            .await
        {
            Rest::Settled(report, snapshot) if report.ready => {
                self.fresh = snapshot;
                Ok(())
            }
            Rest::Settled(report, _) => {
                Err(format!("the base owner does not become ready: {}", report.message))
            }
            Rest::Broken(reaction) => Err(format!("the base owner does not become ready: {reaction:?}")),
        }
    }

    /// Gives the owner a manifest, and waits for the reaction. `before` are the objects that an effect is
    /// seen against, `patient` waits for an owner that is not ready in spite of an effect, and `clear`
    /// returns true for a message that says enough.
    pub(super) async fn mutate(
        &self,
        manifest: &Value,
        before: &Snapshot,
        patient: bool,
        clear: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<(Reaction, Option<Snapshot>)> {
        let since = self.life.proxy.last_sequence();
        let warnings = match self.put(manifest).await? {
            Ok(warnings) => warnings,
            Err(message) => return Ok((Reaction::Refused(message), None)),
        };
        let with_warnings = |message: &str| [message, &warnings].join(" ").trim().to_owned();
        let clear = |message: &str| clear(&with_warnings(message));
        Ok(match self.rest(Until::Rest { before, patient }, since, &clear).await {
            Rest::Settled(report, snapshot) => {
                let settled = Settled {
                    ready: report.ready,
                    failed: report.failed,
                    message: with_warnings(&report.message),
                    differences: snapshot.differences_from(before, "before"),
                };
                (Reaction::Settled(settled), Some(snapshot))
            }
            Rest::Broken(reaction) => (reaction, None),
        })
    }

    /// Gives the owner a manifest again, and waits until its objects are those of then, and until it is ready
    /// if it was.
    pub(super) async fn back(&self, manifest: &Value, then: &Snapshot, ready: bool) -> Result<WayBack> {
        let since = self.life.proxy.last_sequence();
        if let Err(message) = self.put(manifest).await? {
            return Ok(WayBack::Refused(message));
        }
        Ok(match self.rest(Until::Same { then, ready }, since, &|_| false).await {
            Rest::Settled(report, snapshot) => {
                let mut differences = snapshot.differences_from(then, "before");
                if ready && !report.ready {
                    differences.push(format!("not ready: {}", report.message));
                }
                if differences.is_empty() { WayBack::Same } else { WayBack::Differs(differences) }
            }
            Rest::Broken(reaction) => WayBack::Broken(reaction),
        })
    }

    /// Replaces the spec of the owner. Returns the warnings of admission, or the refusal.
    async fn put(&self, manifest: &Value) -> Result<Result<String, String>> {
        let what = || format!("changing {}", self.path);
        let answer = eventually(what(), || async {
            let mut owner = self.owners.get(&self.name).await.map_err(|error| error.to_string())?;
            owner.data["spec"] = manifest["spec"].clone();
            let body = serde_json::to_vec(&owner).map_err(|error| error.to_string())?;
            let request = http::Request::put(&self.path)
                .header("content-type", "application/json")
                .body(kube::client::Body::from(body))
                .map_err(|error| error.to_string())?;
            let answer = self.client.send(request).await.map_err(|error| error.to_string())?;
            // Somebody, most likely the operator, wrote in between.
            if answer.status() == http::StatusCode::CONFLICT {
                Err("a conflict".to_owned())
            } else {
                Ok(answer)
            }
        })
        .await?;
        let (head, body) = answer.into_parts();
        let warnings = head.headers.get_all(http::header::WARNING).iter();
        let warnings: Vec<String> =
            warnings.filter_map(|warning| warning.to_str().ok()).map(str::to_owned).collect();
        let body = body.collect_bytes().await.map_err(Error::api(what()))?;
        if head.status.is_success() {
            return Ok(Ok(warnings.join("; ")));
        }
        let status: Value = serde_json::from_slice(&body).unwrap_or_default();
        let message = status["message"].as_str().map(str::to_owned);
        Ok(Err(message.unwrap_or_else(|| String::from_utf8_lossy(&body).into_owned())))
    }

    /// Waits until the operator is at rest and the owner's state is what is waited for, or for as long as
    /// the plan has patience.
    async fn rest(&self, until: Until<'_>, since: u64, clear: &(dyn Fn(&str) -> bool + Sync)) -> Rest {
        let plan = self.plan;
        let began = Instant::now();
        let mut activity = (self.activity(), Instant::now());
        // An operator on a busy machine takes longer from one request to the next.
        let mut pause = Duration::ZERO;
        let mut looked = None::<Instant>;
        let mut last: Option<(OwnerReport, Snapshot)> = None;
        loop {
            if let Some(words) = self.life.last_words() {
                return Rest::Broken(Reaction::Crash(words.clone()));
            }
            let work = self.life.proxy.count(|seen| seen.sequence > since && is_work(seen));
            if work > STORM {
                return Rest::Broken(Reaction::HotLoop(self.storm(work, since)));
            }
            let now = self.activity();
            if now.is_none() || now != activity.0 {
                pause = pause.max(activity.1.elapsed());
                activity = (now, Instant::now());
            }
            let quiet = activity.1.elapsed();
            let calm = (pause * PAUSES).clamp(plan.calm, plan.calm * LIMIT);
            let may_look = looked.is_none_or(|looked| looked.elapsed() >= LOOK);
            if quiet >= calm && may_look {
                looked = Some(Instant::now());
                if let Some((report, snapshot)) = self.look().await {
                    if is_over(plan, &until, &report, &snapshot, quiet, clear) {
                        return Rest::Settled(report, snapshot);
                    }
                    last = Some((report, snapshot));
                }
            }
            if began.elapsed() >= plan.patience {
                return match last {
                    Some((report, snapshot)) if report.current && (!report.ready || work < BUSY) => {
                        Rest::Settled(report, snapshot)
                    }
                    _ if work >= BUSY => Rest::Broken(Reaction::HotLoop(self.storm(work, since))),
                    last => Rest::Broken(Reaction::Hang(hang(plan, last.map(|(report, _)| report)))),
                };
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// The owner's report and its objects; `None` if either cannot be read now.
    async fn look(&self) -> Option<(OwnerReport, Snapshot)> {
        let owner = self.owners.get(&self.name).await.ok()?;
        let report = (self.plan.report)(&serde_json::to_value(owner).ok()?);
        Some((report, self.ledger.snapshot().await.ok()?))
    }

    /// A measure of activity: two equal values with time between them mean rest. `None` while a request of
    /// the operator is under way.
    fn activity(&self) -> Option<(u64, u64)> {
        let proxy = &self.life.proxy;
        let waits = |seen: &LoggedRequest| {
            seen.client == Delivery::Waiting && counts(seen) && seen.request.verb != RequestVerb::Watch
        };
        if proxy.last_where(waits).is_some() {
            return None;
        }
        Some((proxy.last_where(is_work).unwrap_or_default(), self.ledger.events()))
    }

    /// The last requests of an operator that does not rest, in words.
    fn storm(&self, work: usize, since: u64) -> String {
        let seen = self.life.proxy.seen();
        let is_write =
            |seen: &&LoggedRequest| seen.sequence > since && is_work(seen) && seen.request.verb.is_write();
        let last = seen.iter().rev().find(is_write);
        let last = last.map_or("none".to_owned(), |seen| seen.request.to_string());
        format!("{work} requests after one change, the last write: {last}")
    }

    /// Deletes the owner while its operator lives, and ends the operator.
    pub(super) async fn close(self) {
        let _ = self.owners.delete(&self.name, &DeleteParams::default()).await;
        let gone = within(FAREWELL, "the owner to go", || async {
            match self.owners.get_opt(&self.name).await {
                Ok(None) => Ok(()),
                _ => Err("it is there".to_owned()),
            }
        });
        if gone.await.is_err() {
            // The namespace must go, whatever the operator is unable to do.
            let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            let _ = self.owners.patch(&self.name, &PatchParams::default(), &free).await;
        }
        self.life.kill().await;
    }
}

/// Returns true for requests about resources, Events and Leases apart.
fn counts(seen: &LoggedRequest) -> bool {
    let resource = seen.request.resource.as_deref();
    resource.is_some_and(|resource| !["events", "leases"].contains(&resource))
}

/// Returns true for requests that are neither lists nor watches, which do not disturb the rest.
fn is_work(seen: &LoggedRequest) -> bool {
    counts(seen) && !matches!(seen.request.verb, RequestVerb::Watch | RequestVerb::List)
}

/// Returns true if nothing more is to be waited for.
fn is_over(
    plan: &Plan,
    until: &Until<'_>,
    report: &OwnerReport,
    snapshot: &Snapshot,
    quiet: Duration,
    clear: &(dyn Fn(&str) -> bool + Sync),
) -> bool {
    if !report.current {
        return false;
    }
    match until {
        Until::Same { then, ready } => {
            let same = (report.ready || !ready) && snapshot.differences_from(then, "").is_empty();
            same || quiet >= plan.grace
        }
        Until::Rest { before, patient } => {
            let changed = !snapshot.differences_from(before, "").is_empty();
            let enough = match (report.ready, changed && !patient) {
                (true, _) if changed => plan.calm,
                (true, _) | (false, true) => plan.calm * SURE,
                (false, false) => plan.grace,
            };
            clear(&report.message) || quiet >= enough
        }
    }
}

/// The words for an owner whose status did not follow.
fn hang(plan: &Plan, report: Option<OwnerReport>) -> String {
    let seconds = plan.patience.as_secs_f32();
    match report {
        Some(report) if report.current => format!("the operator is not at rest after {seconds} s"),
        Some(report) => format!("the status does not follow within {seconds} s: {}", report.message),
        None => format!("no state to look at within {seconds} s"),
    }
}
