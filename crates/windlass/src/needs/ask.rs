//! What can be asked for, and what can be answered.

use std::any::Any;
use std::sync::Arc;

use windlass_runtime::cache::{Cache, Cause, Selection, Shape, SyncState};
use windlass_runtime::json::{Unfit, typed};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::labelled::ListAsk;
use super::source::{ByName, Source};
use crate::live::content::{AsContent, Hashed, Readable, Whole};
use crate::live::{Bare, Known};

/// A request for one object, by namespace and name.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(super) source: SourceKey,
    pub(super) open: fn(&Cache, &Selection, &SourceKey) -> Box<dyn Source>,
    pub(super) decode: fn(&serde_json::Value) -> Result<Arc<dyn AsContent>, Unfit>,
}

/// The identity of a watched object: two owners that ask for equal keys share a watch.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct SourceKey {
    pub(super) resource: ResourceType,
    pub(super) key: ObjectKey,
    pub(super) form: Form,
}

/// How much of an object is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// Only that the object exists.
    Presence,
    /// The digest of its content.
    Digest,
    /// Its `data`.
    Values,
    /// The whole object.
    Whole,
    /// The whole object, whose absence is known only from its own watch.
    Observed,
}

impl Form {
    pub(super) const ALL: [Self; 5] =
        [Self::Presence, Self::Digest, Self::Values, Self::Whole, Self::Observed];

    /// Whether an object kept in this form answers a request for `other`.
    pub(super) fn serves(self, other: Self) -> bool {
        match other {
            Self::Presence | Self::Digest => true,
            Self::Values | Self::Whole => self == other,
            // Only a watch of its own can tell that an object is absent.
            Self::Observed => false,
        }
    }
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

    /// Kind and name of the object, for messages.
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
    /// It is not known whether the object exists: why.
    Unknown(String),
}

impl Answer {
    /// What follows from the content of a cache and its state.
    pub(super) fn of(content: Option<Arc<dyn AsContent>>, state: &SyncState, form: Form) -> Self {
        match (content, state) {
            (Some(content), _) => Self::There(content),
            (None, SyncState::Synced) => Self::Absent,
            // An object whose kind is not installed does not exist.
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

/// Objects of a list, each in the shape that was asked for.
pub(crate) type AnyObjects = Vec<Arc<dyn Any + Send + Sync>>;

/// Answers the requests of a plan.
pub(crate) trait Answers: Send + Sync {
    /// Answers at once, from what is known now.
    fn answer(&self, ask: &Ask) -> Answer;

    /// All objects of a kind that carry a label with a value.
    fn list(&self, ask: &ListAsk) -> Known<AnyObjects>;

    /// Whether objects are assumed to exist, without values: in a preview.
    fn is_assumed(&self) -> bool {
        false
    }
}
