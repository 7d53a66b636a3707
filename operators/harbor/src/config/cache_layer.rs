//! The cache layer of Core: projects, repositories and artifacts in Redis. JobService shares it, because its
//! jobs change what is cached.

use std::time::Duration;

use crate::catalogue::{Feature, Release};

use super::env::Environment;
use super::redis::{Redis, index};
use super::rendered::Vault;

/// The settings of the cache layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheLayer {
    /// Age at which a cached entry expires, in hours.
    pub expire_hours: u32,
}

impl CacheLayer {
    /// Adds the variables of a component. `redis` is the server of Core.
    pub(super) fn environment(
        self,
        environment: &mut Environment,
        vault: &mut Vault<'_>,
        release: &Release,
        redis: &Redis,
        idle: Duration,
    ) {
        environment.set("CACHE_ENABLED", true).set("CACHE_EXPIRE_HOURS", self.expire_hours);
        if release.has(Feature::CacheLayerRedis) {
            let name = "_REDIS_URL_CACHE_LAYER";
            let url = redis.url_with_idle_timeout(index::CACHE_LAYER, idle);
            environment.secret(name, &vault.put(name, url));
        }
    }
}
