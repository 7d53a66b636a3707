//! The context of all workloads: options, programs, control planes, and the directory of the results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::sync::Mutex;

use crate::figure::Figure;
use crate::machine::Machine;
use crate::plane::Plane;
use crate::programs::Programs;
use crate::progress::Progress;
use crate::report::{Report, Run};
use crate::subject::{self, Subject};
use crate::table;

/// The size of a run.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) runs: usize,
    /// Other than the workload's own.
    pub(crate) sizes: Option<Vec<usize>>,
    pub(crate) subjects: Vec<Subject>,
    /// The smallest size: only guards and correctness count.
    pub(crate) smoke: bool,
    pub(crate) command: String,
}

impl Options {
    /// The sizes to measure at.
    pub(crate) fn sizes(&self, usual: &[usize], tiny: &[usize]) -> Vec<usize> {
        match &self.sizes {
            Some(sizes) => sizes.clone(),
            None if self.smoke => tiny.to_vec(),
            None => usual.to_vec(),
        }
    }

    /// One of two, by how much is done.
    pub(crate) fn pick<T>(&self, usual: T, tiny: T) -> T {
        if self.smoke { tiny } else { usual }
    }

    /// A time that is long in earnest.
    pub(crate) fn seconds(&self, usual: u64, tiny: u64) -> Duration {
        Duration::from_secs(self.pick(usual, tiny))
    }
}

/// The context that a workload receives.
pub(crate) struct Bench {
    pub(crate) options: Options,
    pub(crate) programs: Programs,
    pub(crate) progress: Progress,
    root: PathBuf,
    /// The control plane of a smoke test, one for all workloads.
    shared: Mutex<Option<Arc<Plane>>>,
}

/// One subject of one run, to be measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) run: usize,
    pub(crate) subject: Subject,
}

impl Bench {
    pub(crate) fn new(root: &Path, options: Options, programs: Programs) -> Self {
        let (progress, shared) = (Progress::new(), Mutex::default());
        Self { options, programs, progress, root: root.to_owned(), shared }
    }

    /// A control plane with nothing in it. In a smoke test it is always the same one, emptied.
    pub(crate) async fn plane(&self) -> Result<Arc<Plane>> {
        if !self.options.smoke {
            return Ok(Arc::new(Plane::start(&self.root).await?));
        }
        let mut shared = self.shared.lock().await;
        if let Some(plane) = &*shared {
            plane.admin.wipe().await?;
            return Ok(Arc::clone(plane));
        }
        let plane = Arc::new(Plane::start(&self.root).await?);
        *shared = Some(Arc::clone(&plane));
        Ok(plane)
    }

    /// All cells of one group, run after run, with the order turned round every other run.
    pub(crate) fn cells(&self) -> impl Iterator<Item = Cell> {
        let subjects = self.options.subjects.clone();
        (1..=self.options.runs).flat_map(move |run| {
            subject::order(&subjects, run).into_iter().map(move |subject| Cell { run, subject })
        })
    }

    /// The number of cells.
    pub(crate) fn cell_count(&self) -> usize {
        self.options.runs * self.options.subjects.len()
    }

    /// Says which cell is next.
    pub(crate) fn begin_cell(&self, group: &str, cell: Cell) {
        let runs = self.options.runs;
        self.progress.cell(&format!("{group}, {}, run {} of {runs}", cell.subject, cell.run));
    }

    /// A report of what was measured since `began`.
    pub(crate) async fn report(&self, measured: Measured) -> Result<Report> {
        let mut versions = BTreeMap::new();
        versions.extend(measured.plane.map(|version| ("Kubernetes".to_owned(), version)));
        for subject in &self.options.subjects {
            let name = if subject.is_go() { "controller-runtime" } else { "windlass" };
            versions.insert(name.to_owned(), self.programs.version(*subject).await?);
        }
        let mut settings: BTreeMap<String, String> = measured.settings;
        versions.insert("rustc".into(), self.programs.rustc().await?);
        settings.insert(table::BUILD.into(), self.programs.build_name().into());
        settings.insert("pinning".into(), self.programs.pinning().into());
        settings.insert("threads".into(), "GOMAXPROCS=1, one worker thread of tokio".into());
        settings.insert("etcd".into(), "--unsafe-no-fsync".into());
        settings.insert("client rate limiter".into(), "off".into());
        settings.insert("allocator of windlass".into(), "glibc malloc, default settings".into());
        Ok(Report {
            workload: measured.workload.into(),
            title: measured.title.into(),
            command: self.options.command.clone(),
            date: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
            minutes: measured.began.elapsed().as_secs_f64() / 60.0,
            machine: Machine::here(),
            versions,
            settings,
            notes: measured.notes,
            runs: measured.runs,
        })
    }
}

/// The results of a workload.
pub(crate) struct Measured {
    pub(crate) workload: &'static str,
    pub(crate) title: &'static str,
    pub(crate) began: Instant,
    /// The version of the control plane.
    pub(crate) plane: Option<String>,
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) notes: Vec<String>,
    pub(crate) runs: Vec<Run>,
}

impl Measured {
    pub(crate) fn new(workload: &'static str, title: &'static str) -> Self {
        Self {
            workload,
            title,
            began: Instant::now(),
            plane: None,
            settings: BTreeMap::new(),
            notes: Vec::new(),
            runs: Vec::new(),
        }
    }

    pub(crate) fn setting(&mut self, name: &str, value: impl ToString) {
        self.settings.insert(name.to_owned(), value.to_string());
    }
}

/// A workload, for those that list them.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) figures: &'static [Figure],
}
