//! Everything that components share on the way from a spec to objects.
//!
//! For every component: names, selectors and ports never change; pods meet the restricted Pod Security
//! Standard, have probes and stop gracefully; pods are replaced when a Secret or ConfigMap that they read
//! changes, but not by a new release of this operator; a missing input is waited for and named in the status.
//!
//! One file is one concept: [`Site`] has the names, [`version`] the release and the image, [`Sources`] the
//! values from Secrets, [`Pod`] the pod template, [`service`], [`policy`] and [`disruption`] the objects
//! around it, and [`ComponentObjects`] the objects of a component from which [`ComponentBlueprint`] draws the
//! plan. No file here depends on a particular component.

mod blueprint;
mod convert;
mod deployment;
pub(crate) mod disruption;
mod pod;
pub(crate) mod policy;
mod probe;
pub(crate) mod service;
mod site;
mod sources;
mod trust;
pub(crate) mod version;
mod volume;

pub use blueprint::{ComponentBlueprint, Config, Deployed};
pub(crate) use blueprint::{ComponentObjects, RenderContext};
pub(crate) use blueprint::{in_progress, status};
pub(crate) use convert::{count, duration, host, hosts, port, seconds_of};
pub(crate) use deployment::Strategy;
pub(crate) use deployment::deployment;
pub(crate) use deployment::deployment_spec;
pub(crate) use pod::Container;
pub(crate) use pod::at_field;
pub use pod::{Pod, USER};
pub(crate) use probe::{Check, Probes};
pub(crate) use site::Site;
pub(crate) use sources::{DATABASE_KEYS, Sources, unusable_password};
pub(crate) use trust::Trust;
pub(crate) use volume::{config_map, empty, mount, mount_part, secret, secret_if_there};
