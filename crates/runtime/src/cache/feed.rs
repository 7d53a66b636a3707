//! A kind without a server, for tests of cache readers: the test supplies lists and watch events.

use std::sync::{Arc, Weak};

use super::reader::ScopedView;
use super::view::{AnyView, View};
use super::{OfKind, Reader, SyncState};
use crate::meta::{Keep, ResourceVersion};

/// Supplies one view with lists and events.
pub(crate) struct Feed<S> {
    view: parking_lot::Mutex<Option<Arc<View<S>>>>,
    weak: Weak<View<S>>,
}

impl<S: OfKind> Feed<S> {
    pub(crate) fn new() -> Self {
        let view = Arc::new(View::new(S::resource(), Keep::default(), || {}));
        Self { weak: Arc::downgrade(&view), view: parking_lot::Mutex::new(Some(view)) }
    }

    /// Returns a reader. The feed does not keep the view alive; only readers do.
    pub(crate) fn reader(&self) -> Reader<S> {
        let view = self.view();
        self.view.lock().take();
        Reader::new(S::resource(), vec![ScopedView { namespace: None, view }])
    }

    pub(crate) fn list(&self, objects: &[serde_json::Value], version: u64) {
        let view = self.view();
        view.begin_list();
        for object in objects {
            view.listed(object.to_string().as_bytes()).unwrap();
        }
        view.end_list(&ResourceVersion::from(version.to_string().as_str())).unwrap();
    }

    pub(crate) fn apply(&self, object: &serde_json::Value) {
        self.view().applied(object.to_string().as_bytes()).unwrap();
    }

    pub(crate) fn delete(&self, object: &serde_json::Value) {
        #[derive(serde::Deserialize)]
        struct Object {
            metadata: crate::meta::Meta,
        }
        let object: Object = serde_json::from_value(object.clone()).unwrap();
        self.view().deleted(&object.metadata);
    }

    pub(crate) fn state(&self, state: &SyncState) {
        self.view().set_state(state);
    }

    /// Returns true if the view has readers.
    pub(crate) fn is_followed(&self) -> bool {
        self.weak.strong_count() > 0
    }

    fn view(&self) -> Arc<View<S>> {
        self.weak.upgrade().expect("somebody reads")
    }
}
