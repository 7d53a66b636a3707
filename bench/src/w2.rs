//! W2: what a cached object weighs when nothing happens.
//!
//! **Measures** resident memory of a program that caches every Widget of the cluster, in four forms (the
//! whole object; the same, which ours keeps as JSON and decodes when it is read; what a reconcile reads of
//! it; metadata only) at several numbers of Widgets, after more than two minutes of rest, so that Go's
//! collector, which runs at least every two minutes, has run and its scavenger has given back what it will.
//! The slope against the empty cache is what one object weighs; the empty cache is the intercept.
//!
//! **Guards**: each program says how many objects it holds with a checksum of their names and sizes, which
//! the harness knows; then it answers 1,000 random reads, with the full spec where it claims to hold it, each
//! compared with what the harness created. So nothing can be dropped, shared by mistake, or fetched later:
//! the audit log has one list-and-watch per program and no read.
//!
//! **Does not show** what a list costs at its peak (W1), nor objects of other sizes; and the programs of all
//! forms rest beside each other, so the idle CPU is that of a machine that is nearly idle, and the
//! proportional set, which neighbours of the same binary make smaller, is left to W6.

use std::time::Instant;

use anyhow::{Context as _, Result};

use windlass_testenv::Mark;

use crate::bench::{Bench, Cell, Measured, Workload};
use crate::figure::{Figure, Target, Unit};
use crate::plane::{Plane, User, tally};
use crate::programs::{Running, Start};
use crate::report::Run;
use crate::stats::{self, percentile};
use crate::subject::{Subject, go_memory_limit, order};
use crate::widgets::{self, Checksum, Dice};

pub(crate) const WORKLOAD: Workload = Workload { name: "w2", figures: FIGURES };

const FIGURES: &[Figure] = &[
    Figure::new("rss_per_object", "RSS per object", Unit::Bytes)
        .aim(&[Target::OfAtMost(Subject::GoTuned, 1.0 / 3.0), Target::OfAtMost(Subject::Go, 1.0 / 15.0)]),
    Figure::new("rss", "RSS at rest", Unit::Bytes),
    Figure::new("rss_empty", "RSS at rest, no objects", Unit::Bytes)
        .aim(&[Target::OfAtMost(Subject::GoTuned, 0.5)]),
    Figure::new("peak", "peak RSS since the start", Unit::Bytes),
    Figure::new("idle_cpu", "CPU at rest", Unit::Percent),
    Figure::new("threads", "threads", Unit::Count),
    Figure::new("watches", "watches opened", Unit::Count),
];

/// The cached form of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Full,
    /// The same object and the same reads, where ours keeps it as JSON. Go has no such cache: it runs as in
    /// `Full`.
    Packed,
    Needed,
    Metadata,
}

impl Form {
    pub(crate) const ALL: [Self; 4] = [Self::Full, Self::Packed, Self::Needed, Self::Metadata];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Packed => "packed",
            Self::Needed => "needed",
            Self::Metadata => "metadata",
        }
    }

    /// The argument that selects the form in a subject.
    pub(crate) fn flag(self, subject: Subject) -> &'static str {
        if self == Self::Packed && subject.is_go() { Self::Full.name() } else { self.name() }
    }

    /// About what Go's heap holds of one, when it was tuned.
    pub(crate) fn go_bytes(self) -> usize {
        match self {
            Self::Full | Self::Packed => 4096,
            Self::Needed | Self::Metadata => 1024,
        }
    }

    /// The checksum of a cache of so many Widgets.
    pub(crate) fn checksum(self, count: usize) -> Checksum {
        let checksum = Checksum::of(count);
        if self == Self::Metadata { checksum.without_sizes() } else { checksum }
    }
}

/// One program at rest.
struct Resting {
    cell: Cell,
    form: Form,
    user: User,
    /// The end of the audit log before the measurement.
    before: Mark,
    running: Running,
}

