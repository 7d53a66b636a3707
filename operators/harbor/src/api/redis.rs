//! Where Redis is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::GoDuration;
use super::pattern;

/// A Redis server, or the Sentinels that know one, and the password.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisHost {
    /// Its host name; Sentinels may be several, separated by commas.
    #[schemars(length(min = 1))]
    pub host: String,
    /// Its port; 6379 if nothing is said, 26379 for Sentinels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub port: Option<i32>,
    /// The name of the master that the Sentinels know; without it, the host is a server itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentinel_master_set: Option<String>,
    /// The Secret with the password, under redis-password.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub password_ref: Option<String>,
    /// The Secret with the certificate authority of the server, under ca.crt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: Option<String>,
}

impl RedisHost {
    /// The port that it listens on.
    pub fn port(&self) -> i32 {
        let usual = if self.sentinel_master_set.is_some() { 26379 } else { 6379 };
        self.port.unwrap_or(usual)
    }

    /// The database of this number there.
    pub fn database(&self, number: i32) -> RedisConnection {
        RedisConnection { server: self.clone(), database: number }
    }
}

/// The numbers of the databases, which never change: what is in them would be lost.
pub mod database {
    /// Core's.
    pub const CORE: i32 = 0;
    /// The registry's.
    pub const REGISTRY: i32 = 1;
    /// The job service's.
    pub const JOB_SERVICE: i32 = 2;
    /// ChartMuseum's.
    pub const CHART_MUSEUM: i32 = 3;
    /// Trivy's.
    pub const TRIVY: i32 = 5;
}

/// One of Redis' databases.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisConnection {
    /// Where it is.
    #[serde(flatten)]
    pub server: RedisHost,
    /// Its number.
    #[serde(default)]
    #[schemars(range(min = 0, max = 8))]
    pub database: i32,
}

/// A connection that is given up when it has been idle.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisWithIdleTimeout {
    /// Where it is.
    #[serde(flatten)]
    pub connection: RedisConnection,
    /// After which idle time a connection is closed.
    #[serde(default = "half_a_minute")]
    pub idle_timeout: GoDuration,
}

/// The Redis of the job service's queue.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisPool {
    /// Where it is.
    #[serde(flatten)]
    pub connection: RedisConnection,
    /// The prefix of its keys; `jobservice::<namespace>::<name>` if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// After which idle time a connection is closed.
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
    fn a_port_that_is_not_said_is_the_usual_one() {
        let server = RedisHost { host: "redis".into(), ..RedisHost::default() };
        let sentinel = RedisHost { sentinel_master_set: Some("mymaster".into()), ..server.clone() };
        let other = RedisHost { port: Some(7000), ..sentinel.clone() };
        assert_eq!([server.port(), sentinel.port(), other.port()], [6379, 26379, 7000]);
    }
}
