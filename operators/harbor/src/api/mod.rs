//! The kinds of `goharbor.io`: their specs and statuses.
//!
//! Names of kinds and fields are those of the upstream CRDs, typing errors included, so that existing
//! manifests keep working. Each file holds one kind, or one concept that several kinds share. `v1beta1` is
//! the stored version and has Rust types; `v1alpha3` is served by [`conversion`] only.
//!
//! Nothing in this module calls the Kubernetes API.

mod alpha;
mod alpha_cluster;
pub mod chartmuseum;
pub mod chartmuseum_storage;
pub mod children;
mod choice;
pub mod component;
pub mod conversion;
mod conversion_cluster;
pub mod core_kind;
pub mod definition;
pub mod driver;
pub mod duration;
pub mod embedded;
pub mod exporter;
pub mod harbor;
pub mod harbor_components;
pub mod harborcluster;
pub mod harborcluster_parts;
pub mod jobservice;
pub mod log;
pub mod names;
pub mod network;
pub mod notary;
pub mod observe;
mod pattern;
pub mod portal;
pub mod postgres;
pub mod redis;
pub mod registry;
pub mod registry_health;
pub mod registry_log;
pub mod registry_storage;
pub mod registryctl;
mod residue;
mod schema;
pub mod status;
pub mod trivy;
pub mod validation;
mod validation_cluster;
mod validation_harbor;

pub use chartmuseum::{ChartMuseum, ChartMuseumSpec};
pub use core_kind::{Core, CoreSpec};
pub use definition::{definition, definitions};
pub use exporter::{Exporter, ExporterSpec};
pub use harbor::{Harbor, HarborSpec};
pub use harborcluster::{HarborCluster, HarborClusterSpec};
pub use jobservice::{JobService, JobServiceSpec};
pub use notary::{NotaryServer, NotaryServerSpec, NotarySigner, NotarySignerSpec};
pub use portal::{Portal, PortalSpec};
pub use registry::{Registry, RegistrySpec};
pub use registryctl::{RegistryController, RegistryControllerSpec};
pub use trivy::{Trivy, TrivySpec};

/// API group of all kinds.
pub const GROUP: &str = "goharbor.io";
/// API version that is stored.
pub const VERSION: &str = "v1beta1";
/// Deprecated API version, which is still served.
pub const OLD_VERSION: &str = "v1alpha3";
