//! The runtime of an operator, comparable to Go's controller-runtime: a shared cache, a client, queues,
//! controllers and the manager that runs them, with leader election, webhooks, events, metrics and health
//! checks.
//!
//! # A first operator
//!
//! This operator keeps a copy of every ConfigMap labelled `mirror=yes`. It is complete:
//!
//! ```no_run
//! use std::collections::BTreeMap;
//!
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use windlass_runtime::cache::{Cache, Full, Selection};
//! use windlass_runtime::client::{Apply, Client, ClientOptions};
//! use windlass_runtime::controller::{Controller, Requeue};
//! use windlass_runtime::key::ObjectKey;
//! use windlass_runtime::manager::Manager;
//! use windlass_runtime::object::owner::Owner;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new(kube::Config::infer().await?, ClientOptions::default())?;
//!
//! // Readers are declared. Readers of one kind and selection share one watch.
//! let cache = Cache::new(&client);
//! let originals = cache.reader::<Full<ConfigMap>>(&Selection::all().labels("mirror=yes")?);
//! let copies = cache.reader::<Full<ConfigMap>>(&Selection::all().labels("mirror=copy")?);
//!
//! // A reconcile gets a key, reads the cache, and writes what differs. It runs when the original
//! // changes, when the copy it owns does, and once more when the original is gone.
//! let mirror = Controller::for_(&originals).owns(&copies).name("mirror").build(move |key: ObjectKey| {
//!     let (original, client) = (originals.get(&key), client.clone());
//!     let copy_key = ObjectKey::namespaced(key.namespace().unwrap_or_default(), format!("{}-copy", key.name()));
//!     let copy = copies.get(&copy_key);
//!     async move {
//!         let Some(original) = original else { return Ok(Requeue::OnChange) };
//!         if copy.is_some_and(|copy| copy.data == original.data) {
//!             return Ok(Requeue::OnChange); // converged: no request at all
//!         }
//!         // Owned, so that its changes wake us, and it goes with its original.
//!         let owner = Owner::of::<ConfigMap>(&original)?.controller_reference(copy_key.namespace())?;
//!         let desired = serde_json::json!({
//!             "apiVersion": "v1", "kind": "ConfigMap",
//!             "metadata": {"name": copy_key.name(), "labels": {"mirror": "copy"}, "ownerReferences": [owner]},
//!             "data": original.data.clone().unwrap_or_else(BTreeMap::new),
//!         });
//!         client.objects::<ConfigMap>().apply(&copy_key, &desired, &Apply::by("mirror").force()).await?;
//!         Ok(Requeue::OnChange)
//!     }
//! })?;
//!
//! let mut manager = Manager::new();
//! manager.cache(&cache)?;
//! manager.controller(mirror)?;
//! manager.run().await?; // until SIGTERM or Ctrl-C; work in flight is finished
//! # Ok(())
//! # }
//! ```
//!
//! The [controller module](controller) lists the guarantees; [`access`] turns the declared access into RBAC
//! rules.
//!
//! # Cost
//!
//! Measured with `cargo run --release -p bench -- all` on two cores of a virtual machine, 2026-11-15, with
//! the system's allocator; a Pod has 10 KB of JSON, as in a typical cluster:
//!
//! | measured | figure |
//! | --- | ---: |
//! | resident memory per cached Pod, as a shape (name, labels, owner, node, phase, address, conditions) | 944 B |
//! | the same, metadata only | 718 B |
//! | the same, [whole object](cache::Full) | 44.9 KB |
//! | decoding an event into the shape | 13.3 µs |
//! | decoding it into the whole object without `managedFields` | 45 µs |
//! | decoding it with k8s-openapi's own type, for comparison | 64 µs |
//! | reconciles that do nothing, one worker | 499,000 per second |
//! | an idle operator with one controller and one watch | 8.6 MB |
//!
//! The same with mimalloc (`--features mimalloc`) takes 1,054 B per Pod in the shape and 19 MB idle, decodes
//! about as fast into shapes and takes a fifth less time for whole objects: useful only where whole objects
//! are cached.
//!
//! # Modules
//!
//! | module | content |
//! | --- | --- |
//! | [`cache`] | one shared watch per kind, decoded into small shapes; reads, indexes, changes |
//! | [`client`] | live reads and all writes, with deadlines, bounded retries and classed errors |
//! | [`controller`], [`queue`] | reconciles of changed objects: keys, priorities, backoff, workers, deadlines |
//! | [`events`] | Kubernetes events, as `kubectl describe` shows them |
//! | [`leader`] | leader election by a Lease |
//! | [`manager`] | one process: ordered start and stop, signals, readiness |
//! | [`webhook`] | admission and conversion webhooks: defaults, validation, conversion; certificates |
//! | [`admin`] | health, readiness and metrics over HTTP, guarded by the cluster's RBAC |
//! | [`access`] | declared access to kinds, and the RBAC rules generated from it |
//! | [`serve`] | HTTP serving: port, connections, graceful stop |
//! | [`metrics`], [`log`] | metrics and log output |
//! | [`object`] | conditions, finalizers, owner references |
//! | [`key`], [`meta`], [`resource`], [`intern`] | object keys, metadata, kinds, interned strings |
//! | [`json`] | conversion of JSON values to types |

pub mod access;
pub mod admin;
pub mod cache;
pub mod client;
pub mod controller;
pub mod events;
mod fence;
pub mod intern;
mod jitter;
pub mod json;
pub mod key;
pub mod leader;
pub mod log;
pub mod manager;
pub mod meta;
pub mod metrics;
pub mod object;
mod panics;
pub mod queue;
pub mod resource;
mod runnable;
mod selection;
pub mod serve;
mod stop;
pub mod webhook;
