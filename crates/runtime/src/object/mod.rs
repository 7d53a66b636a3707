//! Conditions, finalizers and owner references: the three lists of an object that everybody edits.
//!
//! Everything in here is a pure function over lists that the caller read and will write. The functions keep the rules
//! that are easy to break by hand: a condition keeps its transition time when only its message changes, no finalizer is
//! added to an object that is going, an owner in another namespace is an error and not a deleted child.
//!
//! Nothing in here talks to an API server.

pub mod conditions;
pub mod finalizers;
pub mod owner;
