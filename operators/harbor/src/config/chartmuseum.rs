//! ChartMuseum, up to Harbor 2.7: `config.yaml`, and its storage in the environment.

use std::time::Duration;

use windlass_operator::yaml::{Map, Style};

use super::address::Address;
use super::env::{Env, EnvValue, Environment, SecretKey};
use super::goduration::go_duration;
use super::redis::Redis;
use super::rendered::Rendered;

/// The key of `config.yaml` in the ConfigMap.
pub(crate) const CONFIG_KEY: &str = "config.yaml";
/// Mount path of the ConfigMap.
pub(crate) const CONFIG_DIR: &str = "/etc/chartmuseum";
/// Mount path of the internal TLS certificate.
pub(crate) const SSL_DIR: &str = "/etc/chartmuseum/ssl";
/// Mount path of the volume with charts.
pub(crate) const STORAGE_DIR: &str = "/mnt/chartstorage";
/// Mount path of the Google Cloud Storage key.
pub(crate) const GCS_KEY_PATH: &str = "/etc/gcs/gcs-key.json";
/// Mount path of the certificate of the issuer of bearer tokens.
pub(crate) const BEARER_CERT_PATH: &str = "/etc/chartmuseum/auth-certificates/tls.crt";

/// The settings of ChartMuseum.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools)] // its settings are switches
pub(crate) struct ChartMuseum {
    /// Enables internal TLS between the components.
    pub tls: bool,
    /// Timeout for reading a request.
    pub read_timeout: Option<Duration>,
    /// Timeout for writing a response.
    pub write_timeout: Option<Duration>,
    /// Allowed origin of cross-origin requests (CORS).
    pub cors_allow_origin: Option<String>,
    /// Allows reads without authentication.
    pub anonymous_get: bool,
    /// User name and password for writes.
    pub(crate) basic_auth: Option<(SecretKey, SecretKey)>,
    /// Bearer tokens instead of a password: their realm and service.
    pub bearer: Option<(String, String)>,
    /// Allows overwriting a chart.
    pub allow_overwrite: bool,
    /// Accepts semantic versions only.
    pub only_semver2: bool,
    /// Base URL in the index, if URLs are absolute.
    pub chart_url: Option<String>,
    /// Number of levels of repository names; `None` for any number.
    pub depth: Option<u32>,
    /// Number of charts that are indexed in parallel; 0 for no limit.
    pub index_limit: u32,
    /// Maximum age of the index.
    pub timestamp_tolerance: Duration,
    /// Maximum number of charts; 0 for no limit.
    pub max_storage_objects: i64,
    /// Maximum size of a chart in bytes.
    pub max_upload_size: i64,
    /// Name of the form field with the chart.
    pub chart_field: String,
    /// Name of the form field with the provenance file.
    pub provenance_field: String,
    /// Features that are disabled.
    pub disable: Disable,
    /// Logs at debug level.
    pub debug: bool,
    /// Logs health checks.
    pub log_health: bool,
    /// Logs in JSON format.
    pub log_json: bool,
    /// Logs latencies as integers.
    pub log_latency_integer: bool,
    /// The cache of the index, if one is used.
    pub(crate) cache: Option<ChartCache>,
    /// The storage of charts.
    pub(crate) storage: ChartStorage,
}

/// Features of ChartMuseum that can be disabled.
#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools)] // its settings are switches
pub(crate) struct Disable {
    /// Disables the API.
    pub api: bool,
    /// Disables the deletion of charts.
    pub delete: bool,
    /// Disables forced overwrites.
    pub force_overwrite: bool,
    /// Disables the metrics endpoint.
    pub metrics: bool,
    /// Disables state files.
    pub statefiles: bool,
}

/// The Redis cache of the index.
#[derive(Debug, Clone)]
pub(crate) struct ChartCache {
    /// The server. Its password is not used: ChartMuseum reads the `password` below.
    pub server: Redis,
    /// The index of the database in Redis.
    pub database: u8,
    /// The password of Redis.
    pub password: Option<SecretKey>,
}

/// The storage of charts: a driver, and the environment variables with its parameters.
#[derive(Debug, Clone)]
pub(crate) struct ChartStorage(Vec<Env>);

impl ChartStorage {
    /// Returns a driver without parameters.
    pub(crate) fn new(driver: &str) -> Self {
        Self(Vec::new()).with("STORAGE", driver)
    }

    /// Returns the local driver, below a path of the volume. The volume is mounted with this path too, so the
    /// path occurs twice below the root.
    pub(crate) fn files(path: Option<&str>) -> Self {
        Self::new("local").with("STORAGE_LOCAL_ROOTDIR", joined(STORAGE_DIR, path.unwrap_or_default()))
    }

    /// Adds a variable.
    #[must_use]
    pub(crate) fn with(self, variable: &str, value: impl Into<String>) -> Self {
        self.variable(variable, EnvValue::Literal(value.into()))
    }

    /// Adds a variable if it has a value.
    #[must_use]
    pub(crate) fn with_some(self, variable: &str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.with(variable, value),
            None => self,
        }
    }

    /// Adds the variable with the path in an object store, from the prefix of the spec.
    #[must_use]
    pub(crate) fn below(self, variable: &str, prefix: Option<&str>) -> Self {
        self.with(variable, charts_below(prefix))
    }

    /// Adds a variable from a Secret if one is given.
    #[must_use]
    pub(crate) fn secret(self, variable: &str, key: Option<SecretKey>) -> Self {
        match key {
            Some(key) => self.variable(variable, EnvValue::Secret(key)),
            None => self,
        }
    }

    fn variable(mut self, name: &str, value: EnvValue) -> Self {
        self.0.push(Env { name: name.to_owned(), value });
        self
    }
}

