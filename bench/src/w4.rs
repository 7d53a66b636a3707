//! W4: an operator's whole work, from creation to deletion.
//!
//! **Measures** Widgets with five children each (ServiceAccount, ConfigMap, Secret, Service, Deployment), ten
//! workers, in phases: *create* until all are Ready, where a stub of the harness marks each Deployment
//! available at once, as a cluster with pods would; *change*, where every Widget gets another color, which is
//! in its ConfigMap and, as a digest, in its Deployment's pods, and in nothing else; *quiet*, where nothing
//! happens; and *delete*, with a finalizer. Time in total and per Widget, requests by the API server's audit
//! log, CPU, peak memory. A phase's requests are counted until a second and a half has passed without one, so
//! that work which a subject puts off is counted too.
//!
//! **Guards**: after the change every Widget and every child is compared with what it must be, field by
//! field, and there is nothing else; in the quiet minute ours writes no object (late Events are a figure of
//! their own, and count against the target); after the deletion no Widget is left.
//!
//! **Does not show** the garbage collector: it is off, so the children of Go's Widgets stay, while Windlass,
//! which has a finalizer only for an ordered teardown, deletes the five itself and then removes the
//! finalizer. Its delete phase is therefore more work. Slow rollouts are not measured either.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::json;
use windlass_runtime::key::ObjectKey;
use windlass_testenv::{Mark, Requests};

use crate::admin::{collection, object};
use crate::bench::{Bench, Cell, Measured, Workload};
use crate::expected::{self, ByName, CHILDREN};
use crate::figure::{Figure, Target, Unit};
use crate::plane::{Plane, User, tally};
use crate::programs::{Running, Start};
use crate::report::Run;
use crate::stats::{percentile, sorted};
use crate::stub_cluster::StubCluster;
use crate::subject::{Subject, go_memory_limit};
use crate::widgets;

pub(crate) const WORKLOAD: Workload = Workload { name: "w4", figures: FIGURES };

const FIGURES: &[Figure] = &[
    Figure::new("create_requests", "create: requests", Unit::Count)
        .aim(&[Target::OfAtMost(Subject::GoTuned, 1.0)]),
    Figure::new("create_events", "create: of them, Events", Unit::Count),
    Figure::new("create_conflicts", "create: answered with 409", Unit::Count),
    Figure::new("create_time", "create: until all are Ready", Unit::Seconds),
    Figure::new("create_p50", "create: one Widget, p50", Unit::Seconds),
    Figure::new("create_p99", "create: one Widget, p99", Unit::Seconds),
    Figure::new("create_cpu", "create: CPU", Unit::Seconds),
    Figure::new("change_requests", "change: requests", Unit::Count)
        .aim(&[Target::OfAtMost(Subject::GoTuned, 1.0)]),
    Figure::new("change_events", "change: of them, Events", Unit::Count),
    Figure::new("change_children", "change: writes of children, per Widget", Unit::Number)
        .aim(&[Target::AtMost(2.0)]),
    Figure::new("change_time", "change: until all are Ready", Unit::Seconds),
    Figure::new("change_p50", "change: one Widget, p50", Unit::Seconds),
    Figure::new("change_p99", "change: one Widget, p99", Unit::Seconds),
    Figure::new("change_cpu", "change: CPU", Unit::Seconds),
    Figure::new("quiet_writes", "quiet: writes", Unit::Count).aim(&[Target::AtMost(0.0)]),
    Figure::new("quiet_events", "quiet: of them, Events", Unit::Count),
    Figure::new("quiet_requests", "quiet: requests", Unit::Count),
    Figure::new("delete_requests", "delete: requests", Unit::Count),
    Figure::new("delete_events", "delete: of them, Events", Unit::Count),
    Figure::new("delete_time", "delete: until none is left", Unit::Seconds),
    Figure::new("delete_cpu", "delete: CPU", Unit::Seconds),
    Figure::new("peak", "peak RSS", Unit::Bytes),
];

/// The number of owners reconciled at the same time.
pub(crate) const WORKERS: usize = 10;
/// A phase is over when there was no request for this time.
const CALM: Duration = Duration::from_millis(1500);

