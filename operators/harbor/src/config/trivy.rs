//! Trivy's adapter: an environment from a ConfigMap and a Secret, both whole.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::catalogue::{Feature, Release};

use super::env::{Environment, SecretKey};
use super::goduration::go_duration;
use super::outbound::Outbound;
use super::redis::Redis;
use super::rendered::{Rendered, Vault};

/// Where the certificate of internal TLS is mounted.
pub const SSL_DIR: &str = "/etc/harbor/ssl";
/// Where the database of vulnerabilities is kept.
pub const CACHE_DIR: &str = "/home/scanner/.cache/trivy";
/// Where reports are kept.
pub const REPORTS_DIR: &str = "/home/scanner/.cache/reports";

/// What Trivy's adapter is to be told.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools)] // its settings are switches
pub struct Trivy {
    /// Whether the components speak TLS among themselves.
    pub tls: bool,
    /// Certificates of those who may come in, if clients have to show one.
    pub client_authorities: Vec<String>,
    /// `debug`, `info`, `warning`, `error`, `fatal` or `panic`.
    pub log_level: String,
    /// Whether Trivy itself says more.
    pub debug_mode: bool,
    /// How long to read a request.
    pub read_timeout: Duration,
    /// How long to write an answer.
    pub write_timeout: Duration,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
    /// `os`, `library`.
    pub vulnerability_types: Vec<String>,
    /// `UNKNOWN`, `LOW`, `MEDIUM`, `HIGH`, `CRITICAL`.
    pub severities: Vec<String>,
    /// Whether what cannot be mended is left out.
    pub ignore_unfixed: bool,
    /// Whether the databases are not updated.
    pub skip_update: bool,
    /// Whether nothing is looked up elsewhere.
    pub offline_scan: bool,
    /// Whether any certificate of the registry is accepted.
    pub insecure: bool,
    /// How long a scan may take.
    pub timeout: Duration,
    /// Another repository of the database of vulnerabilities.
    pub db_repository: Option<String>,
    /// Another repository of the database of Java's archives.
    pub java_db_repository: Option<String>,
    /// The token for GitHub.
    pub github_token: Option<SecretKey>,
    /// Queue and reports.
    pub redis: TrivyRedis,
    /// The way out.
    pub outbound: Outbound,
}

/// Where Trivy's adapter keeps its queue and its reports.
#[derive(Debug, Clone)]
pub struct TrivyRedis {
    /// The server.
    pub server: Redis,
    /// The database.
    pub database: u8,
    /// The first part of the reports' keys.
    pub store_namespace: String,
    /// The first part of the queue's keys.
    pub queue_namespace: String,
    /// How long reports are kept.
    pub scan_job_ttl: Duration,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
    /// How long to wait for a connection.
    pub connection_timeout: Duration,
    /// How long to wait for an answer.
    pub read_timeout: Duration,
    /// How long to wait while sending.
    pub write_timeout: Duration,
    /// Connections at most.
    pub max_active: u32,
    /// Idle connections at most.
    pub max_idle: u32,
}

/// Renders Trivy's adapter for one release. [`Rendered::config`] and [`Rendered::secret`] are environments whole, for `envFrom`; `secret` names the
/// Secret; [`Rendered::env`] comes on top.
pub fn render(trivy: &Trivy, release: &Release, secret: &str) -> Rendered {
    let mut vault = Vault::new(secret);
    let url = trivy.redis.server.url(trivy.redis.database);
    for name in ["SCANNER_REDIS_URL", "SCANNER_STORE_REDIS_URL", "SCANNER_JOB_QUEUE_REDIS_URL"] {
        let _ = vault.put(name, url.clone());
    }
    let mut environment = Environment::default();
    let port = if trivy.tls { 8443 } else { 8080 };
    environment
        .set("SCANNER_API_SERVER_ADDR", format!(":{port}"))
        .set("SCANNER_TRIVY_TIMEOUT", go_duration(trivy.timeout))
        .secret_some("SCANNER_TRIVY_GITHUB_TOKEN", trivy.github_token.as_ref());
    if trivy.tls {
        environment
            .set("SCANNER_API_SERVER_TLS_CERTIFICATE", format!("{SSL_DIR}/tls.crt"))
            .set("SCANNER_API_SERVER_TLS_KEY", format!("{SSL_DIR}/tls.key"));
        if !trivy.client_authorities.is_empty() {
            environment.set("SCANNER_API_SERVER_CLIENT_CAS", trivy.client_authorities.join(","));
        }
    }
    trivy.outbound.environment(&mut environment);
    Rendered { config: settings(trivy, release), secret: vault.finish(), env: environment.finish() }
}

