//! All repetitions of one torture, a few at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::Instant;

use super::plan::{Plan, Torture};
use super::point::{Family, Point, Trigger, triggers};
use super::repetition::{Player, RepetitionResult, common_user};
use super::report::{Judged, Report};
use super::selection::{self, POINT, Selection};
use super::undisturbed::Undisturbed;
use crate::env::TestEnv;
use crate::error::{Error, Result};

/// A point that was not reached is tried once more: which writes an operator merges is a matter of time.
const TRIES: usize = 2;

impl Torture {
    /// Plays the scenario once undisturbed and once per point. An error means that the environment failed;
    /// what the operator does wrong is in the report.
    ///
    /// Dropped midway, every operator is killed and every namespace is deleted.
    pub async fn run(self, env: &TestEnv) -> Result<Report> {
        run(&self.plan, env).await
    }
}

async fn run(plan: &Plan, env: &TestEnv) -> Result<Report> {
    let began = Instant::now();
    let mut report = Report::new(&plan.name);
    let chosen = Selection::from_env(plan.selection.clone())
        .and_then(|selection| Ok((selection, selection::side_by_side(plan.side_by_side)?)));
    let (selection, side_by_side) = match chosen {
        Ok(chosen) => chosen,
        Err(words) => return Ok(report.without_disturbance(vec![words])),
    };
    let mistakes = plan.mistakes();
    if !mistakes.is_empty() {
        return Ok(report.without_disturbance(mistakes));
    }
    let home = env.namespace(&plan.name).await?;
    let user = common_user(&home).await?;
    let player = Player { plan, env, user: &user };
    let undisturbed = match player.undisturbed().await? {
        Ok(undisturbed) => undisturbed,
        Err(problems) => return Ok(report.without_disturbance(problems)),
    };
    if undisturbed.writes.is_empty() {
        let words = "the operator wrote nothing, so there is no point at which it could be disturbed";
        return Ok(report.without_disturbance(vec![words.to_owned()]));
    }
    report.writes = undisturbed.writes.len();
    let undisturbed = &undisturbed;
    let all = points(plan, undisturbed);
    let chosen: Vec<Point> = all.iter().filter(|point| selection.includes(point)).cloned().collect();
    if let (Selection::One(name), true) = (&selection, chosen.is_empty()) {
        let names: Vec<String> = all.iter().map(Point::to_string).collect();
        return Err(Error::NotRun {
            needs: format!("the point {name:?} that {POINT} names"),
            has: format!("the undisturbed run of {} has these: {}", plan.name, names.join(", ")),
        });
    }
    report.left_out = all.len() - chosen.len();
    let progress = Progress { torture: &plan.name, total: chosen.len(), done: AtomicUsize::new(0) };
    let progress = &progress;
    let judging = chosen.into_iter().enumerate().map(|(index, point)| async move {
        let judged = judge(player, point, undisturbed).await?;
        progress.report(&judged);
        Ok::<_, Error>((index, judged))
    });
    let mut judged: Vec<(usize, Judged)> =
        stream::iter(judging).buffer_unordered(side_by_side).try_collect().await?;
    judged.sort_by_key(|(index, _)| *index);
    report.judged = judged.into_iter().map(|(_, judged)| judged).collect();
    report.took = began.elapsed();
    Ok(report)
}

/// Says how far a run is, so that hours of it can be followed, and what failed is known if it does not come
/// to its end.
struct Progress<'a> {
    torture: &'a str,
    total: usize,
    done: AtomicUsize,
}

impl Progress<'_> {
    #[allow(clippy::print_stderr)] // a test keeps it for itself, unless it fails or is run with --nocapture
    fn report(&self, judged: &Judged) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let Judged { point, reached, problems, took } = judged;
        let outcome = match (problems.is_empty(), reached) {
            (false, _) => format!("FAILED: {}", problems.join("; ")),
            (true, true) => "ok".to_owned(),
            (true, false) => "not reached".to_owned(),
        };
        eprintln!(
            "torture of {}: {done} of {}: {point} {outcome} ({:.1} s)",
            self.torture,
            self.total,
            took.as_secs_f64()
        );
    }
}

/// Every point of a scenario, family by family.
fn points(plan: &Plan, undisturbed: &Undisturbed) -> Vec<Point> {
    let writes = triggers(undisturbed.writes.iter().cloned());
    let reversals = || plan.reversals.iter().map(|one| Trigger::Step(one.after.clone(), one.name.clone()));
    let of = |family: Family| {
        let triggers = if family.is_about_writes() { writes.clone() } else { reversals().collect() };
        triggers.into_iter().map(move |trigger| Point { family, trigger })
    };
    let has_points = |family: &Family| plan.lease.is_some() || !family.needs_standby();
    plan.families.iter().copied().filter(has_points).flat_map(of).collect()
}

async fn judge(player: Player<'_>, point: Point, undisturbed: &Undisturbed) -> Result<Judged> {
    let mut tries = 0;
    loop {
        tries += 1;
        let RepetitionResult { reached, problems, took } = player.disturbed(&point, undisturbed).await?;
        if reached || !problems.is_empty() || tries == TRIES {
            return Ok(Judged { point, reached, problems, took });
        }
    }
}
