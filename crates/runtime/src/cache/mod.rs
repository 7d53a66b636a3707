//! The cache: one shared watch per kind, decoded into small shapes.
//!
//! Promises:
//! - **One watch** per (kind, scope, selector) in a process, however many readers it has and whatever their
//!   shapes are. It stops with its last reader.
//! - **Small.** Each event is decoded once per shape, straight from the bytes, into a struct with only the
//!   fields that its author named ([`Shape`]). `managedFields` are skipped, strings shared, content that is
//!   only compared kept as a [`Digest`].
//! - **Nothing is missed.** Deletions during a disconnect are found by the next list and delivered as
//!   changes; a silently dead connection is detected.
//! - **Read your writes.** The response to a write through the [`Client`](crate::client::Client) is in the
//!   cache before the write returns, and reaches all subscribers once.
//! - **A broken kind affects only its readers.** Its state names the problem ([`SyncState::Blocked`]), and it
//!   recovers by itself.
//!
//! Does not: start a watch because of a read (readers are declared), copy objects on reads, resync
//! periodically, or validate.
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use windlass_runtime::cache::{Cache, Full, MetadataOnly, Selection};
//! use windlass_runtime::client::Client;
//!
//! # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
//! let cache = Cache::new(&client);
//! let configs = cache.reader::<Full<ConfigMap>>(&Selection::all().labels("app=web")?);
//! let secrets = cache.reader::<MetadataOnly<Secret>>(&Selection::all().in_namespace("shop"));
//! let _subscription = configs.subscribe(|change| println!("{:?}", change.origin));
//! cache.start();
//! configs.synced().await;
//! # Ok(())
//! # }
//! ```

mod change;
mod digest;
#[cfg(test)]
pub(crate) mod feed;
mod index;
mod informer;
mod object_map;
mod packed;
mod reader;
mod registry;
pub mod shape;
mod stats;
mod store;
mod strip_managed_fields;
mod view;
mod watch;
mod watch_state;
mod watches;
mod wire;

pub use change::{Cause, Change, Origin, Problem, RbacRule, SyncState};
pub use digest::Digest;
pub use packed::Packed;
pub use reader::{Reader, Subscription};
pub use registry::Cache;
pub use shape::{Full, MetadataOnly, OfKind, Shape};
pub use stats::WatchReport;
pub use watch_state::WatchTiming;

pub use crate::selection::{FieldSelector, InvalidSelector, LabelSelector, Selection};
