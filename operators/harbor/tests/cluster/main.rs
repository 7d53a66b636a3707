//! HarborClusters on a real control plane, with pods that only say that they run, under exactly the rights
//! that the manifests grant.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

#[path = "../harbor/world.rs"]
#[allow(dead_code)] // what Harbors alone need
mod world;

mod built_in;
mod delegated;
mod external;
mod others;
mod sample;
mod theirs;
