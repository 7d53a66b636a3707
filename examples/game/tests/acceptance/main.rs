//! The acceptance list of the 2048 game, case by case, on a real control plane.
//!
//! Ids are those of the list of what the Go operator of this API does: `g01` to `g23` for its controller,
//! `h1` to `h8` for its webhooks, `a1` to `a4` for the promises of its README. Where it has a defect, the
//! comment of the test describes the defect, and the test requires the right behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod boundaries;
mod converges;
mod creates;
mod deploy;
mod many;
mod readme;
mod torture;
mod webhooks;
mod world;
