//! Selections: the objects of a kind that a reader or a list asks for. Public as part of [`cache`](crate::cache).
//!
//! Promises: what is selected here is what the server is asked to select, and write answers are judged by the same
//! rules, so that an object enters and leaves a cache by its labels however the news of it came.

mod fields;
mod labels;

use std::collections::BTreeSet;

pub use fields::FieldSelector;
pub use labels::LabelSelector;

use crate::intern::Str;
use crate::meta::Keep;

/// Which objects of a kind a reader wants, and what of their metadata is kept.
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

/// A selector that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid selector {selector:?}: {reason}")]
pub struct InvalidSelector {
    /// The text as given.
    pub selector: String,
    /// What is wrong with it.
    pub reason: String,
}

impl InvalidSelector {
    fn new(selector: &str, reason: impl Into<String>) -> Self {
        Self { selector: selector.to_owned(), reason: reason.into() }
    }
}

impl Selection {
    /// Every object of the kind, in all namespaces.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only objects in these namespaces: one watch each. Ignored for cluster-scoped kinds.
    #[must_use]
    pub fn in_namespaces(mut self, namespaces: impl IntoIterator<Item = impl Into<Str>>) -> Self {
        self.namespaces = Some(namespaces.into_iter().map(Into::into).collect());
        self
    }

    /// Only objects in this namespace.
    #[must_use]
    pub fn in_namespace(self, namespace: impl Into<Str>) -> Self {
        self.in_namespaces([namespace])
    }

    /// Only objects whose labels match, in the notation of `kubectl -l`.
    pub fn labels(mut self, selector: &str) -> Result<Self, InvalidSelector> {
        self.labels = selector.parse()?;
        Ok(self)
    }

    /// Only objects whose fields match, in the notation of `kubectl --field-selector`. Which fields a kind can be
    /// selected by is the server's choice; `metadata.name` and `metadata.namespace` always can.
    pub fn fields(mut self, selector: &str) -> Result<Self, InvalidSelector> {
        self.fields = selector.parse()?;
        Ok(self)
    }

    /// Keep more of the metadata than usual.
    #[must_use]
    pub fn keep(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }
}

/// Whether an object belongs to a selection, as far as can be told here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Inside,
    Outside,
    /// Only the server can tell; its watch will.
    Unknown,
}

impl Verdict {
    fn of(inside: bool) -> Self {
        if inside { Self::Inside } else { Self::Outside }
    }

    /// Inside only if both are, outside if either is.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Outside, _) | (_, Self::Outside) => Self::Outside,
            (Self::Inside, Self::Inside) => Self::Inside,
            _ => Self::Unknown,
        }
    }
}
