//! W6: what an operator weighs, and how it starts, stops and takes over.
//!
//! **Measures** the size of the binary; resident memory and CPU of an idle leader after more than two
//! minutes; the time from `exec` to the first `200` of `/healthz`, and to the first reconcile and the last of
//! 100 Widgets; from SIGTERM to the end with ten reconciles of a second in flight; and for a standby, from
//! the leader's SIGKILL and from its SIGTERM to the standby's first reconcile, with leases of 15, 10 and 2
//! seconds on all sides.
//!
//! **Guards**: all 100 Widgets are reconciled; all ten reconciles in flight are finished, and the exit code
//! is 0; only one of two works before the other is ended.
//!
//! **Does not show** images (both are one static or nearly static file in an empty image), nor build times.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use windlass_testenv::HeldPort;

use crate::admin::collection;
use crate::bench::{Bench, Cell, Measured, Workload};
use crate::figure::{Figure, Target, Unit};
use crate::plane::Plane;
use crate::programs::{Running, Start};
use crate::report::Run;
use crate::stats::{percentile, sorted};
use crate::subject::{Subject, go_memory_limit, order};
use crate::widgets;

pub(crate) const WORKLOAD: Workload = Workload { name: "w6", figures: FIGURES };

const FIGURES: &[Figure] = &[
    Figure::new("binary", "binary, stripped", Unit::Bytes),
    Figure::new("idle_rss", "idle RSS, leading", Unit::Bytes).aim(&[Target::OfAtMost(Subject::GoTuned, 0.5)]),
    Figure::new("idle_cpu", "idle CPU", Unit::Percent),
    Figure::new("threads", "threads", Unit::Count),
    Figure::new("healthz", "exec to /healthz", Unit::Seconds),
    Figure::new("first", "exec to the first reconcile", Unit::Seconds),
    Figure::new("last", "exec to the last of 100 reconciles", Unit::Seconds),
    Figure::new("pss", "PSS then, alone on the machine", Unit::Bytes),
    Figure::new("stop", "SIGTERM to exit, ten reconciles of 1 s in flight", Unit::Seconds),
    Figure::new("killed", "leader killed to the standby's first reconcile", Unit::Seconds)
        .aim(&[Target::OfAtMost(Subject::GoTuned, 1.0)]),
    Figure::new("released", "leader stopped to the standby's first reconcile", Unit::Seconds)
        .aim(&[Target::OfAtMost(Subject::GoTuned, 1.0)]),
];

/// The number of Widgets at a start.
const WIDGETS: usize = 100;
/// The number of reconciles in flight at a stop.
const IN_FLIGHT: usize = 10;
/// The timeout of every wait: a lease and a half, and some.
const PATIENCE: Duration = Duration::from_mins(1);
/// The namespace of the Leases.
const NAMESPACE: &str = "bench-0";

pub(crate) async fn run(bench: &Bench) -> Result<Measured> {
    let options = &bench.options;
    let settle = options.seconds(130, 2);
    let mut measured = Measured::new("w6", "footprint, start, stop, failover");
    measured.setting("lease", "15 s, renewed within 10 s, tried every 2 s");
    measured.setting("rest before memory is read", format!("{} s", settle.as_secs()));
    measured.notes.push("GOMEMLIMIT of go-tuned: 48 MiB. It also warms up its caches as a standby; go does not; windlass always does.".into());
    bench.progress.begin("w6", 2 * bench.cell_count());
    for run in 1..=options.runs {
        let plane = bench.plane().await?;
        measured.plane = Some(plane.version()?);
        let mut runs = idle(bench, &plane, run, settle).await?;
        plane.admin.widgets(0..WIDGETS).await?;
        for record in &mut runs {
            let cell = Cell { run, subject: record.subject };
            bench.begin_cell("start, failover", cell);
            start(bench, &plane, record, cell).await?;
            if !options.smoke {
                failover(bench, &plane, record, cell).await?;
            }
        }
        if options.smoke {
            // A lease takes its time to run out: where no time is measured, all wait together.
            let all = runs.iter_mut().map(|record| {
                let cell = Cell { run, subject: record.subject };
                failover(bench, &plane, record, cell)
            });
            futures::future::try_join_all(all).await?;
        }
        for index in WIDGETS..WIDGETS + IN_FLIGHT {
            let path = collection(&widgets::key(index));
            plane.admin.create(&path, &widgets::widget(index, "slow")).await?;
        }
        for record in &mut runs {
            stop(bench, &plane, record, Cell { run, subject: record.subject }).await?;
        }
        measured.runs.extend(runs);
    }
    Ok(measured)
}

/// All subjects at rest beside each other, each leading with nothing to do.
async fn idle(bench: &Bench, plane: &Plane, run: usize, settle: Duration) -> Result<Vec<Run>> {
    let mut resting = Vec::new();
    for subject in order(&bench.options.subjects, run) {
        bench.begin_cell("idle", Cell { run, subject });
        let user = plane.user(&format!("w6-idle-{subject}-{run}"))?;
        let limit = go_memory_limit(0, 0);
        let start = Start::new(subject, "life", &limit)
            .flag("--lease", format!("idle-{subject}-{run}"))
            .flag("--namespace", NAMESPACE);
        let mut running = bench.programs.start(plane, &user, &start)?;
        running.hear("leading", PATIENCE).await?;
        resting.push((subject, running));
    }
    let since = Instant::now();
    let cpu: Vec<f64> =
        resting.iter().map(|(_, running)| running.usage().map(|usage| usage.cpu)).collect::<Result<_>>()?;
    tokio::time::sleep(settle).await;
    let mut runs = Vec::new();
    for ((subject, running), cpu) in resting.into_iter().zip(cpu) {
        let mut record = Run::new("one controller", subject, run);
        let usage = running.usage()?;
        let resident = sorted(&running.sampler.resident_since(since + since.elapsed().mul_f64(2.0 / 3.0)));
        record.figure("idle_rss", percentile(&resident, 50.0).context("samples")?);
        record.figure("idle_cpu", (usage.cpu - cpu) / since.elapsed().as_secs_f64() * 100.0);
        record.figure("threads", usage.threads as f64);
        record.figure("binary", std::fs::metadata(bench.programs.path(subject)?)?.len() as f64);
        running.finish().await?;
        runs.push(record);
    }
    Ok(runs)
}

