//! W9: the queue alone.
//!
//! **Measures** the three cases by which controller-runtime measures its priority queue: a thousand keys
//! added, taken and finished; a thousand keys added again and again; and the same while a thousand workers
//! take what is there. Time for a thousand keys.
//!
//! **Guards**: each program says how many rounds it did, and none of the cases is missing.
//!
//! **Does not show** what an operator feels: W3 has the queue in its place. Go has the case with contention
//! on one processor here, too.

use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::bench::{Bench, Measured, Workload};
use crate::figure::{Figure, Unit};
use crate::report::Run;

pub(crate) const WORKLOAD: Workload = Workload { name: "w9", figures: FIGURES };

const FIGURES: &[Figure] = &[
    Figure::new("AddGetDone", "1,000 keys added, taken, finished", Unit::Seconds),
    Figure::new("AddOnly", "1,000 keys added", Unit::Seconds),
    Figure::new("AddLockContended", "1,000 keys added beside 1,000 workers", Unit::Seconds),
];

pub(crate) async fn run(bench: &Bench) -> Result<Measured> {
    let mut measured = Measured::new("w9", "the queue alone");
    measured.notes.push("go and go-tuned are the same queue; they differ by GOMEMLIMIT=256MiB.".into());
    bench.progress.begin("w9", bench.cell_count());
    let logs = tempfile::tempdir()?;
    for cell in bench.cells() {
        bench.begin_cell("queue", cell);
        let mut run = Run::new("queue", cell.subject, cell.run);
        let mut running = bench.programs.start_alone(cell.subject, "queue", logs.path().join("queue.log"))?;
        for figure in FIGURES {
            let heard = running.hear("queue", Duration::from_mins(2)).await?;
            let case = heard.value["case"].as_str().context("a case")?.to_owned();
            run.guard(case == figure.key, format!("the case {} is there", figure.key))?;
            run.guard(heard.value["ops"].as_u64() > Some(0), format!("{case} did something"))?;
            run.figure(&case, heard.value["ns_per_op"].as_f64().context("its time")? / 1e9);
        }
        measured.runs.push(run);
    }
    Ok(measured)
}