/// Renders the configuration of ChartMuseum.
pub(crate) fn render(charts: &ChartMuseum) -> Rendered {
    let mut environment = Environment::default();
    environment
        .set("CONFIG", format!("{CONFIG_DIR}/{CONFIG_KEY}"))
        .set("STORAGE_TIMESTAMP_TOLERANCE", go_duration(charts.timestamp_tolerance))
        .set_some("CHART_URL", charts.chart_url.as_ref());
    if let Some(settings) = &charts.cache {
        cache(&mut environment, settings);
    }
    if let Some((user, password)) = &charts.basic_auth {
        environment.secret("BASIC_AUTH_USER", user).secret("BASIC_AUTH_PASS", password);
    }
    environment.extend(&charts.storage.0);
    Rendered {
        config: [(CONFIG_KEY.to_owned(), file(charts).document(Style::File))].into(),
        env: environment.finish(),
        ..Rendered::default()
    }
}

/// Returns the configuration file. ChartMuseum ignores unknown keys. No certificate authority is set beside
/// the certificate, because ChartMuseum would then require client certificates.
fn file(charts: &ChartMuseum) -> Map {
    let tls = charts.tls.then(|| {
        Map::new().with("cert", format!("{SSL_DIR}/tls.crt")).with("key", format!("{SSL_DIR}/tls.key"))
    });
    let bearer = charts.bearer.as_ref();
    let cors = charts.cors_allow_origin.as_ref().map(|origin| Map::new().with("alloworigin", origin));
    Map::new()
        .with("port", if charts.tls { 8443_u16 } else { 8080 })
        .with_some("tls", tls)
        .with_some("readtimeout", charts.read_timeout.map(whole_seconds))
        .with_some("writetimeout", charts.write_timeout.map(whole_seconds))
        .with_some("cors", cors)
        .with("contextpath", "")
        .with("authanonymousget", charts.anonymous_get)
        .with_some("bearerauth", bearer.map(|_| true))
        .with_some("authrealm", bearer.map(|(realm, _)| realm))
        .with_some("authservice", bearer.map(|(_, service)| service))
        .with_some("authcertpath", bearer.map(|_| BEARER_CERT_PATH))
        .with("allowoverwrite", charts.allow_overwrite)
        .with("enforce-semver2", charts.only_semver2)
        .with_some("depth", charts.depth)
        .with("depthdynamic", charts.depth.is_none())
        .with("indexlimit", charts.index_limit)
        .with("maxstorageobjects", charts.max_storage_objects)
        .with("maxuploadsize", charts.max_upload_size)
        .with("chartpostformfieldname", &charts.chart_field)
        .with("provpostformfieldname", &charts.provenance_field)
        .with("disableapi", charts.disable.api)
        .with("disabledelete", charts.disable.delete)
        .with("disableforceoverwrite", charts.disable.force_overwrite)
        .with("disablemetrics", charts.disable.metrics)
        .with("disablestatefiles", charts.disable.statefiles)
        .with("debug", charts.debug)
        .with("loghealth", charts.log_health)
        .with("logjson", charts.log_json)
        .with("loglatencyinteger", charts.log_latency_integer)
}

fn whole_seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX).max(1)
}

/// Sets the cache in the environment, as Harbor's installer does: Sentinel support is an addition of Harbor.
fn cache(environment: &mut Environment, cache: &ChartCache) {
    environment
        .set("CACHE", if cache.server.sentinel_master.is_some() { "redis_sentinel" } else { "redis" })
        .set_some("CACHE_REDIS_MASTERNAME", cache.server.sentinel_master.as_ref())
        .set("CACHE_REDIS_ADDR", Address::list(&cache.server.addresses))
        .set("CACHE_REDIS_DB", cache.database)
        .secret_some("CACHE_REDIS_PASSWORD", cache.password.as_ref());
}

/// Returns the path of charts in an object store, beside the images.
fn charts_below(prefix: Option<&str>) -> String {
    joined(prefix.unwrap_or_default(), "chart_storage")
}

/// Joins two paths without duplicate or trailing slashes.
fn joined(one: &str, other: &str) -> String {
    let root = if one.starts_with('/') || (one.is_empty() && other.starts_with('/')) { "/" } else { "" };
    let parts: Vec<&str> =
        one.split('/').chain(other.split('/')).filter(|part| !part.is_empty() && *part != ".").collect();
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_paths_never_change() {
        for (prefix, path) in [
            (None, "chart_storage"),
            (Some(""), "chart_storage"),
            (Some("/"), "/chart_storage"),
            (Some("/azure/harbor/charts"), "/azure/harbor/charts/chart_storage"),
            (Some("a//b/"), "a/b/chart_storage"),
        ] {
            assert_eq!(charts_below(prefix), path);
        }
        assert_eq!(joined(STORAGE_DIR, ""), "/mnt/chartstorage");
        assert_eq!(joined(STORAGE_DIR, "/team/a/"), "/mnt/chartstorage/team/a");
    }
}
