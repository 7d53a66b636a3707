//! Kind Harbor: all components, connected with each other.
//!
//! Read [`blueprint`] first: it is the whole graph, one line for each node. The other files have the nodes:
//! [`credentials`] and [`tls`] the generated Secrets, [`token`] the key that signs tokens, [`components`] the
//! specs of the components, [`expose`] and [`proxy`] the entry points, [`policies`] the NetworkPolicies,
//! [`names`] the names of all objects.
//!
//! Apart from the [`proxy`], nothing here runs pods: the components have controllers of their own.

pub(crate) mod blueprint;
mod certificates;
pub mod certmanager;
pub(crate) mod components;
pub(crate) mod credentials;
mod data;
pub(crate) mod expose;
pub(crate) mod names;
mod password;
pub(crate) mod pki;
pub(crate) mod policies;
pub(crate) mod proxy;
mod secrets;
pub(crate) mod tls;
pub(crate) mod token;
pub(crate) mod upgrade;

pub use blueprint::HarborBlueprint;
