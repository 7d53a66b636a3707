//! Handles that a test holds while the proxy runs.

use std::fmt;
use std::sync::Arc;

use super::control::{Control, Tally, Verdict};
use super::error::WaitError;
use super::fault::Fault;
use super::script::FaultId;

/// A fault that was given to a proxy. Dropping the handle changes nothing; the fault stays until it is
/// [removed](FaultHandle::remove).
#[derive(Clone)]
pub struct FaultHandle {
    control: Arc<Control>,
    id: FaultId,
    tally: Arc<Tally>,
    fault: Fault,
}

impl FaultHandle {
    pub(super) fn new(control: Arc<Control>, id: FaultId, tally: Arc<Tally>, fault: Fault) -> Self {
        Self { control, id, tally, fault }
    }

    /// The fault as it was added.
    pub fn fault(&self) -> &Fault {
        &self.fault
    }

    /// The number of times the fault took effect. With [`Action::HoldAnswer`](super::Action::HoldAnswer) and
    /// [`Action::DropAfter`](super::Action::DropAfter) that is after the server answered; with a fault in a
    /// stream, when the stream breaks.
    pub fn hits(&self) -> u64 {
        self.tally.hits()
    }

    /// Waits until it took effect so often in all. Cancel safe.
    pub async fn wait_for_hits(&self, hits: u64) -> Result<(), WaitError> {
        self.control.wait_for_hits(&self.tally, &self.fault, hits).await
    }

    /// Lets go of all that it holds now: requests, answers, frozen streams. The fault stays, and holds what
    /// comes later if it is due.
    pub fn release(&self) {
        self.control.judge(self.id, &self.tally, Verdict::Release);
    }

    /// Throws away all that it holds now: requests never reach the server, answers are lost, streams are cut;
    /// their connections are closed. The fault stays.
    pub fn discard(&self) {
        self.control.judge(self.id, &self.tally, Verdict::Discard);
    }

    /// Removes the fault from the script, and releases all requests that it holds.
    pub fn remove(&self) {
        self.control.remove(self.id, &self.tally);
    }
}

impl fmt::Debug for FaultHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultHandle({}; {} hits)", self.fault, self.hits())
    }
}

/// Watches that stand still. They flow again when this is released or dropped.
#[must_use = "the watches flow again as soon as the guard is dropped"]
pub struct FreezeGuard {
    control: Arc<Control>,
    id: FaultId,
}

impl FreezeGuard {
    pub(super) fn new(control: Arc<Control>, id: FaultId) -> Self {
        Self { control, id }
    }

    /// Lets them flow again; what was waiting comes first, in order.
    pub fn release(self) {
        drop(self);
    }
}

impl Drop for FreezeGuard {
    fn drop(&mut self) {
        self.control.thaw(self.id);
    }
}

impl fmt::Debug for FreezeGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FreezeGuard")
    }
}
