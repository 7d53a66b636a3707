//! The standing of a process in an election.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use crate::fence::Fence;

/// The standing of this process in an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It waits for the lease.
    Standby {
        /// The identity of the leader, if it is known.
        leader: Option<String>,
    },
    /// It is the leader.
    Leading,
    /// It is not a candidate (any more).
    Ended,
}

/// Counters and standing of an election.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) standing: watch::Sender<Standing>,
    pub(super) slow_paths: AtomicU64,
    /// Open while this process leads.
    pub(super) fence: Fence,
}

impl Figures {
    pub(super) fn new() -> Self {
        Self::with_fence(Fence::closed())
    }

    pub(super) fn with_fence(fence: Fence) -> Self {
        Self { standing: watch::Sender::new(Standing::Ended), slow_paths: AtomicU64::new(0), fence }
    }

    pub(super) fn leads(&self) -> bool {
        *self.standing.borrow() == Standing::Leading
    }
}

/// The standing of one campaign. It ends when this is dropped, also when the campaign is cancelled.
#[derive(Debug)]
pub(super) struct Stand<'a>(&'a Figures);

impl<'a> Stand<'a> {
    pub(super) fn begin(figures: &'a Figures) -> Self {
        let stand = Self(figures);
        stand.take(Standing::Standby { leader: None });
        stand
    }

    pub(super) fn take(&self, standing: Standing) {
        if standing != Standing::Leading {
            self.0.fence.close();
        }
        self.0.standing.send_if_modified(|present| {
            let changed = *present != standing;
            *present = standing;
            changed
        });
    }

    pub(super) fn fence(&self) -> &Fence {
        &self.0.fence
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
