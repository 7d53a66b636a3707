//! Converts connections in specs (Redis, PostgreSQL, tracing, HTTP proxies) into the inputs of the renderers.
//!
//! Nothing here depends on a particular component.

use windlass::PlanError;

use crate::api;
use crate::api::component::{Served, Tls};
use crate::api::observe::{JaegerMode, TraceProvider};
use crate::catalogue::{Feature, Release, refuse_ignored};
use crate::config::cache_layer::CacheLayer;
use crate::config::database::{Database, Pool, SslMode};
use crate::config::outbound::Outbound;
use crate::config::redis::Redis;
use crate::config::telemetry::{Metrics, Trace, TraceReceiver};
use crate::config::{Address, Confidential, SecretKey};
use crate::workload::{Sources, Trust, count, duration, hosts, port};

/// Keys of the Jaeger password, in order of preference. The upstream operator read the last one.
const JAEGER_KEYS: [&str; 3] = ["jaeger-password", "password", "postgres-password"];

/// The keys of a certificate Secret.
pub(crate) const CERTIFICATE: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

/// Returns a Redis with its password. With a certificate, TLS is used if the release supports it.
pub(crate) fn redis(
    sources: &mut Sources<'_>,
    trust: &mut Trust,
    field: &str,
    server: &api::redis::RedisHost,
    release: &Release,
) -> Result<Redis, PlanError> {
    let password = server
        .password_ref
        .as_ref()
        .map(|secret| sources.value(&format!("{field}.passwordRef"), secret, "redis-password"));
    redis_with(sources, trust, field, server, release, password)
}

/// Returns a Redis with a known password, or without one.
pub(crate) fn redis_with(
    sources: &mut Sources<'_>,
    trust: &mut Trust,
    field: &str,
    server: &api::redis::RedisHost,
    release: &Release,
    password: Option<Confidential>,
) -> Result<Redis, PlanError> {
    let usual = port(&format!("{field}.port"), server.port())?;
    let certificate = server.certificate_ref.as_ref().filter(|_| release.has(Feature::RegistryRedisTls));
    if let Some(advice) = ignored_certificate(field, server, release) {
        sources.advise(advice);
    }
    if let Some(secret) = certificate {
        trust.add(sources, &format!("{field}.certificateRef"), secret, format!("{secret}-redis.crt"));
    }
    let redis = Redis {
        addresses: server.host.split(',').map(|host| address(host.trim(), usual)).collect(),
        sentinel_master: server.sentinel_master_set.clone(),
        username: None,
        password,
        tls: certificate.is_some(),
    };
    match redis.refuse(release, field) {
        Some(refusal) => Err(refusal.into()),
        None => Ok(redis),
    }
}

/// Returns advice if the Redis at `field` has a certificate that the release ignores. New objects with one
/// are refused; objects that were stored before continue to work.
pub(crate) fn ignored_certificate(
    field: &str,
    server: &api::redis::RedisHost,
    release: &Release,
) -> Option<String> {
    let ignored = server.certificate_ref.is_some() && !release.has(Feature::RegistryRedisTls);
    ignored.then(|| {
        format!(
            "{field}.certificateRef: Harbor {} connects to Redis without TLS and sends the password in clear text: \
             upgrade to 2.13.0 or newer, or remove certificateRef",
            release.version()
        )
    })
}

/// Returns the settings of the cache layer, or an error if the release has none.
pub(crate) fn cache_layer(
    spec: Option<&api::core_kind::CacheLayer>,
    release: &Release,
) -> Result<Option<CacheLayer>, PlanError> {
    let hours = spec.map(|layer| layer.expire_hours);
    let value = hours.as_ref().map(|hours| hours as &dyn std::fmt::Display);
    match refuse_ignored(release, Feature::CacheLayer, "spec.cacheLayer.expireHours", value) {
        Some(refusal) => Err(refusal.into()),
        None => Ok(hours.map(|hours| CacheLayer { expire_hours: count(hours) })),
    }
}

