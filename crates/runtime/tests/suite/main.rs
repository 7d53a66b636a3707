//! Tests of the runtime on a real control plane, or on a scripted server.
//!
//! One binary for all files, so that tests which mostly wait run concurrently: cargo runs one test binary
//! after the other. `cargo test -p windlass-runtime --test suite <file>::` runs the tests of one file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod access_rules;
mod access_services;
mod admin_server;
mod cache_chaos;
mod cache_informer;
mod cache_live;
mod client_calls;
mod client_connections;
mod client_exec;
mod client_live;
mod controller_faults;
mod controller_live;
mod controller_process;
mod events_recorder;
mod fake_api;
mod frozen_connections;
mod leader_election;
mod live;
mod operator;
mod queue_cases;
mod webhook_admission;
mod webhook_conversion;
mod webhook_kit;
mod webhook_rotation;
