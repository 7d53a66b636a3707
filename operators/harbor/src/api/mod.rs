//! The kinds of `goharbor.io`: their specs and statuses.
//!
//! Names of kinds and fields are those of the upstream CRDs, typing errors included, so that existing
//! manifests keep working. Each file holds one kind, or one concept that several kinds share. `v1beta1` is
//! the stored version and has Rust types; `v1alpha3` is served by [`conversion`] only.
//!
//! Nothing in this module calls the Kubernetes API.
#![allow(clippy::struct_field_names)] // the names of fields are upstream's

mod alpha;
mod alpha_cluster;
pub(crate) mod chartmuseum;
pub(crate) mod chartmuseum_storage;
pub(crate) mod children;
mod choice;
pub(crate) mod component;
pub mod conversion;
mod conversion_cluster;
pub(crate) mod core_kind;
pub(crate) mod definition;
pub(crate) mod driver;
pub(crate) mod duration;
pub(crate) mod embedded;
pub(crate) mod exporter;
mod fields;
pub mod harbor;
pub(crate) mod harbor_components;
pub(crate) mod harborcluster;
pub(crate) mod harborcluster_parts;
mod ineffective;
pub(crate) mod jobservice;
pub(crate) mod log;
pub(crate) mod names;
pub(crate) mod network;
pub(crate) mod notary;
pub(crate) mod observe;
mod pattern;
pub(crate) mod portal;
pub(crate) mod postgres;
pub(crate) mod redis;
pub(crate) mod registry;
pub(crate) mod registry_health;
pub(crate) mod registry_log;
pub(crate) mod registry_storage;
pub(crate) mod registryctl;
mod residue;
mod schema;
pub mod status;
pub(crate) mod syntax;
pub(crate) mod trivy;
mod unknown;
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

/// API version that is stored.
pub const VERSION: &str = "v1beta1";
/// Deprecated API version, which is still served.
pub(crate) const OLD_VERSION: &str = "v1alpha3";