/// Start: the time from the start of the process to its first work.
async fn start(bench: &Bench, plane: &Plane, run: &mut Run, cell: Cell) -> Result<()> {
    let user = plane.user(&format!("w6-start-{}-{}", cell.subject, cell.run))?;
    let limit = go_memory_limit(0, 0);
    let port = HeldPort::any()?;
    let address = port.address().to_string();
    let start = Start::new(cell.subject, "life", &limit).flag("--health", &address);
    let mut running = bench.programs.start(plane, &user, &start)?;
    let began = running.began;
    let healthy = tokio::spawn(healthy(address));
    let first = running.hear("reconciled", PATIENCE).await?;
    let mut names = std::collections::BTreeSet::new();
    let mut heard = first.clone();
    loop {
        names.insert(heard.value["name"].to_string());
        if names.len() == WIDGETS {
            break;
        }
        heard = running.hear("reconciled", PATIENCE).await?;
    }
    let healthy = healthy.await??;
    run.guard(names.len() == WIDGETS, format!("{WIDGETS} Widgets are reconciled at the start"))?;
    run.figure("healthz", healthy.duration_since(began).as_secs_f64());
    run.figure("first", first.at.duration_since(began).as_secs_f64());
    run.figure("last", heard.at.duration_since(began).as_secs_f64());
    run.figure("pss", crate::proc::proportional(running.pid)? as f64);
    running.finish().await
}

/// Takeover: the time from one leader to the next, when it is killed and when it is stopped.
async fn failover(bench: &Bench, plane: &Plane, run: &mut Run, cell: Cell) -> Result<()> {
    for (figure, killed) in [("released", false), ("killed", true)] {
        let lease = format!("{figure}-{}-{}", cell.subject, cell.run);
        let mut leader = candidate(bench, plane, cell, &format!("{lease}-leader"), &lease)?;
        // Who reconciles leads; which of the two it says first is its own affair.
        leader.hear("reconciled", PATIENCE).await?;
        let mut standby = candidate(bench, plane, cell, &format!("{lease}-standby"), &lease)?;
        // Time to sync the caches and to observe the leader; no other process may lead.
        let early = standby.hear("reconciled", bench.options.seconds(5, 2)).await;
        run.guard(early.is_err(), format!("{figure}: a standby does not work beside the leader"))?;
        let since = if killed {
            leader.kill().await?
        } else {
            let since = Instant::now();
            let (_, status) = leader.stop().await?;
            run.guard(status.success(), "a leader that is stopped ends well")?;
            since
        };
        let first = standby.hear("reconciled", PATIENCE).await?;
        run.figure(figure, first.at.duration_since(since).as_secs_f64());
        standby.finish().await?;
    }
    Ok(())
}

fn candidate(bench: &Bench, plane: &Plane, cell: Cell, name: &str, lease: &str) -> Result<Running> {
    let user = plane.user(&format!("w6-{name}"))?;
    let limit = go_memory_limit(0, 0);
    let start =
        Start::new(cell.subject, "life", &limit).flag("--lease", lease).flag("--namespace", NAMESPACE);
    bench.programs.start(plane, &user, &start)
}

/// Stop: the time from the signal to the end, with work in flight.
async fn stop(bench: &Bench, plane: &Plane, run: &mut Run, cell: Cell) -> Result<()> {
    let user = plane.user(&format!("w6-stop-{}-{}", cell.subject, cell.run))?;
    let limit = go_memory_limit(0, 0);
    let start = Start::new(cell.subject, "life", &limit).flag("--workers", IN_FLIGHT).switch("--slow");
    let mut running = bench.programs.start(plane, &user, &start)?;
    let slow: Vec<String> = (WIDGETS..WIDGETS + IN_FLIGHT).map(|index| widgets::key(index).name).collect();
    let mut begun = 0;
    while begun < IN_FLIGHT {
        let heard = running.hear("reconciled", PATIENCE).await?;
        if slow.iter().any(|name| heard.value["name"] == **name) {
            begun += 1;
        }
    }
    let (took, status) = running.stop().await?;
    run.guard(status.success(), format!("it ends well at SIGTERM ({status})"))?;
    run.figure("stop", took.as_secs_f64());
    let mut finished = 0;
    while running.hear("finished", Duration::from_secs(1)).await.is_ok() {
        finished += 1;
    }
    run.guard(
        finished == IN_FLIGHT,
        format!("{IN_FLIGHT} reconciles in flight are finished at SIGTERM, not {finished}"),
    )
}

/// The time at which `/healthz` first answered with 200.
async fn healthy(address: String) -> Result<Instant> {
    tokio::time::timeout(PATIENCE, async {
        loop {
            if let Ok(true) = ask_health(&address).await {
                return Instant::now();
            }
            tokio::time::sleep(Duration::from_micros(500)).await;
        }
    })
    .await
    .context("/healthz never answered with 200")
}

async fn ask_health(address: &str) -> std::io::Result<bool> {
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream
        .write_all(
            format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes(),
        )
        .await?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await?;
    Ok(answer.ends_with(b" 200"))
}