/// Returns the address of a host that may contain a port.
fn address(host: &str, usual: u16) -> Address {
    match host.rsplit_once(':') {
        Some((name, own)) if !name.contains(':') => match own.parse() {
            Ok(own) => Address::new(name, own),
            Err(_) => Address::new(host, usual),
        },
        _ => Address::new(host, usual),
    }
}

/// Returns the index of a Redis database.
pub(crate) fn redis_database(field: &str, number: i32) -> Result<u8, PlanError> {
    u8::try_from(number).map_err(|_| {
        PlanError::new(format!("{field}.database: {number} is not a database index: choose one of 0 to 8"))
    })
}

/// Returns a PostgreSQL database.
pub(crate) fn database(
    field: &str,
    spec: &api::postgres::PostgresConnection,
    otherwise: &str,
) -> Result<Database, PlanError> {
    if spec.hosts.is_empty() {
        return Err(PlanError::new(format!("{field}.hosts is empty: name the host of PostgreSQL")));
    }
    let address = |host: &api::postgres::PostgresHost| -> Result<Address, PlanError> {
        Ok(Address::new(&*host.host, port(&format!("{field}.hosts.port"), host.port())?))
    };
    let mode = match spec.parameters.get("sslmode") {
        Some(text) => ssl_mode(&format!("{field}.parameters.sslmode"), text)?,
        None => SslMode::default(),
    };
    Ok(Database {
        addresses: spec.hosts.iter().map(address).collect::<Result<_, _>>()?,
        username: spec.username.clone(),
        name: spec.database.clone().unwrap_or_else(|| otherwise.to_owned()),
        ssl_mode: mode,
    })
}

fn ssl_mode(field: &str, text: &str) -> Result<SslMode, PlanError> {
    let known = || SslMode::ALL.map(SslMode::as_str).join(", ");
    SslMode::of(text)
        .ok_or_else(|| PlanError::new(format!("{field}: {text:?} is unknown: choose one of {}", known())))
}

/// Returns Core's database with its password and connection pool, and trusts the authority of its server.
pub(crate) fn core_database(
    sources: &mut Sources<'_>,
    trust: &mut Trust,
    spec: &api::postgres::CoreDatabase,
) -> Result<(Database, SecretKey, Pool), PlanError> {
    let connection = &spec.connection;
    let database = database("spec.database", connection, "registry")?;
    let Some(secret) = &connection.password_ref else {
        let message = "spec.database.passwordRef is missing: name the Secret with the password, under postgres-password";
        return Err(PlanError::new(message));
    };
    let password = sources.database_password("spec.database.passwordRef", secret);
    if let Some(secret) = &connection.certificate_ref {
        trust.add(sources, "spec.database.certificateRef", secret, format!("{secret}-database.crt"));
    }
    let pool =
        Pool { max_idle: count(spec.max_idle_connections), max_open: count(spec.max_open_connections) };
    Ok((database, password, pool))
}

/// Returns the metrics settings; `None` if metrics are disabled.
pub(crate) fn metrics(spec: Option<&api::observe::Metrics>) -> Result<Option<Metrics>, PlanError> {
    let enabled = spec.filter(|metrics| metrics.enabled);
    enabled
        .map(|metrics| {
            Ok(Metrics { port: port("spec.metrics.port", metrics.port)?, path: metrics.path.clone() })
        })
        .transpose()
}

