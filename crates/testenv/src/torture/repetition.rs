//! A scenario played once, undisturbed or disturbed at one point, and judged.

use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};
use tokio::time::Instant;

use super::ledger::{Ledger, Scope};
use super::plan::Plan;
use super::point::{Family, Place, Point, Write};
use super::scenario::{Scene, Step};
use super::snapshot::Snapshot;
use super::stage::{Bustle, Stage};
use crate::env::TestEnv;
use crate::error::Result;
use crate::proxy::{Action, Fault, FaultHandle, FaultProxy, Match};
use crate::user::{Rules, TestUser};

/// The service account of the operator.
pub(super) const ACCOUNT: &str = "operator-under-torture";

/// How often the state is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// How long an operator that has its answer may think before it is killed, if it sends nothing.
const THOUGHT: Duration = Duration::from_millis(100);

/// By how much longer the undisturbed run must be calm: what it leaves behind is the measure of all others.
const UNDISTURBED_CALM: u32 = 3;

/// How the undisturbed run went.
pub(super) struct Undisturbed {
    /// The state at the end of each step.
    pub(super) snapshots: Vec<Snapshot>,
    pub(super) writes: Vec<Write>,
}

/// How a repetition went.
pub(super) struct Outcome {
    pub(super) reached: bool,
    /// What was wrong; none is good.
    pub(super) problems: Vec<String>,
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
    pub(super) async fn undisturbed(self) -> Result<Result<Undisturbed, Vec<String>>> {
        let namespace = self.env.namespace(&self.plan.name).await?;
        let stage = self.stage(&namespace).await?;
        stage.start(|_| ()).await?;
        let director = Director { stage: &stage, undisturbed: None, reversal: None };
        let played = director.play().await?;
        let result = match played {
            Ok(snapshots) => Ok(Undisturbed { snapshots, writes: stage.writes() }),
            Err(problems) => Err(problems),
        };
        stage.kill().await;
        Ok(result)
    }

