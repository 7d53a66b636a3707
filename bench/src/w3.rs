//! W3: the cost of a reconcile that finds nothing to do.
//!
//! **Measures** a controller whose reconcile reads a Widget and the ConfigMap of its name from the cache and
//! compares their colors, with 1 and with 10 workers: (a) a resync, each key once; (b) a flood, a million
//! keys through a bounded channel of 1,024 places, round robin over all. Reconciles per second of wall clock,
//! and CPU time per reconcile, which the subject takes by its own clock and the harness from `/proc`; the
//! harness's counts. The resync shows the cost of one reconcile. In a flood the queue merges waiting keys, so
//! that the same keys may cause any number of reconciles; there, the cost of all keys together is compared.
//!
//! **Guards**: every key is seen, no comparison fails, the number of sent keys is the requested one, and the
//! audit log has no request of this user during the measurement: reads are served by the cache only.
//!
//! **Does not show** what happens when something changes; and with one core per subject, ten workers show
//! what concurrency costs, not what it gains.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;
use windlass_testenv::eventually;

use crate::bench::{Bench, Cell, Measured, Workload};
use crate::figure::{Figure, Target, Unit};
use crate::plane::{Plane, User};
use crate::programs::{Running, Start};
use crate::report::Run;
use crate::subject::{Subject, go_memory_limit};

pub(crate) const WORKLOAD: Workload = Workload { name: "w3", figures: FIGURES };

const FIGURES: &[Figure] = &[
    Figure::new("resync_cpu", "CPU per reconcile, resync", Unit::Seconds)
        .aim(&[Target::OfAtMost(Subject::GoTuned, 0.2)]),
    Figure::new("resync_rate", "reconciles per second, resync", Unit::PerSecond),
    Figure::new("flood_time", "flood: until all is done", Unit::Seconds),
    Figure::new("flood_cpu", "flood: CPU per key sent", Unit::Seconds),
    Figure::new("flood_rate", "flood: reconciles per second", Unit::PerSecond),
    Figure::new("flood_ratio", "flood: keys sent per reconcile", Unit::Number),
    Figure::new("peak", "peak RSS", Unit::Bytes),
];

/// The timeout of every wait.
const PATIENCE: Duration = Duration::from_mins(5);
/// A resync is short against the kernel's clock, so there are several of them.
const RESYNCS: usize = 10;

