//! Parts that other operators run: Redis by that of RedisFailovers, PostgreSQL by Zalando's, MinIO by its own.
//!
//! Promises: their objects are named and filled as they always were; one of a kind that is not installed is waited for, and goes on when
//! it is; a part is ready when what runs is healthy, and not because its object is there. Databases and tenants outlive the HarborCluster,
//! since their operators would take the data with them.

use serde::de::DeserializeOwned;
use windlass::{Kind, Known, Object, PlanError};

mod ingress;
mod kinds;
mod minio;
mod postgres;
mod redis;

pub use kinds::{Postgresql, RedisFailover, Tenant};
pub use minio::storage;
pub use postgres::database;
pub use redis::cache;

/// An object that was observed, if it exists.
fn found<K: Kind + DeserializeOwned>(observed: Known<Option<Object<K>>>) -> Result<Option<K>, PlanError> {
    Ok(observed.or_wait()?.and_then(|object| object.get()))
}
