//! All cases of one mutation, in lanes that run side by side.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use futures::future::try_join_all;
use tokio::time::Instant;

use super::case::{Case, cases};
use super::exceptions::Exceptions;
use super::judge::{Finding, Reaction, WayBack, judge, judge_start, names, with_exceptions};
use super::lane::{ACCOUNT, Lane};
use super::overrides::Overrides;
use super::plan::{Mutation, Plan};
use super::report::MutationReport;
use super::results::{Judged, Results};
use super::selection::{Selection, VARIABLE, side_by_side};
use crate::digest;
use crate::env::TestEnv;
use crate::error::{Error, Result};
use crate::torture::{Snapshot, StepResult};
use crate::user::{Rules, TestUser};

/// The number of cases that one lane takes at a time, of those with the same start.
const BATCH: usize = 12;

impl Mutation {
    /// Runs the selected cases. An error means that the environment failed; what the operator does wrong is
    /// in the report.
    ///
    /// Dropped midway, every operator is killed and every namespace is deleted.
    pub async fn run(self, env: &TestEnv) -> Result<MutationReport> {
        run(&self.plan, env).await
    }

    /// The ids of all cases, in order, and the mistakes in the files. Nothing is run.
    pub fn ids(&self) -> StepResult<Vec<String>> {
        let (cases, _, mistakes) = generate(&self.plan);
        if mistakes.is_empty() {
            Ok(cases.iter().map(Case::id).collect())
        } else {
            Err(mistakes.join("\n").into())
        }
    }
}

/// The cases, the exceptions and the mistakes of a plan.
fn generate(plan: &Plan) -> (Vec<Case>, Exceptions, Vec<String>) {
    let mut mistakes = Vec::new();
    let overrides = Overrides::parse(&plan.values).unwrap_or_else(|mistake| {
        mistakes.push(mistake);
        Overrides::default()
    });
    let exceptions = Exceptions::parse(&plan.exceptions).unwrap_or_else(|mistake| {
        mistakes.push(mistake);
        Exceptions::default()
    });
    if plan.kinds.is_empty() {
        mistakes.push("no kind is watched, so nothing would have an effect: add `.watch(…)`".to_owned());
    }
    let generated = cases(&plan.schema, &plan.base, &overrides);
    mistakes.extend(generated.mistakes);
    let ids: Vec<String> = generated.all.iter().map(Case::id).collect();
    mistakes.extend(exceptions.unused(&generated.paths, &ids));
    (generated.all, exceptions, mistakes)
}

async fn run(plan: &Plan, env: &TestEnv) -> Result<MutationReport> {
    let began = Instant::now();
    let mut report = MutationReport::new(&plan.name);
    let (all, exceptions, mut mistakes) = generate(plan);
    report.total = all.len();
    let selection = match Selection::from_env(plan.selection.clone()) {
        Ok(selection) => selection,
        Err(mistake) => {
            mistakes.push(mistake);
            Selection::All
        }
    };
    let lanes = side_by_side(plan.lanes).unwrap_or_else(|mistake| {
        mistakes.push(mistake);
        plan.lanes
    });
    if !mistakes.is_empty() {
        report.mistakes = mistakes;
        return Ok(report);
    }
    let chosen: Vec<Case> = all.iter().filter(|case| selection.includes(&case.id())).cloned().collect();
    if let (Selection::Named(name), true) = (&selection, chosen.is_empty()) {
        return Err(Error::NotRun {
            needs: format!("a case whose id begins with {name:?}, as {VARIABLE} says"),
            has: format!("{} has {} cases and none of them does", plan.name, all.len()),
        });
    }
    let content = format!("{}{}{}{}", plan.schema, plan.base, plan.values, plan.exceptions);
    let results = Results::open(&plan.name, &selection, &digest::short([content.as_bytes()], 8))?;
    report.table = Some(results.path.clone());
    let done: Vec<Judged> = results.before.clone();
    let left = chosen.into_iter().filter(|case| !done.iter().any(|judged| judged.id == case.id()));
    let queue = Mutex::new(batches(left.collect()));
    let home = env.namespace(&plan.name).await?;
    let user = home.client_for(ACCOUNT, &Rules::everything()).await?;
    let runner = Runner { plan, env, user: &user, exceptions: &exceptions, results: &results, queue: &queue };
    let lanes = try_join_all((0..lanes).map(|_| runner.lane())).await?;
    report.judged = done;
    for (judged, problem) in lanes {
        report.judged.extend(judged);
        report.mistakes.extend(problem);
    }
    report.judged.sort_by(|a, b| a.id.cmp(&b.id));
    report.mistakes.dedup();
    report.took = began.elapsed();
    Ok(report)
}

/// Cases with the same start, a few at a time.
fn batches(cases: Vec<Case>) -> VecDeque<Vec<Case>> {
    let mut groups: Vec<Vec<Case>> = Vec::new();
    for case in cases {
        match groups.iter_mut().find(|group| group[0].start == case.start && group.len() < BATCH) {
            Some(group) => group.push(case),
            None => groups.push(vec![case]),
        }
    }
    groups.into()
}

