//! Requests for objects, and the answers to them.

use std::sync::Arc;

use windlass_runtime::cache::{Cache, Cause, Selection, Shape, SyncState};
use windlass_runtime::json::{Unfit, typed};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::form::{Form, SourceKey};
use super::source::{ByName, Source};
use crate::live::Bare;
use crate::live::content::{AsContent, Hashed, Readable, Whole};

/// A request for one object, by namespace and name.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(super) source: SourceKey,
    pub(super) open: fn(&Cache, &Selection, &SourceKey) -> Box<dyn Source>,
    pub(super) decode: fn(&serde_json::Value) -> Result<Arc<dyn AsContent>, Unfit>,
}

impl Ask {
    /// Asks for an object in a form.
    pub(crate) fn new(resource: ResourceType, key: ObjectKey, form: Form) -> Self {
        match form {
            Form::Presence => Self::with::<Bare>(resource, key, form),
            Form::Digest => Self::with::<Hashed>(resource, key, form),
            Form::Values => Self::with::<Readable>(resource, key, form),
            Form::Whole | Form::Observed => Self::with::<Whole>(resource, key, form),
        }
    }

    fn with<S: Shape + AsContent>(resource: ResourceType, key: ObjectKey, form: Form) -> Self {
        Self {
            source: SourceKey { resource, key, form },
            open: |cache, selection, source| {
                let reader = cache.reader_of::<S>(&source.resource, selection);
                Box::new(ByName { reader, key: source.key.clone(), form: source.form })
            },
            decode: |object| Ok(Arc::new(typed::<S>(object)?)),
        }
    }

    /// Returns kind and name of the object, for messages.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.source.resource.kind, self.source.key.name())
    }
}

/// The answer to an [`Ask`].
#[derive(Clone)]
pub(crate) enum Answer {
    /// The object exists.
    There(Arc<dyn AsContent>),
    /// The object is assumed to exist, and its values are not known: in a preview.
    Assumed,
    /// It is known that the object does not exist.
    Absent,
    /// It is not known whether the object exists, for this reason.
    Unknown(String),
}

impl Answer {
    /// Returns the answer that follows from the content of a cache and its state.
    pub(super) fn of(content: Option<Arc<dyn AsContent>>, state: &SyncState, form: Form) -> Self {
        match (content, state) {
            (Some(content), _) => Self::There(content),
            (None, SyncState::Synced) => Self::Absent,
            // An object of a kind that is not installed does not exist.
            (None, SyncState::Blocked(problem))
                if form == Form::Observed && problem.cause == Cause::Missing =>
            {
                Self::Absent
            }
            (None, SyncState::Blocked(problem)) => Self::Unknown(format!("it cannot be read: {problem}")),
            (None, SyncState::Starting) => Self::Unknown(NOT_READ.to_owned()),
        }
    }
}

pub(super) const NOT_READ: &str = "it has not been read yet";
