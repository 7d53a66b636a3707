//! W10: how it grows.
//!
//! **Measures** the same program at 1,000, 10,000 and 50,000 Widgets: the time from `exec` until its cache is
//! full, resident memory after ten seconds and per Widget, and what one change costs then, in CPU and in
//! time, when changes come one after the other: a cost that should not depend on how many Widgets there are.
//!
//! **Guards**: every change is seen, once.
//!
//! **Does not show** changes that come together (W5), nor memory after a long rest (W2): memory here includes
//! what Go has not collected yet.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::admin::object;
use crate::bench::{Bench, Cell, Measured, Workload};
use crate::figure::{Figure, Target, Unit};
use crate::plane::Plane;
use crate::programs::Start;
use crate::report::Run;
use crate::stats::{percentile, sorted};
use crate::subject::{Subject, go_memory_limit};
use crate::w5::now_ns;
use crate::widgets::{self, Dice, SENT};

pub(crate) const WORKLOAD: Workload = Workload { name: "w10", figures: FIGURES };

const FIGURES: &[Figure] = &[
    Figure::new("time", "exec to a full cache", Unit::Seconds)
        .aim(&[Target::OfAtMost(Subject::GoTuned, 0.5)])
        .only("50000 Widgets"),
    Figure::new("time_per_object", "the same, per Widget", Unit::Seconds),
    Figure::new("rss", "RSS after ten seconds", Unit::Bytes),
    Figure::new("rss_per_object", "the same, per Widget", Unit::Bytes),
    Figure::new("change_cpu", "CPU of one change", Unit::Seconds),
    Figure::new("change_p50", "one change to its reconcile, p50", Unit::Seconds),
    Figure::new("change_p99", "one change to its reconcile, p99", Unit::Seconds),
];

pub(crate) async fn run(bench: &Bench) -> Result<Measured> {
    let options = &bench.options;
    let sizes = options.sizes(&[1_000, 10_000, 50_000], &[100]);
    let changes = options.pick(500, 20);
    let mut measured = Measured::new("w10", "how it grows");
    measured.setting("changes", changes);
    measured.notes.push("GOMEMLIMIT of go-tuned: 48 MiB, and 5 KiB for each Widget.".into());
    measured.notes.push("windlass caches what a reconcile reads; go and go-tuned cache the whole Widget, go-tuned without managedFields.".into());
    let plane = bench.plane().await?;
    measured.plane = Some(plane.version()?);
    bench.progress.begin("w10", sizes.len() * bench.cell_count());
    let mut there = 0;
    for size in sizes {
        bench.progress.say(&format!("creating {} Widgets", size - there));
        plane.admin.widgets(there..size).await?;
        there = size;
        for cell in bench.cells() {
            let group = format!("{size} Widgets");
            bench.begin_cell(&group, cell);
            let run = Run::new(group, cell.subject, cell.run);
            measured.runs.push(measure(bench, &plane, run, cell, size, changes).await?);
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
    changes: usize,
) -> Result<Run> {
    let user = plane.user(&format!("w10-{}-{size}-{}", cell.subject, cell.run))?;
    let limit = go_memory_limit(size, 4096);
    let start = Start::new(cell.subject, "latency", &limit);
    let mut running = bench.programs.start(plane, &user, &start)?;
    let heard = running.hear("started", Duration::from_mins(5)).await?;
    let time = heard.at.duration_since(running.began).as_secs_f64();
    run.figure("time", time);
    run.figure("time_per_object", time / size as f64);
    tokio::time::sleep(bench.options.seconds(10, 1)).await;
    let rss = running.usage()?.rss as f64;
    run.figure("rss", rss);
    run.figure("rss_per_object", rss / size as f64);

    running.ask("report", "latencies", Duration::from_secs(30)).await?;
    let mut dice = Dice::new(cell.run as u64);
    let cpu = crate::proc::cpu(running.pid)?;
    for _ in 0..changes {
        let path = object(&widgets::key(dice.below(size)));
        plane.admin.merge(&path, &json!({"metadata": {"annotations": {SENT: now_ns().to_string()}}})).await?;
    }
    // The last one is on its way.
    tokio::time::sleep(Duration::from_secs(1)).await;
    run.figure("change_cpu", (crate::proc::cpu(running.pid)? - cpu) / changes as f64);
    let heard = running.ask("report", "latencies", Duration::from_secs(30)).await?;
    let latencies: Vec<f64> = heard.value["ns"]
        .as_array()
        .context("latencies")?
        .iter()
        .filter_map(serde_json::Value::as_f64)
        .map(|nanos| nanos / 1e9)
        .collect();
    run.guard(
        latencies.len() == changes,
        format!("{changes} changes were seen, each once ({})", latencies.len()),
    )?;
    let latencies = sorted(&latencies);
    run.figure("change_p50", percentile(&latencies, 50.0).context("latencies")?);
    run.figure("change_p99", percentile(&latencies, 99.0).context("latencies")?);
    running.finish().await?;
    Ok(run)
}
