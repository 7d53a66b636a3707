//! Redis servers and connections to them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::GoDuration;
use super::pattern;

/// Redis server, or the Sentinels in front of one, with credentials.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisHost {
    /// Host name of the Redis server. Several Sentinels are separated by commas, each optionally with
    /// `:port`.
    #[schemars(length(min = 1))]
    pub host: String,
    /// Port of Redis. Default: 6379, or 26379 if `sentinelMasterSet` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub port: Option<i32>,
    /// Name of the master set that the Sentinels monitor. If unset, `host` is a Redis server itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentinel_master_set: Option<String>,
    /// Name of the Secret with the Redis password, in key `redis-password`. If unset, no password is sent.
    /// Sentinels are always asked without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub password_ref: Option<String>,
    /// Name of the Secret with the CA certificate of the Redis server, in key `ca.crt`. If set, the
    /// connection uses TLS, which needs Harbor 2.13 or newer: an older Harbor with this field is rejected. If
    /// unset, the connection is not encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: Option<String>,
}

impl RedisHost {
    /// Returns the port, with the default applied.
    pub fn port(&self) -> i32 {
        let usual = if self.sentinel_master_set.is_some() { 26379 } else { 6379 };
        self.port.unwrap_or(usual)
    }

    /// Returns a connection to the database with the given number.
    pub fn database(&self, number: i32) -> RedisConnection {
        RedisConnection { server: self.clone(), database: number }
    }
}

/// Redis database numbers of the components. They never change: data in another database would be lost.
pub(crate) mod database {
    /// Redis database of Core.
    pub(crate) const CORE: i32 = 0;
    /// Redis database of the registry.
    pub(crate) const REGISTRY: i32 = 1;
    /// Redis database of JobService.
    pub(crate) const JOB_SERVICE: i32 = 2;
    /// Redis database of ChartMuseum.
    pub(crate) const CHART_MUSEUM: i32 = 3;
    /// Redis database of Trivy.
    pub(crate) const TRIVY: i32 = 5;
}

/// Connection to one database of a Redis server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisConnection {
    /// Redis server and credentials.
    #[serde(flatten)]
    pub server: RedisHost,
    /// Number of the Redis database, 0 to 8. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 8))]
    pub database: i32,
}

/// Redis connection with an idle timeout.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisWithIdleTimeout {
    /// Server, credentials and database number.
    #[serde(flatten)]
    pub connection: RedisConnection,
    /// Idle time after which a connection is closed, as a Go duration in whole seconds
    /// (`idle_timeout_seconds` of Harbor). Default: `30s`.
    #[serde(default = "half_a_minute")]
    pub idle_timeout: GoDuration,
}

/// Redis connection of the job queue.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisPool {
    /// Server, credentials and database number.
    #[serde(flatten)]
    pub connection: RedisConnection,
    /// Key prefix of the job queue (`redis_pool.namespace` of JobService). Default:
    /// `jobservice::<namespace>::<name>`. Queued jobs under another prefix are not found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Idle time after which a connection is closed, as a Go duration in whole seconds (`idle_timeout_second`
    /// of JobService). Default: `30s`.
    #[serde(default = "half_a_minute")]
    pub idle_timeout: GoDuration,
}

pub(super) fn half_a_minute() -> GoDuration {
    "30s".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unset_redis_port_is_the_default_port() {
        let server = RedisHost { host: "redis".into(), ..RedisHost::default() };
        let sentinel = RedisHost { sentinel_master_set: Some("mymaster".into()), ..server.clone() };
        let other = RedisHost { port: Some(7000), ..sentinel.clone() };
        assert_eq!([server.port(), sentinel.port(), other.port()], [6379, 26379, 7000]);
    }
}
