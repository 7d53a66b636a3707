//! What controller-runtime is to Go, for Rust.
//!
//! | module | what it gives |
//! | --- | --- |
//! | [`cache`] | one shared watch per kind, decoded into small shapes; reads, indexes, changes |
//! | [`client`] | live reads and all writes, with deadlines, bounded retries and classed errors |
//! | [`key`], [`meta`], [`resource`], [`intern`] | the vocabulary: which object, what it says of itself, which kind, cheap strings |

pub mod cache;
pub mod client;
pub mod intern;
mod jitter;
pub mod key;
pub mod meta;
pub mod resource;
