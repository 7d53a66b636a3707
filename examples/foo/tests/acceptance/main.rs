//! The acceptance list of the sample controller, case by case, on a real control plane.
//!
//! Ids (f01 to f20) are those of the list of what the Kubernetes project's sample controller does. Where it
//! has a defect, the comment of the test describes the defect, and the test requires the right behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking
#![allow(clippy::disallowed_names)] // here, foo is a name: that of a kind

mod boundaries;
mod command_line;
mod converges;
mod creates;
mod deploy;
mod many;
mod torture;
mod world;
