//! The components of Harbor.

/// A component of Harbor that has its own image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Component {
    /// Core: the API server and the proxy in front of the registry.
    Core,
    /// JobService: runs replication, scans and garbage collection.
    JobService,
    /// Portal: the web interface.
    Portal,
    /// Registry: Distribution, which stores images.
    Registry,
    /// RegistryController: deletes blobs from the registry's storage; runs beside the registry.
    RegistryController,
    /// ChartMuseum: the Helm chart repository, up to Harbor 2.7.
    ChartMuseum,
    /// Exporter: exports metrics about the whole Harbor.
    Exporter,
    /// NotaryServer: stores signatures, up to Harbor 2.8.
    NotaryServer,
    /// NotarySigner: stores the signing keys, up to Harbor 2.8.
    NotarySigner,
    /// Trivy: the adapter to the vulnerability scanner.
    Trivy,
    /// Proxy: nginx in front of Core and Portal, used when Harbor is exposed by a Service.
    Proxy,
    /// Database: the PostgreSQL that Harbor ships.
    Database,
    /// Cache: the Redis or Valkey that Harbor ships.
    Cache,
}

impl Component {
    /// All components of Harbor.
    pub const ALL: [Self; 13] = [
        Self::Core,
        Self::JobService,
        Self::Portal,
        Self::Registry,
        Self::RegistryController,
        Self::ChartMuseum,
        Self::Exporter,
        Self::NotaryServer,
        Self::NotarySigner,
        Self::Trivy,
        Self::Proxy,
        Self::Database,
        Self::Cache,
    ];

    /// Returns the component's word in names and labels of objects. The words are persisted and never change.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::JobService => "jobservice",
            Self::Portal => "portal",
            Self::Registry => "registry",
            Self::RegistryController => "registryctl",
            Self::ChartMuseum => "chartmuseum",
            Self::Exporter => "exporter",
            Self::NotaryServer => "notaryserver",
            Self::NotarySigner => "notarysigner",
            Self::Trivy => "trivy",
            Self::Proxy => "proxy",
            Self::Database => "database",
            Self::Cache => "redis",
        }
    }
}
