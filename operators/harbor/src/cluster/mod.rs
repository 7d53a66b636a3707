//! HarborCluster: a Harbor with its cache, database and storage.
//!
//! Each of the three dependencies is external (the user names it), delegated (another operator runs it) or
//! built in (this operator runs it). The Harbor gets the names of hosts and Secrets, never the content of a
//! Secret, and only once the dependency is healthy. Data, and the passwords that protect it, are retained
//! when the HarborCluster is deleted, unless its deletion policy says otherwise; a later HarborCluster of the
//! same name uses them again.
//!
//! Does not migrate data from one kind to another: such a switch is refused at admission.
//!
//! Read [`blueprint`](HarborClusterBlueprint) first, then [`delegated`] and [`built_in`] with one file for
//! each dependency, [`Site`] for what they share, and `status` for the status of the HarborCluster.

mod blueprint;
pub(crate) mod built_in;
mod child;
pub mod delegated;
mod dependency;
mod names;
mod password;
mod site;
mod status;

pub use blueprint::HarborClusterBlueprint;
pub use dependency::Dependency;
pub use names::Names;
pub(crate) use site::{Image, Site};
