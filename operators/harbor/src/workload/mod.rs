//! What all components have in common: how the spec of one becomes objects.
//!
//! Promises, for every component alike: names, selectors and ports that never change; pods that pass the restricted level of pod
//! security, are probed, and stop gracefully; that pods are replaced when a Secret or ConfigMap they read changes, and for no
//! release of this operator; that whatever is missing is waited for, by name.
//!
//! One file is one concept: [`Site`] says what things are called, [`version`] which Harbor is meant, [`Sources`] what Secrets give,
//! [`Pod`] what runs, [`service`], [`policy`] and [`disruption`] what stands around it, and [`Parts`] what a component gives the
//! [`ComponentBlueprint`] that makes a plan of it all. No file here knows a particular component.

mod blueprint;
mod convert;
mod deployment;
pub mod disruption;
mod pod;
pub mod policy;
mod probe;
pub mod service;
mod site;
mod sources;
mod trust;
pub mod version;
mod volume;

pub(crate) use blueprint::status;
pub use blueprint::{ComponentBlueprint, Config, Deployed, Making, Parts, Vault};
pub(crate) use convert::{count, duration, host, hosts, port, seconds_of};
pub(crate) use deployment::deployment_spec;
pub use deployment::{Strategy, deployment};
pub(crate) use pod::at_field;
pub use pod::{Container, Pod, USER};
pub use probe::{Check, Probes};
pub use site::Site;
pub use sources::Sources;
pub use trust::Trust;
pub(crate) use volume::{config_map, empty, mount, mount_part, secret, secret_if_there};
