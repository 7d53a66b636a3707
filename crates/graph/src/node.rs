//! The trait of a node: its identity.

use std::{borrow::Cow, rc::Rc, sync::Arc};

/// An item with an identity, which can be put into a [`Graph`](crate::Graph).
///
/// The identity is what people read in reports and diagrams, and what edges are
/// declared by: `Deployment harbor-core` rather than a number. It is asked for once,
/// when the node is added, and is unique in its graph.
///
/// Text is its own identity, and a pair is identified by its first half, so
/// `graph.add(("config", work))` needs no type of its own.
pub trait Node {
    /// The identity, the same at every call.
    fn id(&self) -> Cow<'_, str>;
}

impl Node for str {
    fn id(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}

impl Node for String {
    fn id(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}

impl<I: AsRef<str>, T> Node for (I, T) {
    fn id(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0.as_ref())
    }
}

impl<N: Node + ?Sized> Node for &N {
    fn id(&self) -> Cow<'_, str> {
        (**self).id()
    }
}

impl<N: Node + ?Sized> Node for Box<N> {
    fn id(&self) -> Cow<'_, str> {
        (**self).id()
    }
}

impl<N: Node + ?Sized> Node for Rc<N> {
    fn id(&self) -> Cow<'_, str> {
        (**self).id()
    }
}

impl<N: Node + ?Sized> Node for Arc<N> {
    fn id(&self) -> Cow<'_, str> {
        (**self).id()
    }
}