pub(crate) async fn run(bench: &Bench) -> Result<Measured> {
    let options = &bench.options;
    let sizes = options.sizes(&[10_000, 50_000], &[200]);
    let settle = options.seconds(130, 2);
    let mut measured = Measured::new("w2", "memory of a cached object");
    measured.setting("rest before memory is read", format!("{} s", settle.as_secs()));
    measured.notes.push(
        "full: the whole object, as a typed struct. packed: the whole object again; windlass keeps it as JSON and decodes it for each \
         read, go and go-tuned run as in full. needed: size, color, readiness and metadata (windlass: a shape; go-tuned: a \
         transform; go: the whole object). metadata: metadata only."
            .into(),
    );
    measured.notes.push("GOMEMLIMIT of go-tuned: 48 MiB, and 1.25 × the live heap: 4 KiB for each full Widget, 1 KiB for the others.".into());
    let steps: Vec<usize> = std::iter::once(0).chain(sizes).collect();
    bench.progress.begin("w2", steps.len() * Form::ALL.len() * bench.cell_count());
    let plane = bench.plane().await?;
    measured.plane = Some(plane.version()?);
    let mut there = 0;
    for size in steps {
        bench.progress.say(&format!("creating {} Widgets", size.saturating_sub(there)));
        plane.admin.widgets(there..size).await?;
        there = size;
        // Empty caches have room for each other: their runs rest together.
        let together = if size == 0 { options.runs } else { 1 };
        let runs: Vec<usize> = (1..=options.runs).collect();
        for runs in runs.chunks(together) {
            let mut resting = Vec::new();
            for run in runs {
                for form in Form::ALL {
                    for subject in order(&options.subjects, *run) {
                        let cell = Cell { run: *run, subject };
                        bench.begin_cell(&group(size, form), cell);
                        resting.push(start(bench, &plane, size, form, cell).await?);
                    }
                }
            }
            let since = Instant::now();
            let cpu: Vec<f64> = resting
                .iter()
                .map(|one| one.running.usage().map(|usage| usage.cpu))
                .collect::<Result<_>>()?;
            tokio::time::sleep(settle).await;
            for (one, cpu) in resting.into_iter().zip(cpu) {
                let run = finish(&plane, size, one, since, cpu, options.pick(1000, 100)).await?;
                measured.runs.push(run);
            }
        }
    }
    slopes(&mut measured.runs);
    Ok(measured)
}

fn group(size: usize, form: Form) -> String {
    format!("{size} Widgets, {}", form.name())
}

async fn start(bench: &Bench, plane: &Plane, size: usize, form: Form, cell: Cell) -> Result<Resting> {
    let user = plane.user(&format!("w2-{}-{}-{size}-{}", cell.subject, form.name(), cell.run))?;
    let before = plane.mark()?;
    let limit = go_memory_limit(size, form.go_bytes());
    let start = Start::new(cell.subject, "cache", &limit).flag("--form", form.flag(cell.subject));
    let mut running = bench.programs.start(plane, &user, &start)?;
    let heard = running.hear("synced", bench.options.seconds(300, 60)).await?;
    let reported = Checksum::reported(&heard.value);
    anyhow::ensure!(
        reported == Some(form.checksum(size)),
        "{} ({}) holds something else than was created: {}",
        cell.subject,
        form.name(),
        heard.value
    );
    Ok(Resting { cell, form, user, before, running })
}

