//! The operator as a program and as an installation: what its user says to it, what a cluster grants it, and
//! what it survives.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod command_line;
mod defects;
mod deploy;
mod docs;
#[path = "../cluster/sample.rs"]
#[allow(dead_code)] // it is made for more
mod samples;
mod settings;
mod torture;
mod trouble;
mod uninstall;
#[path = "../harbor/world.rs"]
#[allow(dead_code)] // it is made for more
mod world;
