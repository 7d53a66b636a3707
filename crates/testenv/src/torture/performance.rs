//! One performance of a scenario: goes from step to step, and judges the end of each.

use std::time::Duration;

use tokio::time::Instant;

use super::quiet::{GLANCE, Quiet};
use super::scenario::ScenarioStep;
use super::snapshot::Snapshot;
use super::stage::{News, Stage};
use super::undisturbed::{StepEnd, Undisturbed};
use crate::proxy::{Action, Fault, FaultProxy, Match};

/// The interval between two requests to the server when no event arrived.
const NO_NEWS: Duration = Duration::from_millis(200);

/// The factor by which the undisturbed run must be calm for longer: its result is the reference for all
/// others.
const UNDISTURBED_CALM: u32 = 3;

/// The least time that a step of the undisturbed run may take: it says nothing about recovery, and a machine
/// with many other jobs needs more than a minute for a rollout.
const UNDISTURBED_PATIENCE: Duration = Duration::from_mins(5);

/// The factor by which a disturbed step may take longer than the same step did undisturbed, on a machine so
/// busy that the author's patience is too short.
const BUSY: u32 = 5;

/// One performance of a scenario, from its first step to its last.
pub(super) struct Performance<'a> {
    pub(super) stage: &'a Stage<'a>,
    pub(super) undisturbed: Option<&'a Undisturbed>,
    /// After which step, and which one.
    pub(super) reversal: Option<(&'a str, &'a str)>,
}

/// The problems found, in words.
pub(super) type Problems = Vec<String>;

