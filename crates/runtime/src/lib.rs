//! What controller-runtime is to Go, for Rust.
//!
//! | module | what it gives |
//! | --- | --- |
//! | [`cache`] | one shared watch per kind, decoded into small shapes; reads, indexes, changes |
//! | [`client`] | live reads and all writes, with deadlines, bounded retries and classed errors |
//! | [`controller`], [`queue`] | from a change to a reconcile: keys, priorities, backoff, workers, deadlines |
//! | [`events`] | what `kubectl describe` tells of an object's life |
//! | [`leader`] | of many replicas, one works |
//! | [`manager`] | one process: ordered start and stop, signals, readiness |
//! | [`metrics`], [`log`] | what operators of operators look at |
//! | [`object`] | conditions, finalizers, owner references |
//! | [`key`], [`meta`], [`resource`], [`intern`] | the vocabulary: which object, what it says of itself, which kind, cheap strings |

pub mod cache;
pub mod client;
pub mod controller;
pub mod events;
pub mod intern;
mod jitter;
pub mod key;
pub mod leader;
pub mod log;
pub mod manager;
pub mod meta;
pub mod metrics;
pub mod object;
pub mod queue;
pub mod resource;
