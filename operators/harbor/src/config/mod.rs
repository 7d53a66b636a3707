//! Renders the configuration files and environments of Harbor's components.
//!
//! Each component has a module with a plain input struct and a function that renders it into [`Rendered`]:
//! the data of a ConfigMap, the data of a Secret, and the environment, in which secrets are references. The
//! types keep secrets out of ConfigMaps: secret text is [`Confidential`], and [`Rendered::config`] holds
//! none.
//!
//! The same input gives the same bytes. Nothing here accesses a cluster, depends on the custom resources, or
//! chooses names of objects. Mount paths are constants beside the code that refers to them.

pub(crate) mod address;
pub(crate) mod cache_layer;
pub(crate) mod chartmuseum;
pub(crate) mod confidential;
pub(crate) mod core_env;
pub mod database;
pub(crate) mod env;
pub(crate) mod exporter;
pub(crate) mod goduration;
pub mod htpasswd;
pub(crate) mod jobservice;
pub(crate) mod notary;
pub mod outbound;
pub mod portal;
pub mod proxy;
pub mod redis;
pub mod registry;
pub(crate) mod registryctl;
pub(crate) mod rendered;
pub(crate) mod telemetry;
pub mod token_key;
pub(crate) mod trivy;
pub(crate) mod yaml;

mod nginx;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod snapshot_tests;

pub use address::Address;
pub use confidential::Confidential;
pub(crate) use env::SecretKey;
pub use env::{Env, EnvValue};
pub use rendered::Rendered;
