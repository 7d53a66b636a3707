//! Conditions, finalizers and owner references: the three lists of an object that every controller edits.
//!
//! Everything here is a pure function over lists that the caller reads and writes. The functions keep rules
//! that are easy to break by hand: a condition keeps its transition time when only its message changes, no
//! finalizer is added to an object that is being deleted, an owner in another namespace is an error instead
//! of a deleted child.
//!
//! Nothing here calls an API server.

pub mod conditions;
pub mod finalizers;
pub mod owner;
