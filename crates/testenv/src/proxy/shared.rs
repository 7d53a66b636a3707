//! The state that all connections of a proxy share.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::control::Control;
use super::sync::Tasks;
use super::upstream::Upstream;

/// Requests held at the same time.
const MAX_HELD: usize = 256;

/// The state that all connections of a proxy share.
pub(super) struct Shared {
    pub(super) control: Arc<Control>,
    pub(super) upstream: Arc<Upstream>,
    pub(super) tasks: Arc<Tasks>,
    /// A permit for every request that is held.
    pub(super) held: Arc<Semaphore>,
}

impl Shared {
    pub(super) fn new(control: Arc<Control>, upstream: Arc<Upstream>, tasks: Arc<Tasks>) -> Self {
        Self { control, upstream, tasks, held: Arc::new(Semaphore::new(MAX_HELD)) }
    }
}
