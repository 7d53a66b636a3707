//! What controller-runtime is to Go, for Rust.

pub mod queue;
