//! Live objects: the part of them that is kept in memory, their readiness, and problems of their pods.
//!
//! This module does not know plans. It decodes objects of the cluster into small shapes and answers questions
//! about them, without I/O.

pub(crate) mod content;
pub(crate) mod kind;
mod known;
mod object;
pub mod ownership;
pub(crate) mod pods;
pub mod readiness;
pub(crate) mod watched;

pub use self::kind::Kind;
pub use self::known::Known;
pub use self::object::{
    Address, Live, LiveCondition, LiveSpec, LiveStatus, LoadBalancer, RollingUpdate, SpecFields,
    StatusFields, UpdateStrategy,
};
pub(crate) use self::object::{AsLive, Bare, LiveRef};
pub use self::pods::LONGEST_QUOTE;
