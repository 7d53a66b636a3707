//! Wakes owners: their keys go to the queue of their controller.

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use windlass_runtime::key::ObjectKey;

/// A channel that wakes owners.
#[derive(Clone)]
pub(crate) struct Wake(mpsc::Sender<ObjectKey>);

impl Wake {
    /// Returns a way to wake owners, and the receiver for their controller.
    pub(crate) fn channel() -> (Self, mpsc::Receiver<ObjectKey>) {
        let (wake, woken) = mpsc::channel(1024);
        (Self(wake), woken)
    }

    /// Sends a key without waiting, and never loses it.
    pub(crate) fn send(&self, owner: ObjectKey) {
        if let Err(TrySendError::Full(owner)) = self.0.try_send(owner)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let wake = self.0.clone();
            runtime.spawn(async move { wake.send(owner).await });
        }
    }
}
