//! One run of a scenario, undisturbed or disturbed at one point, and its judgement.

use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};
use tokio::time::Instant;

use super::handover;
use super::ledger::{Ledger, Scope};
use super::performance::{Performance, Problems};
use super::plan::Plan;
use super::point::{Family, Point, Trigger};
use super::quiet::GLANCE;
use super::scenario::Scene;
use super::stage::Stage;
use super::undisturbed::Undisturbed;
use crate::audit::Mark;
use crate::env::TestEnv;
use crate::error::Result;
use crate::proxy::{Action, Fault, FaultHandle, Match};
use crate::user::{Rules, TestUser};

/// The service account of the operator.
pub(super) const ACCOUNT: &str = "operator-under-torture";

/// The time after which an operator that has its answer and sends nothing is killed.
const THOUGHT: Duration = Duration::from_millis(100);

/// The result of one repetition.
pub(super) struct RepetitionResult {
    pub(super) reached: bool,
    /// The problems found; empty if it passed.
    pub(super) problems: Problems,
    pub(super) took: Duration,
}

/// The participants of a repetition: plan, environment and user.
#[derive(Clone, Copy)]
pub(super) struct Player<'a> {
    pub(super) plan: &'a Plan,
    pub(super) env: &'a TestEnv,
    /// A user with all rights, for plans that name none.
    pub(super) user: &'a TestUser,
}

impl Player<'_> {
    /// Plays without a disturbance. The inner error is what was wrong.
    pub(super) async fn undisturbed(self) -> Result<Result<Undisturbed, Problems>> {
        let mark = self.env.requests()?.mark()?;
        let namespace = self.env.namespace(&self.plan.name).await?;
        let stage = self.stage(&namespace).await?;
        stage.start(|_| ()).await?;
        let performance = Performance { stage: &stage, undisturbed: None, reversal: None };
        let played = performance.play().await;
        let result = played.map(|ends| Undisturbed { ends, writes: stage.writes() });
        stage.kill().await;
        let hasty = self.hasty_deletes(&stage, mark)?;
        Ok(if hasty.is_empty() { result } else { Err(hasty) })
    }

    /// Plays with a disturbance at a point.
    pub(super) async fn disturbed(
        self,
        point: &Point,
        undisturbed: &Undisturbed,
    ) -> Result<RepetitionResult> {
        let began = Instant::now();
        let mark = self.env.requests()?.mark()?;
        let namespace = self.env.namespace(&self.plan.name).await?;
        let stage = self.stage(&namespace).await?;
        let mut performance = Performance { stage: &stage, undisturbed: Some(undisturbed), reversal: None };
        let (reached, played) = match &point.trigger {
            Trigger::Step(step, reversal) => {
                performance.reversal = Some((step, reversal));
                stage.start(|_| ()).await?;
                (true, performance.play().await)
            }
            Trigger::Write(write, occurrence) => {
                let occasion = Fault::on(write.matching(namespace.name())).nth(*occurrence);
                let fault = occasion.then(match point.family {
                    Family::After | Family::Lost => Action::HoldAnswer,
                    Family::Unanswered => Action::DropAfter,
                    Family::Before
                    | Family::Twice
                    | Family::Stale
                    | Family::Unobserved
                    | Family::Handover
                    | Family::Frozen => Action::Hold,
                });
                let handle = stage.start(|proxy| proxy.add(fault)).await?;
                if point.family.needs_standby() {
                    handover::prepare(&stage).await?;
                }
                let playing = pin!(performance.play());
                let disturbing = pin!(disturb(&stage, point.family, &handle));
                let played = match select(playing, disturbing).await {
                    Either::Left((played, _)) => played,
                    Either::Right((disturbed, playing)) => {
                        let wrong = disturbed?;
                        let played = playing.await;
                        if wrong.is_empty() { played } else { Err(wrong) }
                    }
                };
                (handle.hits() > 0, played)
            }
        };
        stage.kill().await;
        let mut problems = played.err().unwrap_or_default();
        problems.extend(self.hasty_deletes(&stage, mark)?);
        Ok(RepetitionResult { reached, problems, took: began.elapsed() })
    }

    /// The deletes of a repetition that were decided without a look at the owner, from the audit log.
    fn hasty_deletes(self, stage: &Stage<'_>, began: Mark) -> Result<Problems> {
        let Some(owners) = &self.plan.owners else { return Ok(Problems::new()) };
        let requests = self.env.requests()?.since(began)?.by_user(stage.user.name());
        Ok(requests.in_namespace(stage.scene.namespace()).deletes_without_a_read_of(owners))
    }

    async fn stage<'s>(&'s self, namespace: &crate::TestNamespace) -> Result<Stage<'s>> {
        let user = match &self.plan.rules {
            Some(rules) => namespace.client_for(ACCOUNT, rules).await?,
            None => self.user.clone(),
        };
        let client = self.env.client();
        let ledger = Ledger::open(Scope {
            client: client.clone(),
            namespace: namespace.name().to_owned(),
            kinds: self.plan.kinds.clone(),
            normalisers: self.plan.normalisers.clone(),
            account: ACCOUNT.to_owned(),
        })
        .await?;
        let scene = Scene::new(client, namespace.name().to_owned());
        Ok(Stage::new(self.plan, self.env, user, scene, ledger))
    }
}

