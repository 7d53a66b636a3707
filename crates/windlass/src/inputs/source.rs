//! One object that is followed by its name, with a watch of its own.

use std::sync::Arc;

use futures::future::BoxFuture;
use windlass_runtime::cache::{Origin, Reader, Shape, Subscription, SyncState};
use windlass_runtime::key::ObjectKey;

use super::Form;
use crate::content::AsContent;

/// A single object that is followed.
pub(super) trait Source: Send + Sync {
    fn get(&self) -> Option<Arc<dyn AsContent>>;
    fn state(&self) -> SyncState;
    /// Ends when it is known whether the object is there.
    fn synced(&self) -> BoxFuture<'_, ()>;
    /// Tells of each change; `None` where somebody else does.
    fn subscribe(&self, wake: Box<dyn Fn() + Send + Sync>) -> Option<Subscription>;
}

pub(super) struct ByName<S> {
    pub(super) reader: Reader<S>,
    pub(super) key: ObjectKey,
    pub(super) form: Form,
}

impl<S: Shape + AsContent> Source for ByName<S> {
    fn get(&self) -> Option<Arc<dyn AsContent>> {
        self.reader.get(&self.key).map(|object| object as Arc<dyn AsContent>)
    }

    fn state(&self) -> SyncState {
        self.reader.state().borrow().clone()
    }

    fn synced(&self) -> BoxFuture<'_, ()> {
        if self.form != Form::Observed {
            return Box::pin(self.reader.synced());
        }
        // Of a kind that is not installed there is nothing to be seen, and nothing to wait for.
        let mut state = self.reader.state();
        Box::pin(async move {
            let _ = state.wait_for(|state| !matches!(state, SyncState::Starting)).await;
        })
    }

    fn subscribe(&self, wake: Box<dyn Fn() + Send + Sync>) -> Option<Subscription> {
        // Who opened it reads it anyway; but nobody waited for the kind of what is only observed.
        let listed = self.form == Form::Observed;
        Some(self.reader.subscribe(move |change| {
            if listed || change.origin != Origin::InitialList {
                wake();
            }
        }))
    }
}
