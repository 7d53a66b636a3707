//! The applier: brings the cluster to the state of a plan, and tears a plan down again.
//!
//! It implements `plan::node::Visit`, through which nodes reach the cluster: change detection, adoption, the
//! write budget, pruning, teardown. All I/O of a plan is in this module.

mod adopt;
mod applier;
pub(crate) mod complete;
mod guard;
mod history;
mod keyring;
mod managed_fields;
mod mend;
mod predecessor;
mod present;
mod prune;
mod run;
mod teardown;
#[cfg(test)]
pub(crate) mod testing;
mod visit;
mod visits;
mod write;
pub(crate) mod writer;

pub(crate) use self::applier::{Applier, Report};
pub(crate) use self::guard::retry_after;
pub(crate) use self::history::{WRITES, WriteHistory};
pub use self::keyring::Keyring;
pub(crate) use self::prune::Pruned;
pub(crate) use self::teardown::TornDown;
pub(crate) use self::writer::Writer;
