//! Soak: a fan-out operator under random edits, while its API server is killed again and again.
//!
//! **Measures** 2,000 Widgets with five children each for twenty minutes (`--minutes`): twenty random edits a
//! second, and every two minutes the API server is killed and started again. At the end: how long it took to
//! converge, what is written when nothing happens, and how resident memory at the end compares with that
//! after the first fifth.
//!
//! **Guards**: after the last edit every Widget and every child is what the last accepted edit says, object
//! by object: no event was lost; and then no object is written for a minute.
//!
//! **Does not show** much of speed: the server is away for part of the time. It is run by hand.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::admin::object;
use crate::bench::{Bench, Cell, Measured, Workload};
use crate::expected::{self, ByName, CHILDREN};
use crate::figure::{Figure, Target, Unit};
use crate::plane::{Plane, tally};
use crate::programs::Start;
use crate::report::Run;
use crate::stats::{percentile, sorted};
use crate::stub_cluster::StubCluster;
use crate::subject::go_memory_limit;
use crate::w4::{self, WORKERS};
use crate::widgets::{self, Dice};

pub(crate) const WORKLOAD: Workload = Workload { name: "soak", figures: FIGURES };

const FIGURES: &[Figure] = &[
    Figure::new("converge", "from the last edit to convergence", Unit::Seconds),
    Figure::new("quiet_writes", "writes after convergence", Unit::Count).aim(&[Target::AtMost(0.0)]),
    Figure::new("edits", "edits accepted", Unit::Count),
    Figure::new("restarts", "API server killed", Unit::Count),
    Figure::new("requests", "requests", Unit::Count),
    Figure::new("rss_early", "RSS after a fifth of the time", Unit::Bytes),
    Figure::new("rss_late", "RSS at the end", Unit::Bytes),
    Figure::new("drift", "drift of RSS", Unit::Percent),
    Figure::new("cpu", "CPU", Unit::Seconds),
    Figure::new("peak", "peak RSS", Unit::Bytes),
];

/// Edits per second.
const PACE: u64 = 20;

pub(crate) async fn run(bench: &Bench, minutes: f64) -> Result<Measured> {
    let options = &bench.options;
    let size = options.sizes(&[2_000], &[10]).first().copied().unwrap_or(2_000);
    let time = if options.smoke { Duration::from_secs(3) } else { Duration::from_secs_f64(minutes * 60.0) };
    let restart = options.seconds(120, 2);
    let mut measured = Measured::new("soak", "random edits while the API server is killed");
    measured.setting("time", format!("{} s", time.as_secs()));
    measured.setting("API server killed every", format!("{} s", restart.as_secs()));
    bench.progress.begin("soak", bench.cell_count());
    for cell in bench.cells() {
        let group = format!("{size} Widgets, {} children each", CHILDREN.len());
        bench.begin_cell(&group, cell);
        let plane = bench.plane().await?;
        measured.plane = Some(plane.version()?);
        let run = Run::new(group, cell.subject, cell.run);
        measured.runs.push(measure(bench, &plane, run, cell, size, time, restart).await?);
    }
    Ok(measured)
}

