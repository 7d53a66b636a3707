//! Features that depend on the release.

/// A feature that only some releases have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Feature {
    /// ChartMuseum exists, and Core is configured for it.
    ChartMuseum,
    /// Notary exists, and Core is configured for it.
    Notary,
    /// Core and JobService read `RELOAD_KEY` and `TOKEN_SERVICE_URL`, which later releases ignore.
    FormerCoreEnv,
    /// Core reads `SYNC_QUOTA`.
    SyncQuota,
    /// Core limits the age of connections to PostgreSQL: `POSTGRESQL_CONN_MAX_LIFETIME` and related
    /// variables.
    ConnectionLifetime,
    /// Core reads `REPLICATION_ADAPTER_WHITELIST`.
    ReplicationAdapters,
    /// Core and JobService read `CACHE_ENABLED` and `CACHE_EXPIRE_HOURS`.
    CacheLayer,
    /// Core and JobService read `_REDIS_URL_CACHE_LAYER`; older releases keep the cache layer in Core's
    /// database of Redis.
    CacheLayerRedis,
    /// JobService has the settings `reaper` and `max_retrieve_size_mb`.
    JobReaper,
    /// JobService reads `LOG_LEVEL`.
    JobServiceLogLevel,
    /// The portal serves `/devcenter-api-2.0`.
    PortalDeveloperCentre,
    /// The nginx of the images is configured for TLS 1.3 in addition to 1.2.
    Tls13,
    /// The proxy allows 900 s for `/v2/` on plain HTTP, as it does on HTTPS.
    PlainProxyLongTransfers,
    /// The registry can use TLS to Redis.
    RegistryRedisTls,
    /// The registry can send a user name to Redis.
    RegistryRedisUsername,
    /// Trivy reads `SCANNER_TRIVY_SECURITY_CHECKS`.
    TrivySecurityChecks,
    /// Trivy reads `SCANNER_TRIVY_SKIP_JAVA_DB_UPDATE`.
    TrivySkipJavaUpdate,
    /// Trivy reads `SCANNER_TRIVY_DB_REPOSITORY` and `SCANNER_TRIVY_JAVA_DB_REPOSITORY`.
    TrivyRepositories,
}
