//! Where a process stands in an election, for those who want to know.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

/// Where this process stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It waits; who leads, as far as it knows.
    Standby {
        /// The identity of the leader.
        leader: Option<String>,
    },
    /// It leads.
    Leading,
    /// It does not take part (any more).
    Ended,
}

/// What an election counts and shows.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) standing: watch::Sender<Standing>,
    pub(super) slow_paths: AtomicU64,
}

impl Figures {
    pub(super) fn new() -> Self {
        Self { standing: watch::Sender::new(Standing::Ended), slow_paths: AtomicU64::new(0) }
    }

    pub(super) fn leads(&self) -> bool {
        *self.standing.borrow() == Standing::Leading
    }
}

/// The standing of one campaign. Dropped with it, also when nobody awaits it any more.
#[derive(Debug)]
pub(super) struct Stand<'a>(&'a Figures);

impl<'a> Stand<'a> {
    pub(super) fn begin(figures: &'a Figures) -> Self {
        let stand = Self(figures);
        stand.take(Standing::Standby { leader: None });
        stand
    }

    pub(super) fn take(&self, standing: Standing) {
        self.0.standing.send_if_modified(|present| {
            let changed = *present != standing;
            *present = standing;
            changed
        });
    }

    pub(super) fn slow_path(&self) {
        self.0.slow_paths.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Stand<'_> {
    fn drop(&mut self) {
        self.take(Standing::Ended);
    }
}
