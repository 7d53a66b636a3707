//! The components of Harbor.

/// A part of Harbor with an image of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Component {
    /// The API, and the proxy before the registry.
    Core,
    /// Runs replication, scans and garbage collection.
    JobService,
    /// The web interface.
    Portal,
    /// Distribution, which stores the images.
    Registry,
    /// Deletes from the registry's storage, beside it.
    RegistryController,
    /// The repository of Helm charts; to 2.7.
    ChartMuseum,
    /// Metrics of the whole.
    Exporter,
    /// The server of signatures; to 2.8.
    NotaryServer,
    /// Holds the keys of the signatures; to 2.8.
    NotarySigner,
    /// The adapter to the scanner.
    Trivy,
    /// The proxy before core and portal, where Harbor is exposed by a Service.
    Proxy,
    /// PostgreSQL as Harbor ships it.
    Database,
    /// Redis or Valkey as Harbor ships it.
    Cache,
}

impl Component {
    /// Every component.
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

    /// The word for the component in the names and labels of objects. Persisted: none of them may change.
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
