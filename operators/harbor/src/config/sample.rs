//! A sample Harbor for snapshots: all settings, and a password with every character that has ever caused
//! trouble.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::catalogue::Release;

use super::chartmuseum::{ChartCache, ChartMuseum, ChartStorage, Disable};
use super::core_env::{Core, Secrets, Urls};
use super::database::{Database, Pool, SslMode};
use super::exporter::{Exporter, Queue};
use super::jobservice::{JobService, Logger, job_log_dir};
use super::notary::{NotaryServer, NotarySigner, NotaryStorage, Signer, TokenAuth};
use super::outbound::Outbound;
use super::portal::{Families, Portal};
use super::proxy::Proxy;
use super::redis::{Redis, index};
use super::registry::{
    Auth, Cache, Debug, HTTP_SECRET, Health, HealthCheck, Http, HttpSecret, Log, Middlewares, Notifications,
    Registry, RegistryRedis, Schema1, Storage, UploadPurging, Validation,
};
use super::registryctl::RegistryController;
use super::telemetry::Metrics;
use super::trivy::{Trivy, TrivyRedis};
use super::{Address, Confidential, SecretKey};

/// A password that is difficult for URLs, YAML and shells.
pub(super) const PASSWORD: &str = r#"*p@ss: w/rd?#[%]+"'$(X)&{}é"#;

pub(super) fn release(version: &str) -> Release {
    Release::of(&version.parse().unwrap()).unwrap()
}

pub(super) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) fn redis() -> Redis {
    Redis {
        addresses: vec![Address::new("redis.example", 6379)],
        sentinel_master: None,
        username: None,
        password: Some(Confidential::from(PASSWORD)),
        tls: false,
    }
}

fn url(tls: bool, name: &str) -> String {
    format!("{}://sample-harbor-{name}", if tls { "https" } else { "http" })
}

fn key(name: &str) -> SecretKey {
    SecretKey::new(format!("sample-harbor-{name}"), "secret")
}

fn outbound() -> Outbound {
    Outbound {
        http: Some("http://proxy:3128".to_owned()),
        https: None,
        without: vec!["127.0.0.1".to_owned(), ".internal".to_owned()],
    }
}

fn database(name: &str) -> Database {
    Database {
        addresses: vec![Address::new("db.example", 5432)],
        username: Some("harbor".to_owned()),
        name: name.to_owned(),
        ssl_mode: SslMode::Prefer,
    }
}

pub(super) fn core(release: &Release, tls: bool) -> Core {
    let has = |feature| release.has(feature);
    Core {
        external_url: "https://harbor.example".to_owned(),
        tls,
        log_level: "info".to_owned(),
        gzip: true,
        config_expiration: seconds(5),
        database: database("core"),
        database_password: SecretKey::new("db", "postgres-password"),
        pool: Pool { max_idle: 50, max_open: 1000 },
        redis: redis(),
        redis_database: index::CORE,
        redis_idle_timeout: seconds(30),
        cache_layer: None,
        registry_redis: Some((redis(), index::REGISTRY)),
        urls: Urls {
            core: format!("{}:{}", url(tls, "core"), if tls { 443 } else { 80 }),
            jobservice: url(tls, "jobservice"),
            registry: url(tls, "registry"),
            registry_controller: url(tls, "registryctl"),
            portal: url(tls, "portal"),
            token_service: format!("{}/service/token", url(tls, "core")),
            chartmuseum: has(crate::catalogue::Feature::ChartMuseum).then(|| url(tls, "chartmuseum")),
            notary: has(crate::catalogue::Feature::Notary).then(|| url(tls, "notaryserver")),
            trivy: Some(url(tls, "trivy")),
        },
        storage_provider: "s3".to_owned(),
        sync_registry: false,
        secrets: Secrets {
            admin_password: SecretKey::new("admin", "secret"),
            core: key("core-secret"),
            jobservice: key("jobservice-secret"),
            csrf: SecretKey::new("sample-harbor-core-csrf", "key"),
            registry_password: key("registry-basicauth"),
        },
        registry_username: "harbor_registry_user".to_owned(),
        metrics: Some(Metrics { port: 8001, path: "/metrics".to_owned() }),
        trace: None,
        outbound: outbound(),
    }
}