async fn finish(
    plane: &Plane,
    size: usize,
    one: Resting,
    since: Instant,
    cpu: f64,
    reads: usize,
) -> Result<Run> {
    let Resting { cell, form, user, before, mut running } = one;
    let mut run = Run::new(group(size, form), cell.subject, cell.run);
    let usage = running.usage()?;
    let rest = since.elapsed().as_secs_f64();
    // The last third of the rest: what it has come down to.
    let resident = running.sampler.resident_since(since + since.elapsed().mul_f64(2.0 / 3.0));
    let resident = stats::sorted(&resident);
    run.figure("rss", percentile(&resident, 50.0).context("samples")?);
    if size == 0 {
        run.figure("rss_empty", percentile(&resident, 50.0).context("samples")?);
    }
    run.figure("peak", usage.peak as f64);
    run.figure("threads", usage.threads as f64);
    run.figure("idle_cpu", (usage.cpu - cpu) / rest * 100.0);
    check_reads(&mut run, &mut running, size, form, reads).await?;
    let heard = running.ask("count", "synced", std::time::Duration::from_mins(1)).await?;
    run.guard(
        Checksum::reported(&heard.value) == Some(form.checksum(size)),
        format!("the checksum of {size} names and sizes is right after the rest"),
    )?;
    let asked = plane.asked(&user, before)?;
    run.requests = tally(&asked);
    run.figure("watches", asked.verb("watch").count() as f64);
    run.guard(
        asked.verb("get").resource("widgets").is_empty(),
        "nothing was read from the server on request",
    )?;
    running.finish().await?;
    Ok(run)
}

/// Random reads, each compared with what was created.
async fn check_reads(
    run: &mut Run,
    running: &mut Running,
    size: usize,
    form: Form,
    reads: usize,
) -> Result<()> {
    if size == 0 {
        return Ok(());
    }
    let mut dice = Dice::new(run.run as u64);
    let mut wrong = Vec::new();
    for _ in 0..reads {
        let index = dice.below(size);
        let key = widgets::key(index);
        let command = format!("read {} {}", key.namespace, key.name);
        let heard = running.ask(&command, "object", std::time::Duration::from_secs(30)).await?;
        let expected = widgets::spec(index, widgets::color(index));
        let right = heard.value["found"] == true
            && match form {
                Form::Full | Form::Packed => heard.value["spec"] == expected,
                Form::Needed => {
                    heard.value["size"] == expected["size"] && heard.value["color"] == expected["color"]
                }
                Form::Metadata => true,
            };
        if !right {
            wrong.push(format!("{}: {}", key.name, heard.value));
        }
    }
    let what = match form {
        Form::Full | Form::Packed => "the full spec",
        Form::Needed => "size and color",
        Form::Metadata => "the object",
    };
    run.guard(wrong.is_empty(), format!("{reads} random reads return {what} {}", wrong.join("\n")))
}

/// The memory per object: the difference to the empty cache of the same subject and form, by their medians.
fn slopes(runs: &mut [Run]) {
    let empty: Vec<(Subject, String, f64)> = runs
        .iter()
        .filter_map(|run| {
            Some((run.subject, run.group.strip_prefix("0 Widgets, ")?.to_owned(), *run.figures.get("rss")?))
        })
        .collect();
    for run in runs.iter_mut() {
        let Some((count, form)) = run.group.split_once(" Widgets, ") else { continue };
        let Ok(count) = count.parse::<f64>() else { continue };
        let base: Vec<f64> = empty
            .iter()
            .filter(|(subject, of, _)| *subject == run.subject && of == form)
            .map(|(_, _, rss)| *rss)
            .collect();
        let base = percentile(&stats::sorted(&base), 50.0);
        if let (Some(base), Some(rss), true) = (base, run.figures.get("rss").copied(), count > 0.0) {
            run.figures.insert("rss_per_object".into(), (rss - base) / count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_weighs_what_the_cache_weighs_more_than_an_empty_one() {
        let run = |group: &str, rss: f64| {
            let mut run = Run::new(group, Subject::Go, 1);
            run.figure("rss", rss);
            run
        };
        let mut runs = vec![
            run("0 Widgets, full", 10e6),
            run("0 Widgets, full", 12e6),
            run("0 Widgets, full", 11e6),
            run("0 Widgets, needed", 99e6),
            run("1000 Widgets, full", 15e6),
        ];
        slopes(&mut runs);
        assert_eq!(runs[4].figures.get("rss_per_object"), Some(&4000.0));
        assert_eq!(runs[0].figures.get("rss_per_object"), None);
    }
}
