//! Real programs for the tests: where they come from, how they are started, and how they are asked.

pub(crate) mod http;
pub(crate) mod nginx;
pub(crate) mod packages;
pub(crate) mod postgres;
pub(crate) mod process;
pub(crate) mod redis;
pub(crate) mod registry;
pub(crate) mod s3;
pub(crate) mod tls;
