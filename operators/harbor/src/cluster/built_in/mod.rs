//! Dependencies that this operator runs: one PostgreSQL server, one Redis or Valkey server, and a claim for
//! images.
//!
//! Each server is one pod with its own volume, under the restricted Pod Security Standard, and has a password
//! that is generated once. Volumes and passwords are retained when the HarborCluster is deleted. The images
//! are those of the Harbor release, so that a mirror of Harbor's images is enough; each database image can
//! read the data of the release before it.
//!
//! Does not replicate and makes no backups: use an external server or another operator for these.

mod cache;
mod claim;
mod database;
mod server;
mod storage;

pub(crate) use cache::cache;
pub(crate) use database::database;
pub(crate) use storage::storage;