pub(super) fn jobservice(tls: bool) -> JobService {
    let level = || "INFO".to_owned();
    JobService {
        tls,
        workers: 10,
        redis: redis(),
        redis_database: index::JOBSERVICE,
        redis_namespace: "jobservice::default::sample-harbor".to_owned(),
        redis_idle_timeout: seconds(30),
        cache_layer: None,
        job_loggers: vec![
            Logger::Database { level: level(), sweeper: Some(seconds(14 * 24 * 3600)) },
            Logger::Stdout { level: level() },
            Logger::File { level: level(), directory: job_log_dir(0), sweeper: Some(seconds(14 * 3600)) },
        ],
        loggers: vec![Logger::Stdout { level: level() }],
        log_level: level(),
        core_url: format!("{}:{}", url(tls, "core"), if tls { 443 } else { 80 }),
        token_service_url: format!("{}/service/token", url(tls, "core")),
        registry_url: url(tls, "registry"),
        registry_controller_url: url(tls, "registryctl"),
        registry_username: "harbor_registry_user".to_owned(),
        registry_password: key("registry-basicauth"),
        core_secret: key("core-secret"),
        jobservice_secret: key("jobservice-secret"),
        metrics: Some(Metrics { port: 8001, path: "/metrics".to_owned() }),
        trace: None,
        outbound: outbound(),
    }
}

pub(super) fn portal(tls: bool) -> Portal {
    Portal { tls, max_connections: 1024, families: Families::BOTH }
}

pub(super) fn proxy(tls: bool) -> Proxy {
    Proxy {
        core: Address::new("sample-harbor-core", if tls { 443 } else { 80 }),
        portal: Some(Address::new("sample-harbor-portal", if tls { 443 } else { 80 })),
        internal_tls: tls,
        https: tls.then(|| "harbor.example:30443".to_owned()),
        plain_url: false,
        families: Families::V4,
    }
}

pub(super) fn registry(storage: Storage, tls: bool) -> Registry {
    Registry {
        log: Log {
            access_log_disabled: false,
            level: "warning".to_owned(),
            formatter: "text".to_owned(),
            fields: BTreeMap::new(),
            hooks: Vec::new(),
        },
        http: Http {
            net: "tcp".to_owned(),
            host: None,
            prefix: None,
            headers: BTreeMap::from([("X-Content-Type-Options".to_owned(), vec!["nosniff".to_owned()])]),
            http2_disabled: false,
            relative_urls: true,
            drain_timeout: Some(seconds(60)),
            tls,
            debug: Some(Debug { port: 8001, metrics_path: Some("/metrics".to_owned()) }),
        },
        http_secret: Some(HttpSecret::Plain(SecretKey::new("sample-harbor-registry-http", HTTP_SECRET))),
        reporting: BTreeMap::new(),
        storage,
        cache: Cache::Redis(RegistryRedis::new(redis(), index::REGISTRY)),
        delete: true,
        redirect_disabled: true,
        read_only: false,
        upload_purging: Some(UploadPurging {
            age: seconds(168 * 3600),
            interval: seconds(24 * 3600),
            dry_run: false,
        }),
        middlewares: Middlewares::default(),
        schema1: Schema1 { enabled: true, key: false },
        validation: Validation { disabled: true, ..Validation::default() },
        auth: Some(Auth::Htpasswd { realm: "harbor-registry-basic-realm".to_owned() }),
        notifications: Notifications { include_references: true, endpoints: Vec::new() },
        health: Health {
            storage: Some(HealthCheck { interval: seconds(5), threshold: 3 }),
            files: Vec::new(),
            http: Vec::new(),
            tcp: Vec::new(),
        },
        outbound: Outbound::default(),
    }
}

pub(super) fn files() -> Storage {
    Storage::filesystem(100)
}

pub(super) fn registryctl(tls: bool) -> RegistryController {
    RegistryController {
        tls,
        log_level: "info".to_owned(),
        core_secret: Some(key("core-secret")),
        jobservice_secret: Some(key("jobservice-secret")),
        trace: None,
    }
}

