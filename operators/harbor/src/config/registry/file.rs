//! The sections of the registry's `config.yml`.
//!
//! Distribution reads lower-case keys only, and ignores unknown keys.

use std::collections::BTreeMap;

use windlass_operator::yaml::Map;

use crate::catalogue::{Feature, Release};

use super::super::address::Address;
use super::super::goduration::go_duration;
use super::{
    Auth, Cache, Endpoint, HTPASSWD_PATH, Health, HealthCheck, Http, Log, Middleware, Middlewares,
    Notifications, Options, Registry, RegistryRedis, SSL_DIR, TOKEN_BUNDLE_PATH, Validation,
};

pub(super) fn render(registry: &Registry, release: &Release) -> Map {
    Map::new()
        .with("version", "0.1")
        .with("log", log(&registry.log))
        .with("http", http(&registry.http))
        .with_some("reporting", reporting(&registry.reporting))
        .with("storage", storage(registry))
        .with_some("middleware", middlewares(&registry.middlewares))
        .with_some("redis", registry.cache.redis().map(|settings| redis(settings, release)))
        .with(
            "compatibility",
            Map::new().with("schema1", Map::new().with("enabled", registry.schema1.enabled)),
        )
        .with("validation", validation(&registry.validation))
        .with_some("auth", registry.auth.as_ref().map(auth))
        .with("notifications", notifications(&registry.notifications))
        .with("health", health(&registry.health))
}

fn log(log: &Log) -> Map {
    let hooks: Vec<Map> = log
        .hooks
        .iter()
        .map(|hook| {
            Map::new()
                .with("type", &hook.kind)
                .with("levels", &hook.levels)
                .with_some("options", options(&hook.options))
        })
        .collect();
    Map::new()
        .with("accesslog", Map::new().with("disabled", log.access_log_disabled))
        .with("level", level(&log.level))
        .with("formatter", &log.formatter)
        .with_some("fields", (!log.fields.is_empty()).then(|| log.fields.iter().collect::<Map>()))
        .with_some("hooks", (!hooks.is_empty()).then_some(hooks))
}

/// Maps a log level: the registry has no `fatal`, and `warning` has another name.
fn level(level: &str) -> &str {
    match level {
        "warning" => "warn",
        "fatal" => "error",
        other => other,
    }
}

fn http(http: &Http) -> Map {
    let tls = http.tls.then(|| {
        Map::new()
            .with("certificate", format!("{SSL_DIR}/tls.crt"))
            .with("key", format!("{SSL_DIR}/tls.key"))
            .with("minimumtls", "tls1.2")
    });
    let debug = http.debug.as_ref().map(|debug| {
        let metrics = debug.metrics_path.as_ref();
        let prometheus = metrics.map(|path| Map::new().with("enabled", true).with("path", path));
        Map::new().with("addr", format!(":{}", debug.port)).with_some("prometheus", prometheus)
    });
    Map::new()
        .with("net", &http.net)
        .with("addr", ":5000")
        .with_some("host", http.host.as_ref())
        .with_some("prefix", http.prefix.as_ref())
        .with_some("headers", lists(&http.headers))
        .with("http2", Map::new().with("disabled", http.http2_disabled))
        .with("relativeurls", http.relative_urls)
        .with_some("draintimeout", http.drain_timeout.map(go_duration))
        .with_some("tls", tls)
        .with_some("debug", debug)
}

fn lists(headers: &BTreeMap<String, Vec<String>>) -> Option<Map> {
    (!headers.is_empty()).then(|| headers.iter().collect())
}

fn options(options: &Options) -> Option<Map> {
    (!options.is_empty()).then(|| options.iter().map(|(key, value)| (key, value.expose())).collect())
}

fn reporting(reporting: &BTreeMap<String, Options>) -> Option<Map> {
    let reporters: Map =
        reporting.iter().map(|(name, settings)| (name, options(settings).unwrap_or_default())).collect();
    (!reporting.is_empty()).then_some(reporters)
}

fn storage(registry: &Registry) -> Map {
    let cache = match registry.cache {
        Cache::Redis(_) => "redis",
        Cache::InMemory => "inmemory",
    };
    let purging = match &registry.upload_purging {
        Some(purging) => Map::new()
            .with("enabled", true)
            .with("age", go_duration(purging.age))
            .with("interval", go_duration(purging.interval))
            .with("dryrun", purging.dry_run),
        None => Map::new().with("enabled", false),
    };
    let maintenance = Map::new()
        .with("uploadpurging", purging)
        .with("readonly", Map::new().with("enabled", registry.read_only));
    Map::new()
        .with(registry.storage.driver(), registry.storage.parameters())
        .with("cache", Map::new().with("blobdescriptor", cache))
        .with("maintenance", maintenance)
        .with("delete", Map::new().with("enabled", registry.delete))
        .with("redirect", Map::new().with("disable", registry.redirect_disabled))
}