async fn measure(
    bench: &Bench,
    plane: &Plane,
    mut run: Run,
    cell: Cell,
    size: usize,
    time: Duration,
    restart: Duration,
) -> Result<Run> {
    let user = plane.user(&format!("soak-{}-{}", cell.subject, cell.run))?;
    let limit = go_memory_limit(size, 12 << 10);
    let start = Start::new(cell.subject, "fanout", &limit).flag("--workers", WORKERS).switch("--finalizer");
    let running = bench.programs.start(plane, &user, &start)?;
    let cluster = StubCluster::begin(plane).await?;
    let before = plane.mark()?;
    w4::create(plane, size).await?;
    cluster.ready(size, 1, bench.options.seconds(900, 60)).await?;

    let began = Instant::now();
    let mut colors: Vec<&'static str> = (0..size).map(widgets::color).collect();
    let (edits, restarts) = edit(bench, plane, &mut colors, cell, time, restart).await?;
    let since = Instant::now();
    let within = bench.options.seconds(600, 60);
    let wrong = loop {
        let wrong = differences(plane, size, &colors).await?;
        if wrong.is_empty() || since.elapsed() > within {
            break wrong;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    let some: Vec<&str> = wrong.iter().take(10).map(String::as_str).collect();
    run.guard(
        wrong.is_empty(),
        format!(
            "after {edits} edits and {restarts} deaths of the server no event is lost {}",
            some.join("\n")
        ),
    )?;
    run.figure("converge", since.elapsed().as_secs_f64());

    let asked = w4::calm(plane, &user, before).await?;
    run.figure("requests", asked.count() as f64);
    run.requests = tally(&asked);
    let mark = plane.mark()?;
    tokio::time::sleep(bench.options.seconds(60, 2)).await;
    let quiet = plane.asked(&user, mark)?.writes();
    let objects = quiet.filter(|request| request.resource != "events");
    run.guard(objects.is_empty(), format!("no object is written after convergence {objects}"))?;
    run.figure("quiet_writes", quiet.count() as f64);
    run.figure("edits", edits as f64);
    run.figure("restarts", restarts as f64);
    let series = running.sampler.resident_since(began);
    let fifth = series.len() / 5;
    let early =
        percentile(&sorted(series.get(fifth..2 * fifth).unwrap_or(&series)), 50.0).context("samples")?;
    let late = percentile(&sorted(series.get(4 * fifth..).unwrap_or(&series)), 50.0).context("samples")?;
    run.figure("rss_early", early);
    run.figure("rss_late", late);
    run.figure("drift", (late / early - 1.0) * 100.0);
    let usage = running.usage()?;
    run.figure("cpu", usage.cpu);
    run.figure("peak", usage.peak as f64);
    running.finish().await?;
    Ok(run)
}

/// Edits at random for some time, while the server comes and goes; says how many edits were accepted, and how
/// often it went.
async fn edit(
    bench: &Bench,
    plane: &Plane,
    colors: &mut [&'static str],
    cell: Cell,
    time: Duration,
    restart: Duration,
) -> Result<(usize, usize)> {
    let mut dice = Dice::new(cell.run as u64);
    let mut every = tokio::time::interval(Duration::from_millis(1000 / PACE));
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let (began, mut last, mut edits, mut restarts) = (Instant::now(), Instant::now(), 0, 0);
    while began.elapsed() < time {
        every.tick().await;
        if last.elapsed() > restart {
            bench.progress.say("killing the API server");
            plane.env.restart_api_server().await?;
            (last, restarts) = (Instant::now(), restarts + 1);
        }
        let index = dice.below(colors.len());
        let color = widgets::color(dice.below(7));
        let patch = json!({"spec": {"color": color}});
        // What failed is tried until it is known to be accepted: otherwise nobody could say what must be
        // there in the end.
        let mut tries = 0;
        while let Err(error) = plane.admin.merge(&object(&widgets::key(index)), &patch).await {
            tries += 1;
            anyhow::ensure!(tries < 100, "the server does not come back: {error:#}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        colors[index] = color;
        edits += 1;
    }
    Ok((edits, restarts))
}

async fn differences(plane: &Plane, size: usize, colors: &[&'static str]) -> Result<Vec<String>> {
    let owners = expected::by_name(plane.admin.list(&format!("{}/widgets", widgets::GROUP)).await?);
    let mut children: BTreeMap<&str, ByName> = BTreeMap::new();
    for (api, plural) in CHILDREN {
        children.insert(plural, expected::by_name(plane.admin.list(&format!("{api}/{plural}")).await?));
    }
    Ok(expected::differences(
        size,
        |index| colors.get(index).copied().unwrap_or_default(),
        &owners,
        &children,
    ))
}
