//! Parts that we run ourselves: PostgreSQL and Redis or Valkey as one server each, and a claim for images.
//!
//! Promises: one pod with a volume of its own, under the restricted level of pod security; a password that is generated once; volumes
//! and passwords that outlive the HarborCluster. The images are those that a release of Harbor comes with, so a mirror of Harbor's
//! images is enough, and the database's data follows the release: each image can read what the one before it wrote.
//!
//! Does not replicate, and makes no backups: whoever needs that names an external server, or another operator.

mod cache;
mod claim;
mod database;
mod server;
mod storage;

pub use cache::cache;
pub use database::database;
pub use storage::storage;