    /// Plays with a disturbance at a point.
    pub(super) async fn disturbed(self, point: &Point, undisturbed: &Undisturbed) -> Result<Outcome> {
        let began = Instant::now();
        let namespace = self.env.namespace(&self.plan.name).await?;
        let stage = self.stage(&namespace).await?;
        let mut director = Director { stage: &stage, undisturbed: Some(undisturbed), reversal: None };
        let (reached, played) = match &point.place {
            Place::Step(step, reversal) => {
                director.reversal = Some((step, reversal));
                stage.start(|_| ()).await?;
                (true, director.play().await?)
            }
            Place::Write(write, occurrence) => {
                let occasion = Fault::on(write.matching(namespace.name())).nth(*occurrence);
                let fault = occasion.then(match point.family {
                    Family::After | Family::Lost => Action::HoldAnswer,
                    Family::Unanswered => Action::DropAfter,
                    Family::Before | Family::Stale | Family::Unobserved => Action::Hold,
                });
                let handle = stage.start(|proxy| proxy.add(fault)).await?;
                let playing = pin!(director.play());
                let disturbing = pin!(disturb(&stage, point.family, &handle));
                let played = match select(playing, disturbing).await {
                    Either::Left((played, _)) => played?,
                    Either::Right((disturbed, playing)) => {
                        disturbed?;
                        playing.await?
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

/// Leads a scenario from its first step to its last.
struct Director<'a> {
    stage: &'a Stage<'a>,
    undisturbed: Option<&'a Undisturbed>,
    /// After which step, and which one.
    reversal: Option<(&'a str, &'a str)>,
}

/// What ends a step early.
type Problem = Vec<String>;

impl Director<'_> {
    /// The snapshots at the ends of the steps, or what was wrong.
    async fn play(&self) -> Result<Result<Vec<Snapshot>, Problem>> {
        let plan = self.stage.plan;
        let mut snapshots = Vec::new();
        let mut reversed = false;
        for (index, step) in plan.steps.iter().enumerate() {
            if let Err(error) = (step.action)(self.stage.scene.clone()).await {
                return Ok(Err(vec![format!("step {}: its action failed: {error}", step.name)]));
            }
            match self.finish(step, index, reversed).await {
                Ok(snapshot) => snapshots.push(snapshot),
                Err(problem) => return Ok(Err(problem)),
            }
            if let Some((after, name)) = self.reversal
                && after == step.name
            {
                reversed = true;
                if let Err(problem) = self.reverse(name).await {
                    return Ok(Err(vec![problem]));
                }
                if let Err(problem) = self.finish(step, index, reversed).await {
                    return Ok(Err(problem));
                }
            }
        }
        Ok(Ok(snapshots))
    }

    /// Cuts the operator off, changes something and changes it back, and connects the operator again.
    async fn reverse(&self, name: &str) -> Result<(), String> {
        let plan = self.stage.plan;
        let reversal = plan.reversals.iter().find(|reversal| reversal.name == name);
        let reversal = reversal.ok_or_else(|| format!("there is no reversal {name}"))?;
        let cut = |proxy: &FaultProxy| {
            let cut = proxy.add(Fault::on(Match::any()).then(Action::DropBefore));
            proxy.cut_watches(&Match::watches());
            cut
        };
        let cut = self.stage.with_proxy(cut);
        for action in [&reversal.there, &reversal.back] {
            let done = action(self.stage.scene.clone()).await;
            done.map_err(|error| format!("reversal {name}: an action failed: {error}"))?;
        }
        if let Some(cut) = cut {
            cut.remove();
        }
        Ok(())
    }

    /// Waits for the step's condition, then for rest, then for the state of the undisturbed run.
    async fn finish(&self, step: &Step, index: usize, reversed: bool) -> Result<Snapshot, Problem> {
        let plan = self.stage.plan;
        let deadline = Instant::now() + plan.patience;
        let mut waiting = Waiting::ForCondition("it gave no answer".to_owned());
        let calm = if self.undisturbed.is_some() { plan.calm } else { plan.calm * UNDISTURBED_CALM };
        let mut last: (Option<Bustle>, Instant) = (None, Instant::now());
        loop {
            self.look_for_problems(step)?;
            if let Waiting::ForCondition(words) = &mut waiting {
                let asked = tokio::time::timeout_at(deadline, (step.until)(self.stage.scene.clone())).await;
                match asked {
                    Ok(Ok(true)) => waiting = Waiting::ForRest,
                    Ok(Ok(false)) => "not yet".clone_into(words),
                    Ok(Err(error)) => *words = error.to_string(),
                    // Out of time; what it said before tells more.
                    Err(_) => {}
                }
            }
            let now = self.stage.bustle();
            if now.is_none() || now != last.0 {
                last = (now, Instant::now());
                if !matches!(waiting, Waiting::ForCondition(_)) {
                    waiting = Waiting::ForRest;
                }
            } else if last.1.elapsed() >= calm && !matches!(waiting, Waiting::ForCondition(_)) {
                match self.stage.ledger.snapshot().await {
                    Ok(snapshot) => match self.judge(index, &snapshot, reversed) {
                        differences if differences.is_empty() => return Ok(snapshot),
                        differences => waiting = Waiting::ForState(differences),
                    },
                    Err(words) => waiting = Waiting::ForState(vec![words]),
                }
            }
            if Instant::now() >= deadline {
                return Err(self.give_up(step, waiting));
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    fn judge(&self, index: usize, snapshot: &Snapshot, reversed: bool) -> Vec<String> {
        let Some(expected) = self.undisturbed.and_then(|run| run.snapshots.get(index)) else {
            return Vec::new();
        };
        let mut expected = expected.clone();
        if reversed {
            // The reversal may have created things of its own.
            expected.created.clone_from(&snapshot.created);
        }
        snapshot.differences(&expected)
    }

    /// What no waiting will cure.
    fn look_for_problems(&self, step: &Step) -> Result<(), Problem> {
        let stage = self.stage;
        if let Some(words) = stage.last_words() {
            return Err(vec![format!("step {}: the operator ended by itself: {words}", step.name)]);
        }
        let changed = stage.ledger.changed();
        if !changed.is_empty() {
            return Err(changed.into_iter().map(|words| format!("step {}: {words}", step.name)).collect());
        }
        let Some(undisturbed) = self.undisturbed else {
            return Ok(());
        };
        let (made, usual) = (stage.count_writes(), undisturbed.writes.len());
        let allowance = stage.plan.allowance.unwrap_or(usual);
        if made > usual + allowance {
            return Err(vec![format!(
                "step {}: {made} writes so far, undisturbed {usual} in all, and {allowance} more are allowed; \
                 the last requests: {}",
                step.name,
                stage.recent_work()
            )]);
        }
        Ok(())
    }

    fn give_up(&self, step: &Step, waiting: Waiting) -> Problem {
        let seconds = self.stage.plan.patience.as_secs_f32();
        let name = &step.name;
        match waiting {
            Waiting::ForCondition(words) => {
                vec![format!(
                    "step {name}: its condition did not come true within {seconds} s: {words}; the operator's last \
                     requests: {}",
                    self.stage.recent_work()
                )]
            }
            Waiting::ForRest => vec![format!(
                "step {name}: the operator did not come to rest within {seconds} s; its last requests: {}",
                self.stage.recent_work()
            )],
            Waiting::ForState(differences) => {
                differences.into_iter().map(|words| format!("step {name}: {words}")).collect()
            }
        }
    }
}

/// What a step lacks.
enum Waiting {
    ForCondition(String),
    ForRest,
    ForState(Vec<String>),
}
