//! The unified controller: the same for every kind.
//!
//! owner from the cache → deleted, paused or not ours? → inputs → draw → run → prune → status.
//!
//! Every arrow is a place where the process may die. What is done is done; the next run reads what is true and goes on.

mod builder;
mod complete;
mod desk;
mod generate;
mod keyring;
mod leave;
mod node;
mod object;
mod owner;
mod reconcile;
mod renew;
mod subject;
mod supersede;
mod teardown;
mod tell;
mod text;

pub use self::builder::{Unified, UnifiedError};
pub use self::keyring::Keyring;
