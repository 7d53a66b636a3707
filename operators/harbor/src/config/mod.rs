//! The files and environments that Harbor's components read, rendered.
//!
//! Each component has a module with a plain input struct and a function that renders it into [`Rendered`]: what belongs into a ConfigMap, what
//! belongs into a Secret, and the environment, in which secrets are references. That secrets stay out of ConfigMaps is a matter of types:
//! secret text is [`Confidential`], and [`Rendered::config`] holds none.
//!
//! The same input gives the same bytes. Nothing here talks to a cluster, knows the custom resources, or decides about names of objects; where
//! files are mounted is said by constants beside the code that refers to them.

pub mod address;
pub mod chartmuseum;
pub mod confidential;
pub mod core_env;
pub mod database;
pub mod env;
pub mod exporter;
pub mod goduration;
pub mod htpasswd;
pub mod jobservice;
pub mod notary;
pub mod outbound;
pub mod portal;
pub mod proxy;
pub mod redis;
pub mod registry;
pub mod registryctl;
pub mod rendered;
pub mod telemetry;
pub mod token_key;
pub mod trivy;
pub mod yaml;

mod nginx;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod snapshot_tests;

pub use address::Address;
pub use confidential::Confidential;
pub use env::{Env, EnvValue, SecretKey};
pub use rendered::Rendered;
