//! All repetitions of one torture, a few at a time.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::Instant;

use super::plan::Plan;
use super::point::{Family, Place, Point, places};
use super::repetition::{Outcome, Player, Undisturbed, common_user};
use super::report::{Judged, Report};
use super::selection::{POINT, Selection};
use crate::env::TestEnv;
use crate::error::{Error, Result};

/// A point that was not reached is tried once more: which writes an operator merges is a matter of time.
const TRIES: usize = 2;

pub(super) async fn run(plan: &Plan, env: &TestEnv) -> Result<Report> {
    let began = Instant::now();
    let mut report = Report::new(&plan.name);
    let selection = match Selection::from_env(plan.selection.clone()) {
        Ok(selection) => selection,
        Err(words) => {
            report.undisturbed.push(words);
            return Ok(report);
        }
    };
    let home = env.namespace(&plan.name).await?;
    let user = common_user(&home).await?;
    let player = Player { plan, env, user: &user };
    let undisturbed = match player.undisturbed().await? {
        Ok(undisturbed) => undisturbed,
        Err(problems) => {
            report.undisturbed = problems;
            report.took = began.elapsed();
            return Ok(report);
        }
    };
    report.writes = undisturbed.writes.len();
    let all = points(plan, &undisturbed);
    let chosen: Vec<Point> = all.iter().filter(|point| selection.includes(point)).cloned().collect();
    if let (Selection::One(name), true) = (&selection, chosen.is_empty()) {
        let names: Vec<String> = all.iter().map(Point::to_string).collect();
        return Err(Error::NotRun {
            needs: format!("the point {name:?} that {POINT} names"),
            has: format!("the undisturbed run of {} has these: {}", plan.name, names.join(", ")),
        });
    }
    report.left_out = all.len() - chosen.len();
    report.judged = stream::iter(chosen)
        .map(|point| judge(player, point, &undisturbed))
        .buffered(plan.side_by_side)
        .try_collect()
        .await?;
    report.took = began.elapsed();
    Ok(report)
}

/// Every point of a scenario, family by family.
fn points(plan: &Plan, undisturbed: &Undisturbed) -> Vec<Point> {
    let writes = places(undisturbed.writes.iter().cloned());
    let reversals = || plan.reversals.iter().map(|one| Place::Step(one.after.clone(), one.name.clone()));
    let of = |family: Family| {
        let places = if family.is_about_writes() { writes.clone() } else { reversals().collect() };
        places.into_iter().map(move |place| Point { family, place })
    };
    plan.families.iter().copied().flat_map(of).collect()
}

async fn judge(player: Player<'_>, point: Point, undisturbed: &Undisturbed) -> Result<Judged> {
    let mut tries = 0;
    loop {
        tries += 1;
        let Outcome { reached, problems, took } = player.disturbed(&point, undisturbed).await?;
        if reached || !problems.is_empty() || tries == TRIES {
            return Ok(Judged { point, reached, problems, took });
        }
    }
}
