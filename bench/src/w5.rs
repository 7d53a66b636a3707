//! W5: from a change to its reconcile.
//!
//! **Measures** the time between the moment at which the harness sends a patch, which it writes into the
//! patch, and the moment at which the reconcile of that Widget reads it from the cache: at 50 and at 500
//! changes a second over 1,000 Widgets; and at 50 a second while 10,000 keys of low priority wait, each of
//! which takes 2 ms. One worker.
//!
//! **Guards**: every change that was accepted is seen once: a lost event is a failure. The rate that was
//! reached is reported beside the one that was wanted.
//!
//! Eight patches at most are under way at a time. With more, a server that cannot take the rate (none can on
//! one core) answers its writers before it notifies its watchers, and the figure becomes the length of its
//! queue: half a minute, for the first subject. For the same reason the server is warmed up with the same
//! load before the first subject starts.
//!
//! **Does not show** the subject alone: the API server's time for the write is part of every figure, the same
//! for all.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::admin::object;
use crate::bench::{Bench, Cell, Measured, Workload};
use crate::figure::{Figure, Target, Unit};
use crate::plane::Plane;
use crate::programs::{Running, Start};
use crate::report::Run;
use crate::stats::{percentile, sorted};
use crate::subject::{Subject, go_memory_limit};
use crate::widgets::{self, SENT};

pub(crate) const WORKLOAD: Workload = Workload { name: "w5", figures: FIGURES };

const FIGURES: &[Figure] = &[
    Figure::new("p50", "p50", Unit::Seconds),
    Figure::new("p99", "p99", Unit::Seconds)
        .aim(&[Target::OfAtMost(Subject::GoTuned, 1.0)])
        .only("500 changes"),
    Figure::new("p999", "p99.9", Unit::Seconds),
    Figure::new("max", "longest", Unit::Seconds),
    Figure::new("rate", "changes per second, reached", Unit::PerSecond),
    Figure::new("cpu", "CPU per change", Unit::Seconds),
];

/// The warm-up of the server before the measurement: changes per second, and seconds.
const WARM_UP: (usize, usize) = (500, 5);

/// The number of patches in flight.
const UNDER_WAY: usize = 8;

/// One kind of load.
#[derive(Clone, Copy, Debug)]
struct Load {
    per_second: usize,
    seconds: usize,
    backlog: usize,
}

impl Load {
    fn group(self) -> String {
        match self.backlog {
            0 => format!("{} changes per second", self.per_second),
            backlog => {
                format!("{} changes per second, {backlog} keys of low priority waiting", self.per_second)
            }
        }
    }
}

pub(crate) async fn run(bench: &Bench) -> Result<Measured> {
    let options = &bench.options;
    let size = options.sizes(&[1_000], &[50]).first().copied().unwrap_or(1_000);
    let loads = options.pick(
        vec![
            Load { per_second: 50, seconds: 30, backlog: 0 },
            Load { per_second: 500, seconds: 30, backlog: 0 },
            Load { per_second: 50, seconds: 15, backlog: 10_000 },
        ],
        vec![
            Load { per_second: 20, seconds: 2, backlog: 0 },
            Load { per_second: 20, seconds: 2, backlog: 500 },
        ],
    );
    let mut measured = Measured::new("w5", "from a change to its reconcile");
    measured.setting("Widgets", size);
    measured.notes.push("GOMEMLIMIT of go-tuned: 48 MiB, and 5 KiB for each Widget.".into());
    bench.progress.begin("w5", loads.len() * bench.cell_count());
    for run in 1..=options.runs {
        let plane = bench.plane().await?;
        measured.plane = Some(plane.version()?);
        plane.admin.widgets(0..size).await?;
        patch(&plane, size, WARM_UP.0, options.pick(WARM_UP.0 * WARM_UP.1, 20)).await?;
        for subject in crate::subject::order(&options.subjects, run) {
            let cell = Cell { run, subject };
            let user = plane.user(&format!("w5-{subject}-{run}"))?;
            let limit = go_memory_limit(size, 4096);
            let start = Start::new(subject, "latency", &limit);
            let mut running = bench.programs.start(&plane, &user, &start)?;
            running.hear("started", Duration::from_mins(1)).await?;
            // What it has seen at the start is not to be counted.
            tokio::time::sleep(options.seconds(3, 1)).await;
            for load in &loads {
                bench.begin_cell(&load.group(), cell);
                let record = Run::new(load.group(), subject, run);
                measured.runs.push(measure(&plane, &mut running, record, size, *load).await?);
            }
            running.finish().await?;
        }
    }
    Ok(measured)
}

async fn measure(plane: &Plane, running: &mut Running, mut run: Run, size: usize, load: Load) -> Result<Run> {
    running.ask("report", "latencies", Duration::from_secs(10)).await?;
    if load.backlog > 0 {
        running.send_command(&format!("backlog {}", load.backlog)).await?;
    }
    let cpu = crate::proc::cpu(running.pid)?;
    let began = Instant::now();
    let sent = patch(plane, size, load.per_second, load.per_second * load.seconds).await?;
    run.figure("rate", sent as f64 / began.elapsed().as_secs_f64());
    let latencies = collect(running, sent).await?;
    run.guard(
        latencies.len() == sent,
        format!("of {sent} changes, {} were seen: none is lost and none is seen twice", latencies.len()),
    )?;
    run.figure("cpu", (crate::proc::cpu(running.pid)? - cpu) / sent as f64);
    let latencies = sorted(&latencies);
    for (figure, percent) in [("p50", 50.0), ("p99", 99.0), ("p999", 99.9), ("max", 100.0)] {
        run.figure(figure, percentile(&latencies, percent).context("latencies")?);
    }
    Ok(run)
}

/// Asks until all is seen, or until nothing more comes.
async fn collect(running: &mut Running, sent: usize) -> Result<Vec<f64>> {
    let mut latencies = Vec::new();
    let mut last = Instant::now();
    while latencies.len() < sent && last.elapsed() < Duration::from_secs(10) {
        let heard = running.ask("report", "latencies", Duration::from_secs(30)).await?;
        let new = heard.value["ns"].as_array().context("latencies")?;
        if !new.is_empty() {
            last = Instant::now();
        }
        latencies.extend(new.iter().filter_map(serde_json::Value::as_f64).map(|nanos| nanos / 1e9));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(latencies)
}

/// Patches Widgets in turn at a steady rate, and says how many were accepted. Where the server is slower than
/// that, it is its rate.
pub(crate) async fn patch(plane: &Plane, size: usize, per_second: usize, total: usize) -> Result<usize> {
    let mut accepted = 0;
    let mut every = tokio::time::interval(Duration::from_secs(1) / u32::try_from(per_second)?);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
    let mut under_way = futures::stream::FuturesUnordered::new();
    let mut next = 0;
    while next < total || !under_way.is_empty() {
        tokio::select! {
            _ = every.tick(), if next < total && under_way.len() < UNDER_WAY => {
                let index = next % size;
                under_way.push(async move {
                    let path = object(&widgets::key(index));
                    let change = json!({"metadata": {"annotations": {SENT: now_ns().to_string()}}});
                    plane.admin.merge(&path, &change).await
                });
                next += 1;
            }
            Some(done) = futures::StreamExt::next(&mut under_way) => {
                done?;
                accepted += 1;
            }
        }
    }
    Ok(accepted)
}

/// The time, in nanoseconds since 1970.
pub(crate) fn now_ns() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}
