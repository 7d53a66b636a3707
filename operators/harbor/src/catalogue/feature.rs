//! Features that depend on the release.

/// Something that not every release can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Feature {
    /// ChartMuseum exists, and core is told of it.
    ChartMuseum,
    /// Notary exists, and core is told of it.
    Notary,
    /// Core and jobservice are given what later releases no longer read: `RELOAD_KEY`, `TOKEN_SERVICE_URL`.
    FormerCoreEnv,
    /// Core is given `SYNC_QUOTA`.
    SyncQuota,
    /// Core caches manifests and projects: `CACHE_ENABLED`, `CACHE_EXPIRE_HOURS`.
    CacheLayer,
    /// Core keeps its caches in databases of their own: `_REDIS_URL_HARBOR`, `_REDIS_URL_CACHE_LAYER`.
    CacheLayerRedisUrls,
    /// Connections to PostgreSQL are given up with age: `POSTGRESQL_CONN_MAX_LIFETIME` and its kin.
    ConnectionLifetime,
    /// `QUOTA_UPDATE_PROVIDER`.
    QuotaUpdateProvider,
    /// `ROBOT_SCANNER_NAME_PREFIX`.
    RobotScannerPrefix,
    /// `REPLICATION_ADAPTER_WHITELIST`.
    ReplicationAdapters,
    /// The jobservice's `reaper` and `max_retrieve_size_mb`.
    JobReaper,
    /// `JOBSERVICE_WEBHOOK_JOB_HTTP_CLIENT_TIMEOUT`.
    WebhookClientTimeout,
    /// The jobservice reads `LOG_LEVEL`.
    JobServiceLogLevel,
    /// The jobservice reads `MAX_JOB_DURATION_SECONDS`.
    JobDurationLimit,
    /// The portal has `/devcenter-api-2.0`.
    PortalDeveloperCentre,
    /// The images' nginx is configured for TLS 1.3 also.
    Tls13,
    /// The proxy waits 900 s for `/v2/` on plain HTTP also.
    PlainProxyLongTransfers,
    /// The registry speaks TLS to Redis.
    RegistryRedisTls,
    /// The registry gives Redis a user's name.
    RegistryRedisUsername,
    /// `SCANNER_TRIVY_SECURITY_CHECKS`.
    TrivySecurityChecks,
    /// `SCANNER_TRIVY_SKIP_JAVA_DB_UPDATE`.
    TrivySkipJavaUpdate,
    /// `SCANNER_TRIVY_DB_REPOSITORY` and `SCANNER_TRIVY_JAVA_DB_REPOSITORY`.
    TrivyRepositories,
}
