//! Tests of the `windlass` program from outside: `up`, `down` and `testenv`.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod basics;
mod program;
mod safety;
