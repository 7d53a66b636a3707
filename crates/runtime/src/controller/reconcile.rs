//! What a controller calls for every key.

use super::{Error, Outcome};
use crate::key::ObjectKey;

/// Brings one object from what it is to what it should be.
///
/// It is called with a key, never with an object or an event: whatever happened, and however often, read what is true now
/// (from the cache, that costs nothing) and act on it. It is also called for a key whose object is gone: there, clean up
/// what the object left behind, or return [`Outcome::Done`].
///
/// For one key it never runs twice at the same time. A panic is an error of that key and of no other.
///
/// **Cancellation is drop.** A reconcile that exceeds its deadline, or the grace time of a stop, is dropped at its next
/// `.await`. What it did stays done, the rest is done by the next run: write it so that every prefix of it is harmless.
///
/// Implemented for every function of a key:
///
/// ```
/// use windlass_runtime::controller::{Error, Outcome, Reconcile};
/// use windlass_runtime::key::ObjectKey;
///
/// struct Printer;
///
/// impl Reconcile for Printer {
///     async fn reconcile(&self, key: ObjectKey) -> Result<Outcome, Error> {
///         tracing::info!("something is new with {key}");
///         Ok(Outcome::Done)
///     }
/// }
///
/// fn takes(_: impl Reconcile) {}
/// takes(Printer);
/// takes(|key: ObjectKey| async move {
///     tracing::info!("something is new with {key}");
///     Ok(Outcome::Done)
/// });
/// ```
pub trait Reconcile: Send + Sync + 'static {
    /// Brings the object of this key to what it should be.
    fn reconcile(&self, key: ObjectKey) -> impl Future<Output = Result<Outcome, Error>> + Send;
}

impl<F, R> Reconcile for F
where
    F: Fn(ObjectKey) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Outcome, Error>> + Send,
{
    fn reconcile(&self, key: ObjectKey) -> impl Future<Output = Result<Outcome, Error>> + Send {
        self(key)
    }
}
