//! The unified controller: the same for every kind.
//!
//! owner from the cache → deleted, paused or not ours? → inputs → draw → run → prune → status.
//!
//! Every arrow is a place where the process may die. What is done is done; the next run reads what is true and goes on.

mod builder;
pub(crate) mod complete;
pub(crate) mod desk;
pub(crate) mod generate;
mod keyring;
mod leave;
mod node;
mod object;
pub(crate) mod owner;
mod reconcile;
pub(crate) mod renew;
mod subject;
mod supersede;
mod teardown;
mod tell;
mod text;

pub use self::builder::{Unified, UnifiedError};
pub use self::keyring::Keyring;