#[derive(Clone, Copy)]
struct Runner<'a> {
    plan: &'a Plan,
    env: &'a TestEnv,
    user: &'a TestUser,
    exceptions: &'a Exceptions,
    results: &'a Results,
    queue: &'a Mutex<VecDeque<Vec<Case>>>,
}

impl<'a> Runner<'a> {
    /// Works on the queue until it is empty. Returns the results, and what keeps a lane from being opened.
    async fn lane(self) -> Result<(Vec<Judged>, Option<String>)> {
        let mut judged = Vec::new();
        let mut lane: Option<Lane<'a>> = None;
        loop {
            let batch = self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(batch) = batch else { break };
            let mut left: VecDeque<Case> = batch.into();
            while !left.is_empty() {
                let open = match lane.take() {
                    Some(open) => open,
                    None => match Lane::open(self.plan, self.env, self.user).await? {
                        Ok(open) => open,
                        Err(problem) => return Ok((judged, Some(problem))),
                    },
                };
                if self.batch(&open, &mut left, &mut judged).await? {
                    lane = Some(open);
                } else {
                    open.close().await;
                }
            }
        }
        if let Some(lane) = lane {
            lane.close().await;
        }
        Ok((judged, None))
    }

    /// Runs cases with the same start one after the other. Returns false if the lane is not as it was, and
    /// the cases that are left need another one.
    async fn batch(
        self,
        lane: &Lane<'a>,
        left: &mut VecDeque<Case>,
        judged: &mut Vec<Judged>,
    ) -> Result<bool> {
        let Some(first) = left.front() else { return Ok(true) };
        let is_base = first.start["spec"] == self.plan.base["spec"];
        let start = first.start.clone();
        let (before, ready) = if is_base {
            (lane.fresh.clone(), true)
        } else {
            match lane.mutate(&start, &lane.fresh, true, &|_| false).await? {
                (Reaction::Settled(settled), Some(snapshot)) => (snapshot, settled.ready),
                (reaction, _) => {
                    for case in left.drain(..) {
                        let (finding, message) = judge_start(&case, &reaction);
                        judged.push(self.record(&case, finding, message)?);
                    }
                    return Ok(matches!(reaction, Reaction::Refused(_)));
                }
            }
        };
        while let Some(case) = left.pop_front() {
            let (finding, message, intact) = self.case(lane, &case, &before, ready).await?;
            judged.push(self.record(&case, finding, message)?);
            if !intact {
                return Ok(false);
            }
        }
        Ok(is_base || matches!(lane.back(&self.plan.base, &lane.fresh, true).await?, WayBack::Same))
    }

    /// Runs one case. The last value is true if the lane is as it was before.
    async fn case(
        self,
        lane: &Lane<'a>,
        case: &Case,
        before: &Snapshot,
        ready: bool,
    ) -> Result<(Finding, String, bool)> {
        let clear = |message: &str| names(case, message);
        let mut reactions = Vec::new();
        for manifest in &case.manifests {
            let (reaction, _) = lane.mutate(manifest, before, case.change.is_invalid(), &clear).await?;
            let broken = !matches!(reaction, Reaction::Refused(_) | Reaction::Settled(_));
            reactions.push(reaction);
            if broken {
                let (finding, message) = judge(case, &reactions, &WayBack::Same);
                return Ok((finding, message, false));
            }
        }
        let untouched = reactions.iter().all(|reaction| matches!(reaction, Reaction::Refused(_)));
        let way_back = if untouched { WayBack::Same } else { lane.back(&case.start, before, ready).await? };
        let (finding, message) = judge(case, &reactions, &way_back);
        Ok((finding, message, way_back == WayBack::Same))
    }

    #[allow(clippy::print_stderr)] // a test keeps it for itself, unless it fails or is run with --nocapture
    fn record(self, case: &Case, finding: Finding, message: String) -> Result<Judged> {
        let (finding, message) = with_exceptions(case, finding, message, self.exceptions);
        let judged = Judged { id: case.id(), finding, message };
        self.results.add(&judged)?;
        eprintln!("mutation of {}: {} {} {}", self.plan.name, judged.id, finding.word(), judged.message);
        Ok(judged)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cases_with_the_same_start_share_a_batch() {
        let schema = json!({"properties": {"spec": {"properties": {
            "a": {"type": "boolean"}, "b": {"type": "object", "properties": {"c": {"type": "boolean"}}}}}}});
        let found = cases(&schema, &json!({"spec": {}}), &Overrides::default());
        let batches = batches(found.all);
        let ids: Vec<Vec<String>> =
            batches.iter().map(|batch| batch.iter().map(Case::id).collect()).collect();
        assert_eq!(
            ids,
            [
                vec!["spec.a=change", "spec.a=invalid:seven", "spec.b=added", "spec.b=invalid:seven"],
                vec!["spec.b.c=change", "spec.b.c=invalid:seven"],
            ]
        );
    }
}
