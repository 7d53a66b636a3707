//! Live objects: what of them is kept in memory, whether they are ready, and what keeps their pods from running.
//!
//! This room knows no plan. It decodes objects of the cluster into small shapes and answers questions about them, without
//! I/O of its own.

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
