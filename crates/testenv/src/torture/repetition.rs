//! A scenario played once, undisturbed or disturbed at one point, and judged.

use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};
use tokio::time::Instant;

use super::ledger::{Ledger, Scope};
use super::performance::{Performance, Problems};
use super::plan::Plan;
use super::point::{Family, Place, Point};
use super::quiet::GLANCE;
use super::scenario::Scene;
use super::stage::Stage;
use super::undisturbed::Undisturbed;
use crate::env::TestEnv;
use crate::error::Result;
use crate::proxy::{Action, Fault, FaultHandle, Match};
use crate::user::{Rules, TestUser};

/// The service account of the operator.
pub(super) const ACCOUNT: &str = "operator-under-torture";

/// How long an operator that has its answer may think before it is killed, if it sends nothing.
const THOUGHT: Duration = Duration::from_millis(100);

/// How a repetition went.
pub(super) struct Outcome {
    pub(super) reached: bool,
    /// What was wrong; none is good.
    pub(super) problems: Problems,
    pub(super) took: Duration,
}

/// Who plays, and what is expected.
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
        let namespace = self.env.namespace(&self.plan.name).await?;
        let stage = self.stage(&namespace).await?;
        stage.start(|_| ()).await?;
        let performance = Performance { stage: &stage, undisturbed: None, reversal: None };
        let played = performance.play().await;
        let result = played.map(|snapshots| Undisturbed { snapshots, writes: stage.writes() });
        stage.kill().await;
        Ok(result)
    }

    /// Plays with a disturbance at a point.
    pub(super) async fn disturbed(self, point: &Point, undisturbed: &Undisturbed) -> Result<Outcome> {
        let began = Instant::now();
        let namespace = self.env.namespace(&self.plan.name).await?;
        let stage = self.stage(&namespace).await?;
        let mut performance = Performance { stage: &stage, undisturbed: Some(undisturbed), reversal: None };
        let (reached, played) = match &point.place {
            Place::Step(step, reversal) => {
                performance.reversal = Some((step, reversal));
                stage.start(|_| ()).await?;
                (true, performance.play().await)
            }
            Place::Write(write, occurrence) => {
                let occasion = Fault::on(write.matching(namespace.name())).nth(*occurrence);
                let fault = occasion.then(match point.family {
                    Family::After | Family::Lost => Action::HoldAnswer,
                    Family::Unanswered => Action::DropAfter,
                    Family::Before | Family::Stale | Family::Unobserved => Action::Hold,
                });
                let handle = stage.start(|proxy| proxy.add(fault)).await?;
                let playing = pin!(performance.play());
                let disturbing = pin!(disturb(&stage, point.family, &handle));
                let played = match select(playing, disturbing).await {
                    Either::Left((played, _)) => played,
                    Either::Right((disturbed, playing)) => {
                        disturbed?;
                        playing.await
                    }
                };
                (handle.hits() > 0, played)
            }
        };
        stage.kill().await;
        Ok(Outcome { reached, problems: played.err().unwrap_or_default(), took: began.elapsed() })
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

/// Waits for the point and does there what the family says. Dropped midway, it leaves the disturbance as it is.
async fn disturb(stage: &Stage<'_>, family: Family, point: &FaultHandle) -> Result<()> {
    if family == Family::Unanswered {
        // The proxy does it alone.
        return Ok(());
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
            return Ok(());
        }
        Family::Before | Family::Lost | Family::Unanswered | Family::Unobserved => {}
    }
    stage.kill().await;
    stage.start(|_| ()).await?;
    stage.set_disturbed(false);
    Ok(())
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
