//! Dependencies that other operators run: Redis by Spotahome's operator, PostgreSQL by Zalando's, MinIO by
//! its own.
//!
//! Names and contents of their objects are those of the upstream operator. If a kind is not installed, the
//! plan waits for it. A dependency is ready when what runs is healthy, not as soon as its object exists.
//! Databases and tenants are retained when the HarborCluster is deleted, because their operators would delete
//! the data with them.

use serde::de::DeserializeOwned;
use windlass::{Kind, Known, Object, PlanError};

mod ingress;
mod kinds;
mod minio;
mod postgres;
mod redis;

pub use kinds::{Postgresql, RedisFailover, Tenant};
pub(crate) use minio::storage;
pub(crate) use postgres::database;
pub(crate) use redis::cache;

/// Returns an observed object, or `None` if it does not exist.
fn found<K: Kind + DeserializeOwned>(observed: Known<Option<Object<K>>>) -> Result<Option<K>, PlanError> {
    Ok(observed.or_wait()?.and_then(|object| object.get()))
}