impl Performance<'_> {
    /// The ends of the steps, or what was wrong.
    pub(super) async fn play(&self) -> Result<Vec<StepEnd>, Problems> {
        let mut ends = Vec::new();
        let mut reversed = false;
        for (index, step) in self.stage.plan.steps.iter().enumerate() {
            self.stage.ledger.set_disruptive(self.stage.plan.disruptive.contains(&step.name));
            if let Err(error) = (step.action)(self.stage.scene.clone()).await {
                return Err(vec![format!("step {}: its action failed: {error}", step.name)]);
            }
            let began = Instant::now();
            let snapshot = self.finish(step, index, reversed).await?;
            ends.push(StepEnd { snapshot, took: began.elapsed() });
            if let Some((after, name)) = self.reversal
                && after == step.name
            {
                reversed = true;
                self.reverse(name).await.map_err(|problem| vec![problem])?;
                self.finish(step, index, reversed).await?;
            }
        }
        Ok(ends)
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
        self.until_it_is_back().await
    }

    /// Waits until the operator that was cut off sends something: before that, it only seems to be at rest.
    async fn until_it_is_back(&self) -> Result<(), String> {
        let patience = self.stage.plan.patience;
        let last = || self.stage.with_proxy(FaultProxy::last_sequence);
        let before = last();
        let back = async {
            while last() == before {
                tokio::time::sleep(GLANCE).await;
            }
        };
        let seconds = patience.as_secs_f32();
        tokio::time::timeout(patience, back)
            .await
            .map_err(|_| format!("the operator that was cut off sent nothing within {seconds} s"))
    }

    /// Waits for the step's condition, then for rest, then for the state of the undisturbed run.
    async fn finish(&self, step: &ScenarioStep, index: usize, reversed: bool) -> Result<Snapshot, Problems> {
        let patience = self.patience(index);
        let deadline = Instant::now() + patience;
        let mut lack = Lack::Condition("it gave no answer".to_owned());
        let mut quiet = Quiet::new(self.stage.pace());
        let (mut asked, mut compared) = (Asked::default(), Asked::default());
        loop {
            self.look_for_problems(step)?;
            let (is_quiet, quiet_for) = quiet.look(self.stage.bustle(), self.stage.pace());
            lack = match lack {
                Lack::Condition(words) if asked.may(self.stage.news()) => {
                    self.ask(step, deadline, words).await
                }
                Lack::Rest | Lack::State(_) if !is_quiet => Lack::Rest,
                Lack::Rest | Lack::State(_)
                    if quiet_for >= self.calm(&quiet) && compared.may(self.stage.news()) =>
                {
                    match self.stage.ledger.snapshot().await {
                        Ok(snapshot) => match self.judge(index, &snapshot, reversed) {
                            differences if differences.is_empty() => return Ok(snapshot),
                            differences => Lack::State(differences),
                        },
                        Err(words) => Lack::State(vec![words]),
                    }
                }
                still => still,
            };
            if Instant::now() >= deadline {
                return Err(self.give_up(step, patience, lack));
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// The time that the step of this index may take.
    fn patience(&self, index: usize) -> Duration {
        let patience = self.stage.plan.patience;
        match self.undisturbed {
            None => patience.max(UNDISTURBED_PATIENCE),
            Some(run) => patience.max(run.ends.get(index).map_or(Duration::ZERO, |end| end.took * BUSY)),
        }
    }

    /// The time without activity after which the operator is at rest.
    fn calm(&self, quiet: &Quiet) -> Duration {
        let calm = quiet.calm(self.stage.plan.calm);
        if self.undisturbed.is_some() { calm } else { calm * UNDISTURBED_CALM }
    }

    /// Asks for a step's condition; `words` are what it said before.
    async fn ask(&self, step: &ScenarioStep, deadline: Instant, words: String) -> Lack {
        match tokio::time::timeout_at(deadline, (step.until)(self.stage.scene.clone())).await {
            Ok(Ok(true)) => Lack::Rest,
            Ok(Ok(false)) => Lack::Condition("not yet".to_owned()),
            Ok(Err(error)) => Lack::Condition(error.to_string()),
            // Out of time; what it said before tells more.
            Err(_) => Lack::Condition(words),
        }
    }

    fn judge(&self, index: usize, snapshot: &Snapshot, reversed: bool) -> Vec<String> {
        let Some(expected) = self.undisturbed.and_then(|run| run.ends.get(index)) else {
            return Vec::new();
        };
        let mut expected = expected.snapshot.clone();
        if reversed {
            // The reversal may have created things of its own.
            expected.created.clone_from(&snapshot.created);
        }
        snapshot.differences(&expected)
    }

    /// Checks for problems that no waiting will solve.
    fn look_for_problems(&self, step: &ScenarioStep) -> Result<(), Problems> {
        let stage = self.stage;
        if let Some(words) = stage.last_words() {
            return Err(vec![format!("step {}: the operator ended by itself: {words}", step.name)]);
        }
        let broken: Vec<String> =
            stage.ledger.changed().into_iter().chain(stage.ledger.interrupted()).collect();
        if !broken.is_empty() {
            return Err(broken.into_iter().map(|words| format!("step {}: {words}", step.name)).collect());
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

    fn give_up(&self, step: &ScenarioStep, patience: Duration, lack: Lack) -> Problems {
        let seconds = patience.as_secs_f32();
        let name = &step.name;
        match lack {
            Lack::Condition(words) => {
                vec![format!(
                    "step {name}: its condition did not come true within {seconds} s: {words}; the operator's last \
                     requests: {}",
                    self.stage.recent_work()
                )]
            }
            Lack::Rest => vec![format!(
                "step {name}: the operator did not come to rest within {seconds} s; its last requests: {}",
                self.stage.recent_work()
            )],
            Lack::State(differences) => {
                differences.into_iter().map(|words| format!("step {name}: {words}")).collect()
            }
        }
    }
}

/// The time of the last request to the server. It is asked again when an event arrived, or after a while
/// without one: the objects of a condition may not be watched.
#[derive(Default)]
struct Asked(Option<(News, Instant)>);

impl Asked {
    fn may(&mut self, news: News) -> bool {
        let may = self.0.is_none_or(|(last, when)| last != news || when.elapsed() >= NO_NEWS);
        if may {
            self.0 = Some((news, Instant::now()));
        }
        may
    }
}

/// The condition that a step still lacks.
enum Lack {
    /// The condition, and what it said last.
    Condition(String),
    Rest,
    /// The right state, and how it differs.
    State(Vec<String>),
}