fn middlewares(middlewares: &Middlewares) -> Option<Map> {
    let list = |settings: &[Middleware]| {
        let each = |middleware: &Middleware| {
            Map::new().with("name", &middleware.name).with_some("options", options(&middleware.options))
        };
        (!settings.is_empty()).then(|| settings.iter().map(each).collect::<Vec<_>>())
    };
    let Middlewares { registry, repository, storage } = middlewares;
    let any = !registry.is_empty() || !repository.is_empty() || !storage.is_empty();
    any.then(|| {
        Map::new()
            .with_some("registry", list(registry))
            .with_some("repository", list(repository))
            .with_some("storage", list(storage))
    })
}

fn redis(redis: &RegistryRedis, release: &Release) -> Map {
    let username = redis.server.username.as_ref().filter(|_| release.has(Feature::RegistryRedisUsername));
    Map::new()
        .with("addr", Address::list(&redis.server.addresses))
        .with_some("sentinelMasterSet", redis.server.sentinel_master.as_ref())
        .with_some("username", username)
        .with("db", u32::from(redis.database))
        .with("dialtimeout", go_duration(redis.dial_timeout))
        .with("readtimeout", go_duration(redis.read_timeout))
        .with("writetimeout", go_duration(redis.write_timeout))
        .with(
            "pool",
            Map::new()
                .with("maxidle", redis.max_idle)
                .with("maxactive", redis.max_active)
                .with("idletimeout", go_duration(redis.idle_timeout)),
        )
}

fn validation(validation: &Validation) -> Map {
    let some = |list: &Vec<String>| (!list.is_empty()).then(|| list.clone());
    let (allow, deny) = (some(&validation.allow), some(&validation.deny));
    let manifests = (allow.is_some() || deny.is_some())
        .then(|| Map::new().with("urls", Map::new().with_some("allow", allow).with_some("deny", deny)));
    Map::new().with("disabled", validation.disabled).with_some("manifests", manifests)
}

fn auth(auth: &Auth) -> Map {
    match auth {
        Auth::Silly { realm, service } => {
            Map::new().with("silly", Map::new().with("realm", realm).with("service", service))
        }
        Auth::Token { realm, service, issuer, autoredirect } => Map::new().with(
            "token",
            Map::new()
                .with("realm", realm)
                .with("service", service)
                .with("issuer", issuer)
                .with("rootcertbundle", TOKEN_BUNDLE_PATH)
                .with("autoredirect", *autoredirect),
        ),
        Auth::Htpasswd { realm } => {
            Map::new().with("htpasswd", Map::new().with("realm", realm).with("path", HTPASSWD_PATH))
        }
    }
}

fn notifications(notifications: &Notifications) -> Map {
    let endpoints: Vec<Map> = notifications.endpoints.iter().map(endpoint).collect();
    Map::new()
        .with("events", Map::new().with("includereferences", notifications.include_references))
        .with_some("endpoints", (!endpoints.is_empty()).then_some(endpoints))
}

fn endpoint(endpoint: &Endpoint) -> Map {
    let some = |list: &Vec<String>| (!list.is_empty()).then(|| list.clone());
    let (media, actions) = (some(&endpoint.ignore_media_types), some(&endpoint.ignore_actions));
    let ignore = (media.is_some() || actions.is_some())
        .then(|| Map::new().with_some("mediatypes", media).with_some("actions", actions));
    Map::new()
        .with("name", &endpoint.name)
        .with("disabled", endpoint.disabled)
        .with("url", &endpoint.url)
        .with_some("headers", lists(&endpoint.headers))
        .with("timeout", go_duration(endpoint.timeout))
        .with("threshold", endpoint.threshold)
        .with("backoff", go_duration(endpoint.backoff))
        .with_some("ignoredmediatypes", some(&endpoint.ignored_media_types))
        .with_some("ignore", ignore)
}

fn health(health: &Health) -> Map {
    let check = |map: Map, settings: &HealthCheck| {
        map.with("interval", go_duration(settings.interval)).with("threshold", settings.threshold)
    };
    let storage = match &health.storage {
        Some(settings) => check(Map::new().with("enabled", true), settings),
        None => Map::new().with("enabled", false),
    };
    let files: Vec<Map> = health
        .files
        .iter()
        .map(|(file, interval)| Map::new().with("file", file).with("interval", go_duration(*interval)))
        .collect();
    let http: Vec<Map> = health
        .http
        .iter()
        .map(|settings| {
            let map = Map::new()
                .with("uri", &settings.uri)
                .with_some("headers", lists(&settings.headers))
                .with("statuscode", settings.status)
                .with("timeout", go_duration(settings.timeout));
            check(map, &settings.check)
        })
        .collect();
    let tcp: Vec<Map> = health
        .tcp
        .iter()
        .map(|settings| {
            let map =
                Map::new().with("addr", &settings.address).with("timeout", go_duration(settings.timeout));
            check(map, &settings.check)
        })
        .collect();
    Map::new()
        .with("storagedriver", storage)
        .with_some("file", (!files.is_empty()).then_some(files))
        .with_some("http", (!http.is_empty()).then_some(http))
        .with_some("tcp", (!tcp.is_empty()).then_some(tcp))
}