pub(crate) async fn run(bench: &Bench) -> Result<Measured> {
    let options = &bench.options;
    let sizes = options.sizes(&[100, 1_000], &[12]);
    let quiet = options.seconds(60, 2);
    let mut measured = Measured::new("w4", "five children for every owner: create, change, delete");
    measured.setting("workers", WORKERS);
    measured.setting("quiet window", format!("{} s, in the first run", quiet.as_secs()));
    measured
        .notes
        .push("GOMEMLIMIT of go-tuned: 48 MiB, and 15 KiB for each Widget and its children.".into());
    measured.notes.push(
        "The garbage collector is off. With a finalizer, Windlass takes the children down itself, in order; Go leaves them to the \
         collector. So Windlass sends five more requests per Widget in the delete phase, which in Go's case the collector would send."
            .into(),
    );
    bench.progress.begin("w4", sizes.len() * bench.cell_count());
    for size in sizes {
        for cell in bench.cells() {
            let group = format!("{size} Widgets, {} children each", CHILDREN.len());
            bench.begin_cell(&group, cell);
            // A control plane that has seen nothing, for each.
            let plane = bench.plane().await?;
            measured.plane = Some(plane.version()?);
            let run = Run::new(group, cell.subject, cell.run);
            measured.runs.push(measure(bench, &plane, run, cell, size, quiet).await?);
        }
    }
    Ok(measured)
}

async fn measure(
    bench: &Bench,
    plane: &Plane,
    mut run: Run,
    cell: Cell,
    size: usize,
    quiet: Duration,
) -> Result<Run> {
    let user = plane.user(&format!("w4-{}-{size}-{}", cell.subject, cell.run))?;
    let patience = bench.options.seconds(900, 60);
    let limit = go_memory_limit(size, 12 << 10);
    let start = Start::new(cell.subject, "fanout", &limit).flag("--workers", WORKERS).switch("--finalizer");
    let mut running = bench.programs.start(plane, &user, &start)?;
    running.hear("started", Duration::from_mins(1)).await?;
    let cluster = StubCluster::begin(plane).await?;

    let phase = Phase::begin("create", plane, &user, &running)?;
    let sent = create(plane, size).await?;
    let ready = cluster.ready(size, 1, patience).await?;
    phase.per_widget(&mut run, &sent, &ready)?;
    phase.end(&mut run).await?;

    let phase = Phase::begin("change", plane, &user, &running)?;
    let sent = change(plane, size).await?;
    let ready = cluster.ready(size, 2, patience).await?;
    phase.per_widget(&mut run, &sent, &ready)?;
    let asked = phase.end(&mut run).await?;
    let plurals: Vec<&str> = CHILDREN.iter().map(|(_, plural)| *plural).collect();
    let children = asked.writes().filter(|request| plurals.contains(&&*request.resource));
    run.figure("change_children", children.count() as f64 / size as f64);

    // A count, not a time: it is the same in every run, and a minute of nothing in each of them is a long
    // time.
    if cell.run == 1 {
        rest(plane, &user, &mut run, quiet).await?;
    }
    check_state(plane, &mut run, size).await?;

    let phase = Phase::begin("delete", plane, &user, &running)?;
    plane
        .admin
        .each(0..size, |index| async move { plane.admin.delete(&object(&widgets::key(index))).await })
        .await?;
    cluster.gone(patience).await?;
    phase.time(&mut run);
    phase.end(&mut run).await?;
    let left = plane.admin.list(&format!("{}/widgets", widgets::GROUP)).await?;
    run.guard(left.is_empty(), "no Widget is left in the end")?;
    run.figure("peak", running.usage()?.peak as f64);
    running.finish().await?;
    Ok(run)
}

/// The requests of a subject that has nothing to do.
async fn rest(plane: &Plane, user: &User, run: &mut Run, quiet: Duration) -> Result<()> {
    let before = plane.mark()?;
    tokio::time::sleep(quiet).await;
    let asked = plane.asked(user, before)?;
    run.figure("quiet_writes", asked.writes().count() as f64);
    run.figure("quiet_requests", asked.count() as f64);
    run.figure("quiet_events", asked.writes().resource("events").count() as f64);
    if run.subject == Subject::Windlass {
        // What is late with its Events is no loop; it is a figure, with its target, and not the end of the
        // run.
        let writes = asked.writes().filter(|request| request.resource != "events");
        let words = format!("no object is written for {} s after convergence {writes}", quiet.as_secs());
        run.guard(writes.is_empty(), words)?;
    }
    Ok(())
}

/// The color after the change.
pub(crate) fn next_color(index: usize) -> &'static str {
    widgets::color(index + 1)
}

/// Creates Widgets, and says when each was sent.
pub(crate) async fn create(plane: &Plane, size: usize) -> Result<HashMap<ObjectKey, Instant>> {
    let sent = std::sync::Mutex::new(HashMap::new());
    plane
        .admin
        .each(0..size, |index| {
            let sent = &sent;
            async move {
                note(sent, index);
                let path = collection(&widgets::key(index));
                plane.admin.create(&path, &widgets::widget(index, widgets::color(index))).await
            }
        })
        .await?;
    sent.into_inner().map_err(|_| anyhow::anyhow!("a creation panicked"))
}

