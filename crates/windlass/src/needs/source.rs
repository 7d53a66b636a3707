//! One object that is watched by its name.

use std::sync::Arc;

use tokio::sync::watch;
use windlass_runtime::cache::{Origin, Reader, Shape, Subscription, SyncState};
use windlass_runtime::key::ObjectKey;

use super::form::Form;
use crate::live::content::AsContent;

/// A single object that is watched.
pub(super) trait Source: Send + Sync {
    fn get(&self) -> Option<Arc<dyn AsContent>>;
    fn state(&self) -> watch::Receiver<SyncState>;
    /// Calls `wake` at each change of the object; `None` if another watch does.
    fn subscribe(&self, wake: Box<dyn Fn() + Send + Sync>) -> Option<Subscription>;
}

/// A separate watch for one object, selected by name.
pub(super) struct ByName<S> {
    pub(super) reader: Reader<S>,
    pub(super) key: ObjectKey,
    pub(super) form: Form,
}

impl<S: Shape + AsContent> Source for ByName<S> {
    fn get(&self) -> Option<Arc<dyn AsContent>> {
        self.reader.get(&self.key).map(|object| object as Arc<dyn AsContent>)
    }

    fn state(&self) -> watch::Receiver<SyncState> {
        self.reader.state()
    }

    fn subscribe(&self, wake: Box<dyn Fn() + Send + Sync>) -> Option<Subscription> {
        // The state of the watch wakes owners at the end of the first list, so objects in that list need no
        // event. But if an observed kind is installed later, its objects first appear in that list.
        let listed = self.form == Form::Observed;
        Some(self.reader.subscribe(move |change| {
            if listed || change.origin != Origin::InitialList {
                wake();
            }
        }))
    }
}