/// A user with all rights for all repetitions, in a namespace of its own.
pub(super) async fn common_user(namespace: &crate::TestNamespace) -> Result<TestUser> {
    namespace.client_for(ACCOUNT, &Rules::everything()).await
}

/// Waits for the point and does there what the family says. Returns what the operator did wrong meanwhile.
/// Dropped midway, it leaves the disturbance as it is.
async fn disturb(stage: &Stage<'_>, family: Family, point: &FaultHandle) -> Result<Problems> {
    if family == Family::Unanswered {
        // The proxy does it alone.
        return Ok(Problems::new());
    }
    // A wait has an end and a scenario may take longer.
    while point.wait_for_hits(1).await.is_err() {}
    stage.set_disturbed(true);
    match family {
        Family::After => {
            let next = stage.with_proxy(|proxy| proxy.add(Fault::on(Match::any()).then(Action::Hold)));
            point.release();
            if let Some(next) = next {
                // It either sends something, which is held, or has nothing to send.
                let _ = tokio::time::timeout(THOUGHT, next.wait_for_hits(1)).await;
            }
        }
        Family::Stale => {
            let frozen = stage.with_proxy(|proxy| proxy.freeze_watches(&Match::watches()));
            point.remove();
            until_idle(stage).await;
            drop(frozen);
            stage.set_disturbed(false);
            return Ok(Problems::new());
        }
        Family::Handover | Family::Frozen => {
            let problems = handover::hand_over(stage, family, point).await?;
            stage.set_disturbed(false);
            return Ok(problems);
        }
        Family::Twice => {
            stage.kill().await;
            let writes = stage.plan.excluded.iter().fold(Match::writes(), Match::except);
            let first = Fault::on(writes).first().then(Action::Hold);
            let second = stage.start(|proxy| proxy.add(first)).await?;
            // A life that has nothing to write is killed as well, later.
            let _ = tokio::time::timeout(stage.plan.patience / 2, second.wait_for_hits(1)).await;
        }
        Family::Before | Family::Lost | Family::Unanswered | Family::Unobserved => {}
    }
    stage.kill().await;
    stage.start(|_| ()).await?;
    stage.set_disturbed(false);
    Ok(Problems::new())
}

/// Waits until the operator has done what it can do without news, or for half of the patience.
async fn until_idle(stage: &Stage<'_>) {
    let calm = stage.plan.calm;
    let idle = async {
        let mut since = (stage.own_bustle(), Instant::now());
        loop {
            tokio::time::sleep(GLANCE).await;
            let now = stage.own_bustle();
            if now.is_none() || now != since.0 {
                since = (now, Instant::now());
            } else if since.1.elapsed() >= calm {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(stage.plan.patience / 2, idle).await;
}
