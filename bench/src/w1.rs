//! W1: from nothing to a full cache.
//!
//! **Measures**, for objects that are there already, the time from `exec` until a program says that it has
//! them all, the peak of its resident memory up to then, its CPU time, and its requests: for Widgets whole
//! and as metadata, by the list that each makes by itself (Go a streamed one, after which these rows are
//! called; Windlass one in one piece) and by a paged one, and for ConfigMaps.
//!
//! **Guards**: the count, and checksums of all names and of a field of every spec, against what the harness
//! created. So a program that says it is done before it is fails.
//!
//! **Does not show** what stays (W2). Built-in kinds come as protobuf to Go and as JSON to Windlass, which is
//! part of the comparison.

use std::time::Duration;

use anyhow::Result;

use crate::bench::{Bench, Cell, Measured, Workload};
use crate::figure::{Figure, Target, Unit};
use crate::plane::{Plane, tally};
use crate::programs::Start;
use crate::report::Run;
use crate::subject::{Subject, go_memory_limit};
use crate::w2::Form;
use crate::widgets::Checksum;

pub(crate) const WORKLOAD: Workload = Workload { name: "w1", figures: FIGURES };

const FIGURES: &[Figure] = &[
    Figure::new("time", "exec to synced", Unit::Seconds)
        .aim(&[Target::OfAtMost(Subject::GoTuned, 0.5)])
        .only("50000 Widgets"),
    Figure::new("peak", "peak RSS", Unit::Bytes)
        .aim(&[Target::OfAtMost(Subject::GoTuned, 0.25)])
        .only("50000 Widgets"),
    Figure::new("cpu", "CPU", Unit::Seconds),
    Figure::new("requests", "requests", Unit::Count),
];

/// One way to fill a cache.
#[derive(Clone, Copy, Debug)]
struct Way {
    kind: &'static str,
    form: Form,
    paged: bool,
}

impl Way {
    const ALL: [Self; 4] = [
        Self { kind: "widget", form: Form::Full, paged: false },
        Self { kind: "widget", form: Form::Metadata, paged: false },
        Self { kind: "widget", form: Form::Full, paged: true },
        Self { kind: "configmap", form: Form::Full, paged: false },
    ];

    fn group(self, size: usize) -> String {
        let kind = if self.kind == "widget" { "Widgets" } else { "ConfigMaps" };
        let list = if self.paged { "paged list" } else { "streamed list" };
        format!("{size} {kind}, {}, {list}", self.form.name())
    }
}

pub(crate) async fn run(bench: &Bench) -> Result<Measured> {
    let options = &bench.options;
    let sizes = options.sizes(&[1_000, 10_000, 50_000], &[200]);
    let mut measured = Measured::new("w1", "from nothing to a full cache");
    measured.notes.push("GOMEMLIMIT of go-tuned: 48 MiB, and 1.25 × the live heap: 4 KiB for each full object, 1 KiB for metadata.".into());
    let plane = bench.plane().await?;
    measured.plane = Some(plane.version()?);
    bench.progress.begin("w1", sizes.len() * Way::ALL.len() * bench.cell_count());
    let mut there = 0;
    for size in sizes {
        bench.progress.say(&format!("creating {} Widgets and as many ConfigMaps", size - there));
        plane.admin.widgets(there..size).await?;
        plane.admin.config_maps(there..size).await?;
        there = size;
        // A cluster has ConfigMaps of its own.
        let config_maps = Checksum::of_names(&plane.admin.list("/api/v1/configmaps").await?);
        for way in Way::ALL {
            let expected = if way.kind == "widget" { way.form.checksum(size) } else { config_maps.clone() };
            for cell in bench.cells() {
                let group = way.group(size);
                bench.begin_cell(&group, cell);
                let run = Run::new(group, cell.subject, cell.run);
                measured.runs.push(measure(bench, &plane, run, cell, size, way, &expected).await?);
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
    way: Way,
    expected: &Checksum,
) -> Result<Run> {
    let list = if way.paged { "paged" } else { "streamed" };
    let user = plane.user(&format!(
        "w1-{}-{}-{}-{list}-{size}-{}",
        cell.subject,
        way.kind,
        way.form.name(),
        cell.run
    ))?;
    let before = plane.mark()?;
    let limit = go_memory_limit(size, way.form.go_bytes());
    let mut start =
        Start::new(cell.subject, "cache", &limit).flag("--form", way.form.name()).flag("--kind", way.kind);
    if way.paged {
        start = start.switch("--page");
    }
    let mut running = bench.programs.start(plane, &user, &start)?;
    let heard = running.hear("synced", Duration::from_mins(5)).await?;
    let usage = running.usage()?;
    run.guard(
        Checksum::reported(&heard.value).as_ref() == Some(expected),
        format!("the checksum of {size} names and sizes is right: {}", heard.value),
    )?;
    run.figure("time", heard.at.duration_since(running.began).as_secs_f64());
    run.figure("peak", usage.peak as f64);
    run.figure("cpu", usage.cpu);
    let asked = plane.asked(&user, before)?;
    run.figure("requests", asked.count() as f64);
    run.requests = tally(&asked);
    running.finish().await?;
    Ok(run)
}