async fn change(plane: &Plane, size: usize) -> Result<HashMap<ObjectKey, Instant>> {
    let sent = std::sync::Mutex::new(HashMap::new());
    plane
        .admin
        .each(0..size, |index| {
            let sent = &sent;
            async move {
                note(sent, index);
                let patch = json!({"spec": {"color": next_color(index)}});
                plane.admin.merge(&object(&widgets::key(index)), &patch).await
            }
        })
        .await?;
    sent.into_inner().map_err(|_| anyhow::anyhow!("a change panicked"))
}

fn note(sent: &std::sync::Mutex<HashMap<ObjectKey, Instant>>, index: usize) {
    let key = widgets::key(index);
    if let Ok(mut sent) = sent.lock() {
        sent.insert(ObjectKey::namespaced(&*key.namespace, &*key.name), Instant::now());
    }
}

/// Compares everything with what it must be.
async fn check_state(plane: &Plane, run: &mut Run, size: usize) -> Result<()> {
    let owners = expected::by_name(plane.admin.list(&format!("{}/widgets", widgets::GROUP)).await?);
    let mut children: BTreeMap<&str, ByName> = BTreeMap::new();
    for (api, plural) in CHILDREN {
        children.insert(plural, expected::by_name(plane.admin.list(&format!("{api}/{plural}")).await?));
    }
    let wrong = expected::differences(size, next_color, &owners, &children);
    let some: Vec<&str> = wrong.iter().take(10).map(String::as_str).collect();
    let words = format!(
        "{size} Widgets and {} children are as they must be {}",
        size * CHILDREN.len(),
        some.join("\n")
    );
    run.guard(wrong.is_empty(), words)
}

/// A part of the work, from a mark in the audit log on.
struct Phase<'a> {
    name: &'static str,
    plane: &'a Plane,
    user: &'a User,
    pid: u32,
    began: Instant,
    before: Mark,
    cpu: f64,
}

impl<'a> Phase<'a> {
    fn begin(name: &'static str, plane: &'a Plane, user: &'a User, running: &Running) -> Result<Self> {
        let (before, cpu) = (plane.mark()?, running.usage()?.cpu);
        Ok(Self { name, plane, user, pid: running.pid, began: Instant::now(), before, cpu })
    }

    fn figure(&self, run: &mut Run, key: &str, value: f64) {
        run.figure(&format!("{}_{key}", self.name), value);
    }

    fn time(&self, run: &mut Run) {
        self.figure(run, "time", self.began.elapsed().as_secs_f64());
    }

    /// The total time, and the time of each Widget.
    fn per_widget(
        &self,
        run: &mut Run,
        sent: &HashMap<ObjectKey, Instant>,
        ready: &HashMap<ObjectKey, Instant>,
    ) -> Result<()> {
        let last = ready.values().max().context("nothing was ready")?;
        self.figure(run, "time", last.duration_since(self.began).as_secs_f64());
        let each: Vec<f64> = sent
            .iter()
            .filter_map(|(key, sent)| Some(ready.get(key)?.duration_since(*sent).as_secs_f64()))
            .collect();
        run.guard(each.len() == sent.len(), format!("{}: every Widget was seen to be ready", self.name))?;
        let each = sorted(&each);
        self.figure(run, "p50", percentile(&each, 50.0).context("times")?);
        self.figure(run, "p99", percentile(&each, 99.0).context("times")?);
        Ok(())
    }

    /// Waits for calm, and counts.
    async fn end(self, run: &mut Run) -> Result<Requests> {
        let asked = calm(self.plane, self.user, self.before).await?;
        self.figure(run, "requests", asked.count() as f64);
        self.figure(run, "events", asked.resource("events").count() as f64);
        self.figure(run, "conflicts", asked.code(409).count() as f64);
        self.figure(run, "cpu", crate::proc::usage(self.pid)?.cpu - self.cpu);
        for (what, count) in tally(&asked) {
            run.requests.insert(format!("{}: {what}", self.name), count);
        }
        Ok(asked)
    }
}

/// The requests of a user since a mark, when it has stopped sending.
pub(crate) async fn calm(plane: &Plane, user: &User, since: Mark) -> Result<Requests> {
    let mut asked = plane.asked(user, since)?;
    let (mut quiet_since, began) = (Instant::now(), Instant::now());
    while quiet_since.elapsed() < CALM {
        anyhow::ensure!(
            began.elapsed() < Duration::from_mins(2),
            "{} does not come to rest:\n{asked}",
            user.name
        );
        tokio::time::sleep(Duration::from_millis(250)).await;
        let now = plane.asked(user, since)?;
        if now.count() != asked.count() {
            (asked, quiet_since) = (now, Instant::now());
        }
    }
    Ok(asked)
}
