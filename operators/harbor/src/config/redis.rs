//! Connections of Harbor's components to Redis.

use std::time::Duration;

use crate::catalogue::{Feature, Refusal, Release};

use super::address::{Address, percent_encoded};
use super::confidential::Confidential;

/// Database indexes of the components in one Redis. They locate the data and never change for existing
/// installations.
pub mod index {
    /// Core: sessions and cache.
    pub const CORE: u8 = 0;
    /// Registry: cache of blob descriptors.
    pub const REGISTRY: u8 = 1;
    /// JobService: job queues.
    pub const JOBSERVICE: u8 = 2;
    /// Trivy: job queue and reports.
    pub const TRIVY: u8 = 5;
    /// Cache layer of Core, shared with JobService.
    pub const CACHE_LAYER: u8 = 7;
}

/// A Redis server, or the Sentinels of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redis {
    /// The addresses; several only with Sentinel.
    pub addresses: Vec<Address>,
    /// The name of the master, if the addresses are Sentinels.
    pub sentinel_master: Option<String>,
    /// The ACL user; `None` for the default user.
    pub username: Option<String>,
    /// The password of Redis. Sentinels are queried without a password, because Harbor cannot authenticate to
    /// them.
    pub password: Option<Confidential>,
    /// Uses TLS. The certificate is verified with the authorities that the component trusts.
    pub tls: bool,
}

impl Redis {
    /// Returns the URL of one database, in the form that Core, JobService, the exporter and Trivy read.
    pub fn url(&self, database: u8) -> Confidential {
        self.url_with(database, None)
    }

    /// Returns the URL with the time after which Core closes an idle connection.
    pub fn url_with_idle_timeout(&self, database: u8, idle: Duration) -> Confidential {
        self.url_with(database, Some(idle))
    }

    fn url_with(&self, database: u8, idle: Option<Duration>) -> Confidential {
        let scheme = match (self.tls, &self.sentinel_master) {
            (false, None) => "redis",
            (true, None) => "rediss",
            (false, Some(_)) => "redis+sentinel",
            (true, Some(_)) => "rediss+sentinel",
        };
        let user = self.username.as_deref().map(percent_encoded).unwrap_or_default();
        let credentials = match &self.password {
            Some(password) => format!("{user}:{}@", percent_encoded(password.expose())),
            None if !user.is_empty() => format!("{user}@"),
            None => String::new(),
        };
        let master = self.sentinel_master.as_deref().map(percent_encoded).map(|name| format!("/{name}"));
        let query = idle.map(|idle| format!("?idle_timeout_seconds={}", idle.as_secs()));
        Confidential::new(format!(
            "{scheme}://{credentials}{}{}/{database}{}",
            Address::list(&self.addresses),
            master.unwrap_or_default(),
            query.unwrap_or_default(),
        ))
    }

    /// Returns the reason why a release cannot use this Redis, if it cannot. `field` is the path of its field
    /// in the spec.
    pub(crate) fn refuse(&self, release: &Release, field: &str) -> Option<Refusal> {
        let refusal = |what: &str, since: &str| {
            Refusal::new(
                field,
                Address::list(&self.addresses),
                format!("Harbor {} cannot use Redis {what}: this was added in {since}", release.version()),
                format!("upgrade to {since} or newer, or use a Redis without it"),
            )
        };
        if self.tls && !release.has(Feature::RegistryRedisTls) {
            return Some(refusal("over TLS", "2.13"));
        }
        if self.username.is_some() && !release.has(Feature::RegistryRedisUsername) {
            return Some(refusal("with the name of a user", "2.15"));
        }
        if self.addresses.len() > 1 && self.sentinel_master.is_none() {
            return Some(Refusal::new(
                field,
                Address::list(&self.addresses),
                "Harbor connects to one Redis, or to several Sentinels; it cannot use Redis Cluster",
                "name one address, or set sentinelMasterSet",
            ));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redis() -> Redis {
        Redis {
            addresses: vec![Address::new("redis", 6379)],
            sentinel_master: None,
            username: None,
            password: None,
            tls: false,
        }
    }

    fn url(redis: &Redis, database: u8) -> String {
        redis.url(database).expose().to_owned()
    }

    #[test]
    fn each_kind_of_redis_has_its_url() {
        let password = Some(Confidential::from("p@ss:w/rd?#[%]+ é"));
        let sentinels = vec![Address::new("s1", 26379), Address::new("s2", 26379)];
        assert_eq!(url(&redis(), index::CORE), "redis://redis:6379/0");
        assert_eq!(
            url(&Redis { password: password.clone(), ..redis() }, index::JOBSERVICE),
            "redis://:p%40ss%3Aw%2Frd%3F%23%5B%25%5D%2B%20%C3%A9@redis:6379/2"
        );
        assert_eq!(
            url(
                &Redis { tls: true, username: Some("har bor".into()), password: Some("x".into()), ..redis() },
                5
            ),
            "rediss://har%20bor:x@redis:6379/5"
        );
        let sentinel = Redis { addresses: sentinels, sentinel_master: Some("mymaster".into()), ..redis() };
        assert_eq!(url(&sentinel, 0), "redis+sentinel://s1:26379,s2:26379/mymaster/0");
        let secure = Redis { tls: true, password: Some("x".into()), ..sentinel };
        assert_eq!(url(&secure, 1), "rediss+sentinel://:x@s1:26379,s2:26379/mymaster/1");
        assert_eq!(
            redis().url_with_idle_timeout(0, Duration::from_secs(30)).expose(),
            "redis://redis:6379/0?idle_timeout_seconds=30"
        );
        assert_eq!(
            url(&Redis { addresses: vec![Address::new("::1", 1)], ..redis() }, 0),
            "redis://[::1]:1/0"
        );
    }

    #[test]
    fn an_unsupported_redis_is_refused_with_the_release_that_supports_it() {
        let release = |text: &str| Release::of(&text.parse().unwrap()).unwrap();
        let field = "spec.redis";
        assert_eq!(redis().refuse(&release("2.6.2"), field), None);
        let tls = Redis { tls: true, ..redis() };
        assert!(tls.refuse(&release("2.12.4"), field).unwrap().remedy.contains("2.13"));
        assert_eq!(tls.refuse(&release("2.13.0"), field), None);
        let user = Redis { username: Some("harbor".into()), ..redis() };
        assert!(user.refuse(&release("2.14.4"), field).unwrap().remedy.contains("2.15"));
        assert_eq!(user.refuse(&release("2.15.0"), field), None);
        let cluster = Redis { addresses: vec![Address::new("a", 1), Address::new("b", 1)], ..redis() };
        assert!(cluster.refuse(&release("2.15.2"), field).unwrap().reason.contains("Redis Cluster"));
    }
}