pub(super) fn chartmuseum(storage: ChartStorage, tls: bool) -> ChartMuseum {
    ChartMuseum {
        tls,
        read_timeout: None,
        write_timeout: None,
        cors_allow_origin: None,
        anonymous_get: false,
        basic_auth: Some((
            SecretKey::new("sample-harbor-core-secret", "username"),
            SecretKey::new("sample-harbor-core-secret", "password"),
        )),
        bearer: None,
        allow_overwrite: true,
        only_semver2: false,
        chart_url: None,
        depth: Some(1),
        index_limit: 0,
        timestamp_tolerance: seconds(1),
        max_storage_objects: 0,
        max_upload_size: 20_971_520,
        chart_field: "chart".to_owned(),
        provenance_field: "prov".to_owned(),
        disable: Disable::default(),
        debug: false,
        log_health: false,
        log_json: true,
        log_latency_integer: true,
        cache: Some(ChartCache {
            server: redis(),
            database: 3,
            password: Some(SecretKey::new("redis", "redis-password")),
        }),
        storage,
    }
}

pub(super) fn exporter(tls: bool) -> Exporter {
    Exporter {
        port: 8001,
        path: "/metrics".to_owned(),
        log_level: "info".to_owned(),
        cache_duration: seconds(30),
        cache_clean_interval: seconds(4 * 3600),
        core_scheme: if tls { "https" } else { "http" }.to_owned(),
        core_host: "sample-harbor-core".to_owned(),
        core_port: if tls { 443 } else { 80 },
        database: database("core"),
        database_password: SecretKey::new("db", "postgres-password"),
        pool: Pool { max_idle: 50, max_open: 1000 },
        queue: Some(Queue {
            redis: redis(),
            database: index::JOBSERVICE,
            namespace: "jobservice::default::sample-harbor".to_owned(),
            idle_timeout: seconds(30),
        }),
    }
}

fn notary_storage(name: &str) -> NotaryStorage {
    NotaryStorage {
        database: database(name),
        password: Some(PASSWORD.into()),
        authority: false,
        migrate: true,
    }
}

pub(super) fn notary_server(tls: bool) -> NotaryServer {
    NotaryServer {
        tls,
        log_level: "info".to_owned(),
        storage: notary_storage("notaryserver"),
        signer: Some(Signer {
            host: "sample-harbor-notarysigner".to_owned(),
            port: 7899,
            key_algorithm: "ecdsa".to_owned(),
            certificate: true,
        }),
        auth: Some(TokenAuth {
            realm: "https://harbor.example/service/token".to_owned(),
            service: "harbor-notary".to_owned(),
            issuer: "harbor-token-issuer".to_owned(),
            autoredirect: true,
        }),
    }
}

pub(super) fn notary_signer() -> NotarySigner {
    NotarySigner { log_level: "info".to_owned(), storage: notary_storage("notarysigner") }
}

pub(super) fn trivy(tls: bool) -> Trivy {
    Trivy {
        tls,
        client_authorities: Vec::new(),
        log_level: "info".to_owned(),
        debug_mode: false,
        read_timeout: seconds(15),
        write_timeout: seconds(15),
        idle_timeout: seconds(60),
        vulnerability_types: vec!["os".to_owned(), "library".to_owned()],
        severities: ["UNKNOWN", "LOW", "MEDIUM", "HIGH", "CRITICAL"].map(str::to_owned).to_vec(),
        ignore_unfixed: false,
        skip_update: false,
        offline_scan: false,
        insecure: false,
        timeout: seconds(300),
        db_repository: Some("mirror.example/trivy-db".to_owned()),
        java_db_repository: None,
        github_token: Some(SecretKey::new("github", "github-token")),
        redis: TrivyRedis {
            server: redis(),
            database: index::TRIVY,
            store_namespace: "harbor.scanner.trivy:store".to_owned(),
            queue_namespace: "harbor.scanner.trivy:job-queue".to_owned(),
            scan_job_ttl: seconds(3600),
            idle_timeout: seconds(300),
            connection_timeout: seconds(1),
            read_timeout: seconds(1),
            write_timeout: seconds(1),
            max_active: 5,
            max_idle: 5,
        },
        outbound: outbound(),
    }
}
