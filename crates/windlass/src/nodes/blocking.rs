//! Work that takes a processor for long: it runs on a thread of its own.

use crate::error::{NodeError, PlanError, Reason};

/// Runs a function on a thread of its own: an RSA key or a bcrypt hash takes up to seconds, and the process
/// has two threads for everything else, the Lease included. A panic of the function is one of the caller.
pub(super) async fn run<T: Send + 'static>(
    make: impl FnOnce() -> Result<T, PlanError> + Send + 'static,
) -> Result<T, NodeError> {
    match tokio::task::spawn_blocking(make).await {
        Ok(result) => Ok(result?),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(NodeError::transient(Reason::Unavailable, "the process is stopping")),
        },
    }
}
