//! Selections: the objects of a kind that a reader or a list requests. Public as part of
//! [`cache`](crate::cache).
//!
//! Promises: the server evaluates the same selection, and write responses are judged by the same rules, so
//! that an object enters and leaves a cache by its labels whether a watch or a write reported it.

mod fields;
mod labels;

use std::collections::BTreeSet;

pub use fields::FieldSelector;
pub use labels::LabelSelector;

use crate::intern::Str;
use crate::meta::Keep;

/// The objects of a kind that a reader requests, and the metadata that is kept.
///
/// ```
/// use windlass_runtime::cache::Selection;
///
/// let selection = Selection::all()
///     .in_namespaces(["shop", "bank"])
///     .labels("app.kubernetes.io/managed-by=windlass")?;
/// # Ok::<(), windlass_runtime::cache::InvalidSelector>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    pub(crate) namespaces: Option<BTreeSet<Str>>,
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
    pub(crate) keep: Keep,
}

/// A selector that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid selector {selector:?}: {reason}")]
pub struct InvalidSelector {
    /// The text of the selector.
    pub selector: String,
    /// The reason why it cannot be parsed.
    pub reason: String,
}

impl InvalidSelector {
    fn new(selector: &str, reason: impl Into<String>) -> Self {
        Self { selector: selector.to_owned(), reason: reason.into() }
    }
}

impl Selection {
    /// Selects every object of the kind, in all namespaces.
    pub fn all() -> Self {
        Self::default()
    }

    /// Selects only objects in these namespaces, with one watch each. Ignored for cluster-scoped kinds.
    #[must_use]
    pub fn in_namespaces(mut self, namespaces: impl IntoIterator<Item = impl Into<Str>>) -> Self {
        self.namespaces = Some(namespaces.into_iter().map(Into::into).collect());
        self
    }

    /// Selects only objects in this namespace.
    #[must_use]
    pub fn in_namespace(self, namespace: impl Into<Str>) -> Self {
        self.in_namespaces([namespace])
    }

    /// Selects only objects whose labels match, in the notation of `kubectl -l`.
    pub fn labels(mut self, selector: &str) -> Result<Self, InvalidSelector> {
        self.labels = selector.parse()?;
        Ok(self)
    }

    /// Selects only objects whose fields match, in the notation of `kubectl --field-selector`. The server
    /// decides which fields of a kind can be selected; `metadata.name` and `metadata.namespace` always can.
    pub fn fields(mut self, selector: &str) -> Result<Self, InvalidSelector> {
        self.fields = selector.parse()?;
        Ok(self)
    }

    /// Keeps additional metadata.
    #[must_use]
    pub fn keep(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }
}

/// The result of evaluating a selection locally.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Inside,
    Outside,
    /// Only the server can evaluate it; its watch will deliver the result.
    Unknown,
}

impl Verdict {
    fn of(inside: bool) -> Self {
        if inside { Self::Inside } else { Self::Outside }
    }

    /// Combines two results: inside only if both are, outside if either is.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Outside, _) | (_, Self::Outside) => Self::Outside,
            (Self::Inside, Self::Inside) => Self::Inside,
            _ => Self::Unknown,
        }
    }
}
