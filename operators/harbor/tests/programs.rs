//! Feeds the rendered configuration to the programs that read it: distribution, nginx, PostgreSQL and Redis
//! from Debian's packages.
//!
//! All servers listen on 127.0.0.1, on ports of their own, and end with their test. Missing programs are
//! fetched into the project's cache.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)] // a test fails by panicking

#[path = "programs/drawn.rs"]
mod drawn;
#[path = "kit/mod.rs"]
mod kit;
#[path = "programs/nginx.rs"]
mod nginx;
#[path = "programs/postgres.rs"]
mod postgres;
#[path = "programs/redis.rs"]
mod redis;
#[path = "programs/registry.rs"]
mod registry;
mod sample;

use std::time::Duration;

use harbor_operator::catalogue::Release;
use harbor_operator::config::redis::Redis;
use harbor_operator::config::{Address, Confidential};

const VERSIONS: [&str; 4] = ["2.6.2", "2.8.6", "2.9.5", "2.15.2"];

/// Every printable character of ASCII, and some that are not.
fn every_character() -> String {
    (' '..='~').chain(['é', '→', '😀']).collect()
}

fn release(version: &str) -> Release {
    Release::of(&version.parse().unwrap()).unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn redis_at(port: u16, password: Option<&str>) -> Redis {
    Redis {
        addresses: vec![Address::new("127.0.0.1", port)],
        sentinel_master: None,
        username: None,
        password: password.map(Confidential::from),
        tls: false,
    }
}
