//! What controller-runtime is to Go, for Rust: a shared cache, a client, queues, controllers and the manager that runs
//! them, with leader election, webhooks, events, metrics and health around them.
//!
//! # A first operator
//!
//! For every ConfigMap labelled `mirror=yes` it keeps a copy that follows its content. This is all of it:
//!
//! ```no_run
//! use std::collections::BTreeMap;
//!
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use windlass_runtime::cache::{Cache, Full, Selection};
//! use windlass_runtime::client::{Apply, Client, ClientOptions};
//! use windlass_runtime::controller::{Controller, Outcome};
//! use windlass_runtime::key::ObjectKey;
//! use windlass_runtime::manager::Manager;
//! use windlass_runtime::object::owner::Owner;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new(kube::Config::infer().await?, ClientOptions::default())?;
//!
//! // What is read is declared. Readers of one kind and selection share one watch.
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
//!         let Some(original) = original else { return Ok(Outcome::Done) };
//!         if copy.is_some_and(|copy| copy.data == original.data) {
//!             return Ok(Outcome::Done); // converged: no request at all
//!         }
//!         // Owned, so that its changes wake us, and it goes with its original.
//!         let owner = Owner::of::<ConfigMap>(&original)?.controller_reference(copy_key.namespace())?;
//!         let desired = serde_json::json!({
//!             "apiVersion": "v1", "kind": "ConfigMap",
//!             "metadata": {"name": copy_key.name(), "labels": {"mirror": "copy"}, "ownerReferences": [owner]},
//!             "data": original.data.clone().unwrap_or_else(BTreeMap::new),
//!         });
//!         client.objects::<ConfigMap>().apply(&copy_key, &desired, &Apply::by("mirror").force()).await?;
//!         Ok(Outcome::Done)
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
//! The [controller module](controller) says what it promises; [`access`] turns what is declared into RBAC rules.
//!
//! # What it costs
//!
//! Measured with `cargo run --release -p bench -- all` on two cores of a virtual machine, 2026-11-15, with the system's
//! allocator; Pods are 10 KB of JSON, as a cluster has them:
//!
//! | what | figure |
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
//! The same with mimalloc (`--features mimalloc`) takes 1,054 B per Pod in the shape and 19 MB idle, decodes about as fast into
//! shapes and takes a fifth less time for whole objects: worth it only where those are cached.
//!
//! # The rooms
//!
//! | module | what it gives |
//! | --- | --- |
//! | [`cache`] | one shared watch per kind, decoded into small shapes; reads, indexes, changes |
//! | [`client`] | live reads and all writes, with deadlines, bounded retries and classed errors |
//! | [`controller`], [`queue`] | from a change to a reconcile: keys, priorities, backoff, workers, deadlines |
//! | [`events`] | what `kubectl describe` tells of an object's life |
//! | [`leader`] | of many replicas, one works |
//! | [`manager`] | one process: ordered start and stop, signals, readiness |
//! | [`webhook`] | what the API server asks: defaults, validation, conversion; certificates of our own |
//! | [`admin`] | health, readiness and metrics over HTTP, guarded by the cluster's RBAC |
//! | [`access`] | what is done to which kinds, as data, and the RBAC rules for exactly that |
//! | [`serve`] | the port, the connections and their orderly end |
//! | [`metrics`], [`log`] | what operators of operators look at |
//! | [`object`] | conditions, finalizers, owner references |
//! | [`key`], [`meta`], [`resource`], [`intern`] | the vocabulary: which object, what it says of itself, which kind, cheap strings |
//! | [`json`] | from a tree to a type, without more code for it |

pub mod access;
pub mod admin;
pub mod cache;
pub mod client;
pub mod controller;
pub mod events;
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
mod part;
pub mod queue;
pub mod resource;
mod selection;
pub mod serve;
mod stop;
pub mod webhook;