fn settings(trivy: &Trivy, release: &Release) -> BTreeMap<String, String> {
    let redis = &trivy.redis;
    let mut settings: Vec<(&str, String)> = vec![
        ("SCANNER_LOG_LEVEL", trivy.log_level.clone()),
        ("SCANNER_API_SERVER_READ_TIMEOUT", go_duration(trivy.read_timeout)),
        ("SCANNER_API_SERVER_WRITE_TIMEOUT", go_duration(trivy.write_timeout)),
        ("SCANNER_API_SERVER_IDLE_TIMEOUT", go_duration(trivy.idle_timeout)),
        ("SCANNER_TRIVY_CACHE_DIR", CACHE_DIR.to_owned()),
        ("SCANNER_TRIVY_REPORTS_DIR", REPORTS_DIR.to_owned()),
        ("SCANNER_TRIVY_DEBUG_MODE", trivy.debug_mode.to_string()),
        ("SCANNER_TRIVY_VULN_TYPE", trivy.vulnerability_types.join(",")),
        ("SCANNER_TRIVY_SEVERITY", trivy.severities.join(",")),
        ("SCANNER_TRIVY_IGNORE_UNFIXED", trivy.ignore_unfixed.to_string()),
        ("SCANNER_TRIVY_SKIP_UPDATE", trivy.skip_update.to_string()),
        ("SCANNER_TRIVY_OFFLINE_SCAN", trivy.offline_scan.to_string()),
        ("SCANNER_TRIVY_INSECURE", trivy.insecure.to_string()),
        ("SCANNER_STORE_REDIS_NAMESPACE", redis.store_namespace.clone()),
        ("SCANNER_STORE_REDIS_SCAN_JOB_TTL", go_duration(redis.scan_job_ttl)),
        ("SCANNER_JOB_QUEUE_REDIS_NAMESPACE", redis.queue_namespace.clone()),
        // Two scans at a time can damage the database of vulnerabilities.
        ("SCANNER_JOB_QUEUE_WORKER_CONCURRENCY", "1".to_owned()),
        ("SCANNER_REDIS_POOL_IDLE_TIMEOUT", go_duration(redis.idle_timeout)),
        ("SCANNER_REDIS_POOL_CONNECTION_TIMEOUT", go_duration(redis.connection_timeout)),
        ("SCANNER_REDIS_POOL_READ_TIMEOUT", go_duration(redis.read_timeout)),
        ("SCANNER_REDIS_POOL_WRITE_TIMEOUT", go_duration(redis.write_timeout)),
        ("SCANNER_REDIS_POOL_MAX_ACTIVE", redis.max_active.to_string()),
        ("SCANNER_REDIS_POOL_MAX_IDLE", redis.max_idle.to_string()),
    ];
    if release.has(Feature::TrivySecurityChecks) {
        settings.push(("SCANNER_TRIVY_SECURITY_CHECKS", "vuln".to_owned()));
    }
    if release.has(Feature::TrivySkipJavaUpdate) {
        settings.push(("SCANNER_TRIVY_SKIP_JAVA_DB_UPDATE", trivy.skip_update.to_string()));
    }
    if release.has(Feature::TrivyRepositories) {
        let repositories = [
            ("SCANNER_TRIVY_DB_REPOSITORY", &trivy.db_repository),
            ("SCANNER_TRIVY_JAVA_DB_REPOSITORY", &trivy.java_db_repository),
        ];
        for (name, repository) in repositories {
            settings.extend(repository.iter().map(|repository| (name, repository.clone())));
        }
    }
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
