//! ChartMuseum, to Harbor 2.7: `config.yaml`, and its storage by environment.

use std::time::Duration;

use windlass_operator::yaml::{Map, Style};

use super::address::Address;
use super::env::{Env, EnvValue, Environment, SecretKey};
use super::goduration::go_duration;
use super::redis::Redis;
use super::rendered::Rendered;

/// The key of `config.yaml` in the ConfigMap.
pub const CONFIG_KEY: &str = "config.yaml";
/// Where the ConfigMap is mounted.
pub const CONFIG_DIR: &str = "/etc/chartmuseum";
/// Where the certificate of internal TLS is mounted.
pub const SSL_DIR: &str = "/etc/chartmuseum/ssl";
/// Where the charts are, if they are files.
pub const STORAGE_DIR: &str = "/mnt/chartstorage";
/// Where the key of Google's storage is mounted.
pub const GCS_KEY_PATH: &str = "/etc/gcs/gcs-key.json";
/// Where the certificate of the issuer of bearer tokens is mounted.
pub const BEARER_CERT_PATH: &str = "/etc/chartmuseum/auth-certificates/tls.crt";

/// What ChartMuseum is to be told.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools)] // its settings are switches
pub struct ChartMuseum {
    /// Whether the components speak TLS among themselves.
    pub tls: bool,
    /// How long to read a request.
    pub read_timeout: Option<Duration>,
    /// How long to write an answer.
    pub write_timeout: Option<Duration>,
    /// The pages of which host may ask.
    pub cors_allow_origin: Option<String>,
    /// Whether anybody may read.
    pub anonymous_get: bool,
    /// The user and the password of those who may write.
    pub basic_auth: Option<(SecretKey, SecretKey)>,
    /// Tokens instead: where they are to be had, and for what.
    pub bearer: Option<(String, String)>,
    /// Whether a chart may be written over.
    pub allow_overwrite: bool,
    /// Whether only semantic versions are accepted.
    pub only_semver2: bool,
    /// The URL in the index, if it is absolute.
    pub chart_url: Option<String>,
    /// How many levels of names there are; none for any number.
    pub depth: Option<u32>,
    /// How many charts are indexed at a time; 0 for no limit.
    pub index_limit: u32,
    /// How old the index may be.
    pub timestamp_tolerance: Duration,
    /// How many charts there may be; 0 for no limit.
    pub max_storage_objects: i64,
    /// How large a chart may be.
    pub max_upload_size: i64,
    /// The name of the form's field with the chart.
    pub chart_field: String,
    /// The name of the form's field with the provenance.
    pub provenance_field: String,
    /// What it does not do.
    pub disable: Disable,
    /// Whether everything is logged.
    pub debug: bool,
    /// Whether questions after its health are logged.
    pub log_health: bool,
    /// Whether the log is JSON.
    pub log_json: bool,
    /// Whether latencies are logged as whole numbers.
    pub log_latency_integer: bool,
    /// The cache of the index.
    pub cache: Option<ChartCache>,
    /// Where the charts are.
    pub storage: ChartStorage,
}

/// What ChartMuseum does not do.
#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools)] // its settings are switches
pub struct Disable {
    /// Its API.
    pub api: bool,
    /// Deleting.
    pub delete: bool,
    /// Writing over by force.
    pub force_overwrite: bool,
    /// Metrics.
    pub metrics: bool,
    /// The files with its state.
    pub statefiles: bool,
}

/// The cache of the index.
#[derive(Debug, Clone)]
pub struct ChartCache {
    /// Where. The password in it is not used: ChartMuseum takes it from the next.
    pub server: Redis,
    /// The database.
    pub database: u8,
    /// The password.
    pub password: Option<SecretKey>,
}

/// The store of the charts: a driver, and the variables that ChartMuseum reads its parameters from.
#[derive(Debug, Clone)]
pub struct ChartStorage(Vec<Env>);

impl ChartStorage {
    /// A driver without parameters.
    pub fn new(driver: &str) -> Self {
        Self(Vec::new()).with("STORAGE", driver)
    }

    /// Files, below a path in the volume. The volume is mounted by this path too, so that charts are below it twice.
    pub fn files(path: Option<&str>) -> Self {
        Self::new("local").with("STORAGE_LOCAL_ROOTDIR", joined(STORAGE_DIR, path.unwrap_or_default()))
    }

    /// Adds a variable.
    #[must_use]
    pub fn with(self, variable: &str, value: impl Into<String>) -> Self {
        self.variable(variable, EnvValue::Literal(value.into()))
    }

    /// Adds a variable, if there is a value for it.
    #[must_use]
    pub fn with_some(self, variable: &str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.with(variable, value),
            None => self,
        }
    }

    /// Adds the variable of the path in an object store, from the prefix that the user has given.
    #[must_use]
    pub fn below(self, variable: &str, prefix: Option<&str>) -> Self {
        self.with(variable, charts_below(prefix))
    }

    /// Adds a variable from a Secret, if there is one.
    #[must_use]
    pub fn secret(self, variable: &str, key: Option<SecretKey>) -> Self {
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

/// Renders ChartMuseum.
pub fn render(charts: &ChartMuseum) -> Rendered {
    let mut environment = Environment::default();
    environment
        .set("CONFIG", format!("{CONFIG_DIR}/{CONFIG_KEY}"))
        .set("STORAGE_TIMESTAMP_TOLERANCE", go_duration(charts.timestamp_tolerance))
        .set_some("CHART_URL", charts.chart_url.as_ref());
    if let Some(given) = &charts.cache {
        cache(&mut environment, given);
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

/// The keys are those that ChartMuseum looks for; it takes no notice of others. No authority is named beside the certificate: with one, ChartMuseum
/// would ask its clients for certificates of their own.
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

/// By environment, as Harbor's own installer has it: Sentinels are an addition of Harbor's.
fn cache(environment: &mut Environment, cache: &ChartCache) {
    environment
        .set("CACHE", if cache.server.sentinel_master.is_some() { "redis_sentinel" } else { "redis" })
        .set_some("CACHE_REDIS_MASTERNAME", cache.server.sentinel_master.as_ref())
        .set("CACHE_REDIS_ADDR", Address::list(&cache.server.addresses))
        .set("CACHE_REDIS_DB", cache.database)
        .secret_some("CACHE_REDIS_PASSWORD", cache.password.as_ref());
}

/// Where charts are in an object store, beside the images.
fn charts_below(prefix: Option<&str>) -> String {
    joined(prefix.unwrap_or_default(), "chart_storage")
}

/// Two paths as one, without doubled or trailing slashes.
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
    fn charts_are_where_they_always_were() {
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
