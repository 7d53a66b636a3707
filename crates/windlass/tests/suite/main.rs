//! Plans on a real control plane.
//!
//! One binary for all files, so that tests which mostly wait run beside each other: cargo runs one test
//! binary after the other. `cargo test -p windlass --test suite <file>::` runs the tests of one file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod deletion;
mod director;
mod director_torture;
mod drift;
mod faults;
mod inputs;
mod kit;
mod mending;
mod needs;
mod operation;
mod plan_order;
mod quiet;
mod refusals;
mod renewal;
mod safety;
mod seam_data;
mod seam_plan;
mod seam_status;
mod torture;