pub(crate) async fn run(bench: &Bench) -> Result<Measured> {
    let options = &bench.options;
    let sizes = options.sizes(&[1_000, 10_000], &[200]);
    let total = options.pick(1_000_000, 5_000);
    let workers = [1, 10];
    let mut measured = Measured::new("w3", "reconciles that find nothing to do");
    measured.setting("keys sent in a flood", total);
    measured
        .notes
        .push("GOMEMLIMIT of go-tuned: 48 MiB, and 2.5 KiB for each Widget and its ConfigMap.".into());
    measured.notes.push(
        "What a reconcile costs is told by the resync, where each key is one. In the flood, keys that wait are merged: a subject whose \
         sender gets ahead of its workers reconciles less often for the same keys, so only time and CPU for all that was sent compare."
            .into(),
    );
    let plane = bench.plane().await?;
    measured.plane = Some(plane.version()?);
    bench.progress.begin("w3", sizes.len() * workers.len() * bench.cell_count());
    let mut there = 0;
    for size in sizes {
        bench.progress.say(&format!("creating {} Widgets and as many ConfigMaps", size - there));
        plane.admin.widgets(there..size).await?;
        plane.admin.config_maps(there..size).await?;
        there = size;
        for workers in workers {
            for cell in bench.cells() {
                let group = format!("{size} keys, {workers} worker{}", if workers == 1 { "" } else { "s" });
                bench.begin_cell(&group, cell);
                let run = Run::new(group, cell.subject, cell.run);
                measured.runs.push(measure(bench, &plane, run, cell, size, workers, total).await?);
            }
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
    workers: usize,
    total: usize,
) -> Result<Run> {
    let user = plane.user(&format!("w3-{}-{size}-{workers}-{}", cell.subject, cell.run))?;
    let began = plane.mark()?;
    let limit = go_memory_limit(size, 2048);
    let start = Start::new(cell.subject, "noop", &limit).flag("--workers", workers);
    let mut running = bench.programs.start(plane, &user, &start)?;
    let heard = running.hear("synced", PATIENCE).await?;
    run.guard(heard.value["count"] == size, format!("all {size} keys are known"))?;
    // A program that lists first reports that it is synced before its watches are open. Their requests are
    // not those of a reconcile.
    eventually(format!("{} watches both kinds", user.name), || async {
        let watches = plane.asked(&user, began).map_err(|error| error.to_string())?.verb("watch");
        let open = ["widgets", "configmaps"].map(|kind| watches.resource(kind).count());
        if open.contains(&0) { Err(format!("{open:?}")) } else { Ok(()) }
    })
    .await?;
    let mut noop = NoopRun { plane, user: &user, running: &mut running, run: &mut run, size };

    // The first one warms up; it is not counted.
    noop.asked("resync", "resynced", size).await?;
    let mut resync = Figures::default();
    for _ in 0..RESYNCS {
        resync = resync.and(noop.asked("resync", "resynced", size).await?);
    }
    let flood = noop.asked(&format!("flood {total}"), "flooded", total).await?;
    run.figure("resync_cpu", resync.cpu / resync.reconciled);
    run.figure("resync_rate", resync.reconciled / resync.wall);
    run.figure("flood_time", flood.wall);
    run.figure("flood_cpu", flood.cpu / total as f64);
    run.figure("flood_rate", flood.reconciled / flood.wall);
    run.figure("flood_ratio", total as f64 / flood.reconciled);
    run.figure("peak", running.usage()?.peak as f64);
    running.finish().await?;
    Ok(run)
}

/// The result of a flood or a resync.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    reconciled: f64,
    wall: f64,
    cpu: f64,
}

impl Figures {
    fn and(self, other: Self) -> Self {
        Self {
            reconciled: self.reconciled + other.reconciled,
            wall: self.wall + other.wall,
            cpu: self.cpu + other.cpu,
        }
    }
}

struct NoopRun<'a> {
    plane: &'a Plane,
    user: &'a User,
    running: &'a mut Running,
    run: &'a mut Run,
    size: usize,
}

impl NoopRun<'_> {
    /// Makes the program send keys to itself, and checks the result.
    async fn asked(&mut self, command: &str, event: &str, total: usize) -> Result<Figures> {
        let before = self.plane.mark()?;
        let cpu = self.running.usage()?.cpu;
        let heard = self.running.ask(command, event, PATIENCE).await?;
        let cpu = self.running.usage()?.cpu - cpu;
        let number = |field: &str| number(&heard.value, field);
        let (sent, reconciled, distinct) = (number("sent")?, number("reconciled")?, number("distinct")?);
        let (total, keys) = (total as u64, self.size.min(total) as u64);
        self.run.guard(sent == total, format!("{event}: {total} keys were sent"))?;
        self.run
            .guard(distinct == keys, format!("{event}: every key was reconciled ({distinct} of {keys})"))?;
        self.run.guard(
            (distinct..=sent).contains(&reconciled),
            format!("{event}: no reconcile was made up ({reconciled} of {sent})"),
        )?;
        self.run.guard(number("mismatches")? == 0, format!("{event}: every comparison was right"))?;
        let asked = self.plane.asked(self.user, before)?;
        self.run.guard(asked.is_empty(), format!("{event}: nothing was asked of the server {asked}"))?;
        // The kernel's count is in hundredths of a second: where that is too coarse, the subject's own.
        let own = number("cpu_ns")? as f64 / 1e9;
        let cpu = if cpu >= 0.5 { cpu } else { own };
        Ok(Figures { reconciled: reconciled as f64, wall: number("wall_ns")? as f64 / 1e9, cpu })
    }
}

fn number(value: &Value, field: &str) -> Result<u64> {
    value[field].as_u64().with_context(|| format!("{field} in {value}"))
}
