//! From what a user writes about neighbours to what components are told of them: Redis, PostgreSQL, traces, proxies.
//!
//! Nothing here knows a particular component.

use windlass::PlanError;

use crate::api;
use crate::api::component::{Served, Tls};
use crate::api::observe::{JaegerMode, TraceProvider};
use crate::catalogue::{Feature, Release};
use crate::config::database::{Database, Pool, SslMode};
use crate::config::outbound::Outbound;
use crate::config::redis::Redis;
use crate::config::telemetry::{Metrics, Trace, TraceReceiver};
use crate::config::{Address, Confidential, SecretKey};
use crate::workload::{Sources, Trust, count, duration, hosts, port};

/// The keys under which the password of Jaeger is looked for. The last is what the first operator of these kinds read.
const JAEGER_KEYS: [&str; 3] = ["jaeger-password", "password", "postgres-password"];

/// The files of a certificate.
pub(crate) const CERTIFICATE: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

/// A Redis, with its password. One with a certificate is spoken to over TLS where the release can; before, certificates were written
/// and never used.
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

/// The same, with a password that is already known, or none.
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

/// A host that may have a port of its own.
fn address(host: &str, usual: u16) -> Address {
    match host.rsplit_once(':') {
        Some((name, own)) if !name.contains(':') => match own.parse() {
            Ok(own) => Address::new(name, own),
            Err(_) => Address::new(host, usual),
        },
        _ => Address::new(host, usual),
    }
}

/// The number of a database of Redis.
pub(crate) fn redis_database(field: &str, number: i32) -> Result<u8, PlanError> {
    u8::try_from(number).map_err(|_| {
        PlanError::new(format!("{field}.database: {number} is no database: choose one of 0 to 8"))
    })
}

/// A database of PostgreSQL.
pub(crate) fn database(
    field: &str,
    given: &api::postgres::PostgresConnection,
    otherwise: &str,
) -> Result<Database, PlanError> {
    if given.hosts.is_empty() {
        return Err(PlanError::new(format!("{field}.hosts is empty: name the host of PostgreSQL")));
    }
    let address = |host: &api::postgres::PostgresHost| -> Result<Address, PlanError> {
        Ok(Address::new(&*host.host, port(&format!("{field}.hosts.port"), host.port())?))
    };
    let mode = match given.parameters.get("sslmode") {
        Some(text) => ssl_mode(&format!("{field}.parameters.sslmode"), text)?,
        None => SslMode::default(),
    };
    Ok(Database {
        addresses: given.hosts.iter().map(address).collect::<Result<_, _>>()?,
        username: given.username.clone(),
        name: given.database.clone().unwrap_or_else(|| otherwise.to_owned()),
        ssl_mode: mode,
    })
}

fn ssl_mode(field: &str, text: &str) -> Result<SslMode, PlanError> {
    let known = || SslMode::ALL.map(SslMode::as_str).join(", ");
    SslMode::of(text)
        .ok_or_else(|| PlanError::new(format!("{field}: {text:?} is unknown: choose one of {}", known())))
}

/// Core's database, with its password and pool.
pub(crate) fn core_database(
    sources: &mut Sources<'_>,
    given: &api::postgres::CoreDatabase,
) -> Result<(Database, SecretKey, Pool), PlanError> {
    let connection = &given.connection;
    let database = database("spec.database", connection, "registry")?;
    let Some(secret) = &connection.password_ref else {
        let said = "spec.database.passwordRef is missing: name the Secret with the password, under postgres-password";
        return Err(PlanError::new(said));
    };
    let password = sources.database_password("spec.database.passwordRef", secret);
    let pool =
        Pool { max_idle: count(given.max_idle_connections), max_open: count(given.max_open_connections) };
    Ok((database, password, pool))
}

/// Metrics, if there are to be any.
pub(crate) fn metrics(given: Option<&api::observe::Metrics>) -> Result<Option<Metrics>, PlanError> {
    let enabled = given.filter(|metrics| metrics.enabled);
    enabled
        .map(|metrics| {
            Ok(Metrics { port: port("spec.metrics.port", metrics.port)?, path: metrics.path.clone() })
        })
        .transpose()
}

/// Traces, if there are to be any.
pub(crate) fn trace(
    sources: &mut Sources<'_>,
    given: Option<&api::observe::Trace>,
) -> Result<Option<Trace>, PlanError> {
    let Some(trace) = given.filter(|trace| trace.enabled) else { return Ok(None) };
    let lacking =
        |what: &str| PlanError::new(format!("spec.trace.{what} is missing: fill it in, or turn traces off"));
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

/// The way out. The hosts of `neighbours`, given as URLs, are always reached without a proxy.
pub(crate) fn outbound<'a>(
    proxy: Option<&api::network::Proxy>,
    neighbours: impl IntoIterator<Item = &'a str>,
) -> Outbound {
    let Some(proxy) = proxy else { return Outbound::default() };
    let mut without = proxy.no_proxy.clone();
    without.extend(hosts(neighbours).into_iter().filter(|host| !proxy.no_proxy.contains(host)));
    Outbound { http: proxy.http_proxy.clone(), https: proxy.https_proxy.clone(), without }
}

/// The Secret of a component's certificate, with all its files; none without TLS.
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

/// Whether a component is served over TLS.
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
    fn neighbours_are_reached_without_a_proxy() {
        let proxy = api::network::Proxy {
            http_proxy: Some("http://proxy".into()),
            no_proxy: vec!["localhost".into(), "core".into()],
            ..api::network::Proxy::default()
        };
        let outbound = outbound(Some(&proxy), ["http://core:80", "https://registry"]);
        assert_eq!(outbound.without, ["localhost", "core", "registry"]);
    }
}