/// Returns the tracing settings; `None` if tracing is disabled.
pub(crate) fn trace(
    sources: &mut Sources<'_>,
    spec: Option<&api::observe::Trace>,
) -> Result<Option<Trace>, PlanError> {
    let Some(trace) = spec.filter(|trace| trace.enabled) else { return Ok(None) };
    let lacking =
        |what: &str| PlanError::new(format!("spec.trace.{what} is missing: set it, or disable tracing"));
    let to = match trace.provider {
        TraceProvider::Jaeger => {
            let jaeger = trace.jaeger.as_ref().ok_or_else(|| lacking("jaeger"))?;
            match jaeger.mode {
                JaegerMode::Collector => {
                    let collector = jaeger.collector.as_ref().ok_or_else(|| lacking("jaeger.collector"))?;
                    let field = "spec.trace.jaeger.collector.passwordRef";
                    let password = collector.password_ref.as_ref();
                    TraceReceiver::JaegerCollector {
                        endpoint: collector.endpoint.clone(),
                        username: collector.username.clone(),
                        password: password.map(|secret| sources.one_of(field, secret, &JAEGER_KEYS)),
                    }
                }
                JaegerMode::Agent => {
                    let agent = jaeger.agent.as_ref().ok_or_else(|| lacking("jaeger.agent"))?;
                    TraceReceiver::JaegerAgent {
                        host: agent.host.clone().ok_or_else(|| lacking("jaeger.agent.host"))?,
                        port: port("spec.trace.jaeger.agent.port", agent.port.unwrap_or(6831))?,
                    }
                }
            }
        }
        TraceProvider::Otel => {
            let otel = trace.otel.as_ref().ok_or_else(|| lacking("otel"))?;
            TraceReceiver::Otel {
                endpoint: otel.endpoint.clone(),
                url_path: otel.url_path.clone(),
                compression: otel.compression.unwrap_or(false),
                insecure: otel.insecure.unwrap_or(false),
                timeout: duration("spec.trace.otel.timeout", &otel.timeout)?,
            }
        }
    };
    Ok(Some(Trace {
        namespace: trace.namespace.clone(),
        sample_rate: f64::from(i32::try_from(trace.sample_rate).unwrap_or(1)),
        attributes: trace.attributes.clone(),
        to,
    }))
}

/// Returns the outbound HTTP proxy settings. The hosts of `neighbours`, given as URLs, are always reached
/// directly.
pub(crate) fn outbound<'a>(
    proxy: Option<&api::network::Proxy>,
    neighbours: impl IntoIterator<Item = &'a str>,
) -> Outbound {
    let Some(proxy) = proxy else { return Outbound::default() };
    let mut without = proxy.no_proxy.clone();
    without.extend(hosts(neighbours).into_iter().filter(|host| !proxy.no_proxy.contains(host)));
    Outbound { http: proxy.http_proxy.clone(), https: proxy.https_proxy.clone(), without }
}

/// Returns the Secret with a component's certificate and registers its files; `None` without TLS.
pub(crate) fn certificate<'a>(
    sources: &mut Sources<'_>,
    field: &str,
    tls: Option<&'a Tls>,
) -> Result<Option<&'a str>, PlanError> {
    let Some(tls) = tls else { return Ok(None) };
    let field = format!("{field}.certificateRef");
    let Some(secret) = tls.certificate_ref.as_deref() else {
        return Err(PlanError::new(format!("{field} is missing: name the Secret with the certificate")));
    };
    sources.files(&field, secret, &CERTIFICATE);
    Ok(Some(secret))
}

/// Returns true if a component is served over TLS.
pub(crate) fn is_tls(served: Served) -> bool {
    served == Served::Https
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentinels_may_have_ports_of_their_own() {
        let all: Vec<String> =
            "a, b:5,::1,[::1]:7".split(',').map(|host| address(host.trim(), 26379).to_string()).collect();
        assert_eq!(all, ["a:26379", "b:5", "[::1]:26379", "[::1]:7:26379"]);
    }

    #[test]
    fn an_unknown_ssl_mode_is_named_with_those_that_are_known() {
        assert_eq!(ssl_mode("f", "verify-ca").unwrap(), SslMode::VerifyCa);
        let error = ssl_mode("spec.database.parameters.sslmode", "always").unwrap_err().to_string();
        assert!(error.contains("always") && error.contains("verify-full"), "{error}");
    }

    #[test]
    fn other_components_are_reached_without_an_http_proxy() {
        let proxy = api::network::Proxy {
            http_proxy: Some("http://proxy".into()),
            no_proxy: vec!["localhost".into(), "core".into()],
            ..api::network::Proxy::default()
        };
        let outbound = outbound(Some(&proxy), ["http://core:80", "https://registry"]);
        assert_eq!(outbound.without, ["localhost", "core", "registry"]);
    }
}
