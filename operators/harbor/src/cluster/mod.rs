//! HarborCluster: a Harbor, with the cache, the database and the storage that it needs.
//!
//! Promises: each of the three is an external one as the user gives it, one that another operator runs, or one that we run; what the
//! Harbor is told of it are names, of hosts and of Secrets, never what is in a Secret; it is told when they are healthy, and not before.
//! Data and the passwords without which it is worthless outlive the HarborCluster, unless its deletion policy says otherwise, and the next
//! one of that name finds them.
//!
//! Does not move data from one kind to another: that switch is refused at admission.
//!
//! Read [`blueprint`](HarborClusterBlueprint) first; then [`delegated`] and [`built_in`], one file for each way to have a part, [`Site`] for what they share, and
//! `status` for what is said of it all.

mod blueprint;
pub mod built_in;
mod child;
pub mod delegated;
mod names;
mod part;
mod password;
mod site;
mod status;

pub use blueprint::HarborClusterBlueprint;
pub use names::Names;
pub use part::Part;
pub use site::{Image, Site};
