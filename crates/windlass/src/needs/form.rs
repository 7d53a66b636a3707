//! Forms of watched objects: how much of an object is kept, and which requests share a watch.

use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

/// The identity of a watched object: two owners that ask for equal keys share a watch.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct SourceKey {
    pub(super) resource: ResourceType,
    pub(super) key: ObjectKey,
    pub(super) form: Form,
}

/// The form in which an object is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// Only that the object exists.
    Presence,
    /// The digest of its content.
    Digest,
    /// The `data` of the object.
    Values,
    /// The whole object.
    Whole,
    /// The whole object; its absence is known only from its own watch.
    Observed,
}

impl Form {
    pub(super) const ALL: [Self; 5] =
        [Self::Presence, Self::Digest, Self::Values, Self::Whole, Self::Observed];

    /// Returns whether an object kept in this form answers a request for `other`.
    pub(super) fn serves(self, other: Self) -> bool {
        match other {
            Self::Presence | Self::Digest => true,
            Self::Values | Self::Whole => self == other,
            // Only a separate watch can show that an object is absent.
            Self::Observed => false,
        }
    }
}
