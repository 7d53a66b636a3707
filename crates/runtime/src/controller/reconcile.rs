//! The trait of reconcilers.

use super::{Error, Requeue};
use crate::key::ObjectKey;

/// Drives one object from its present state to its desired state.
///
/// It is called with a key, never with an object or an event: whatever happened, and however often, read the
/// present state (from the cache, which costs nothing) and act on it. It is also called for a key whose
/// object is gone: then clean up what the object left behind, or return [`Requeue::OnChange`].
///
/// There are never two concurrent calls for one key. A panic counts as an error of that key only.
///
/// **Cancellation is drop.** A reconcile that exceeds its deadline, or the grace time of a stop, is dropped
/// at its next `.await`. Its effects stay, and the next run does the rest: write it so that stopping after
/// any step is harmless.
///
/// Implemented for every function of a key:
///
/// ```
/// use windlass_runtime::controller::{Error, Requeue, Reconcile};
/// use windlass_runtime::key::ObjectKey;
///
/// struct Printer;
///
/// impl Reconcile for Printer {
///     async fn reconcile(&self, key: ObjectKey) -> Result<Requeue, Error> {
///         tracing::info!("reconciling {key}");
///         Ok(Requeue::OnChange)
///     }
/// }
///
/// fn takes(_: impl Reconcile) {}
/// takes(Printer);
/// takes(|key: ObjectKey| async move {
///     tracing::info!("reconciling {key}");
///     Ok(Requeue::OnChange)
/// });
/// ```
pub trait Reconcile: Send + Sync + 'static {
    /// Drives the object with this key to its desired state.
    fn reconcile(&self, key: ObjectKey) -> impl Future<Output = Result<Requeue, Error>> + Send;
}

impl<F, R> Reconcile for F
where
    F: Fn(ObjectKey) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Requeue, Error>> + Send,
{
    fn reconcile(&self, key: ObjectKey) -> impl Future<Output = Result<Requeue, Error>> + Send {
        self(key)
    }
}
