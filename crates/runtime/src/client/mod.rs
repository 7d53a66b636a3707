//! Live reads and all writes.
//!
//! Promises: every call has a deadline; it is repeated only where that is safe, a few times, and counted; an error
//! keeps its class ([`Failure`]) and never holds a body; what a write answered is in the caches of its kind before
//! the call returns.
//!
//! Does not: read from a cache behind your back (reading a declared kind is the [`Reader`](crate::cache::Reader)'s
//! job), log bodies, or limit its own rate (the API server's priority and fairness does).
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use serde_json::json;
//! use windlass_runtime::client::{Apply, Client, ClientOptions};
//! use windlass_runtime::key::ObjectKey;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new(kube::Config::infer().await?, ClientOptions::default())?;
//! let key = ObjectKey::namespaced("shop", "web");
//! let applied: ConfigMap = client
//!     .objects()
//!     .apply(
//!         &key,
//!         &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"k": "v"}}),
//!         &Apply::by("shop-operator").force(),
//!     )
//!     .await?;
//! # Ok(())
//! # }
//! ```

mod answer;
mod call;
mod error;
mod objects;
mod options;
mod pods;
mod query;
mod retry;
mod stats;
mod transport;

use std::sync::{Arc, Weak};
use std::time::Duration;

use http::HeaderValue;
use kube::Resource;
use parking_lot::RwLock;
use serde::de::DeserializeOwned;

pub use error::{ClientError, Failure, FieldCause, FieldConflict, Operation};
pub use objects::Objects;
pub use options::{Apply, Delete, Deletion, Patch, Propagation};
pub use pods::{Evict, Exec, ExecOutput};
pub use retry::RetryPolicy;
pub use stats::ClientStats;

pub(crate) use call::{retry_after, root_cause};
pub(crate) use query::{encode, selectors_query};

use crate::key::ObjectKey;
use crate::meta::Uid;
use crate::resource::{ResourceType, ScopeKind};

/// Talks to the API server. Clones share everything.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    kube: kube::Client,
    options: ClientOptions,
    user_agent: HeaderValue,
    stats: ClientStats,
    caches: RwLock<Vec<Weak<dyn Caches>>>,
}

/// How a client behaves.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// How long a call may take in all, repeats included.
    pub deadline: Duration,
    /// How calls are repeated.
    pub retry: RetryPolicy,
    /// Who we are, in the server's logs.
    pub user_agent: String,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(30),
            retry: RetryPolicy::default(),
            user_agent: concat!("windlass/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// Why a client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum InvalidClient {
    /// The user agent has characters that a header cannot hold.
    #[error("the user agent {0:?} cannot be sent as a header")]
    UserAgent(String),
    /// The configuration cannot be used.
    #[error("the configuration cannot be used: {}", root_cause(.0))]
    Config(#[source] kube::Error),
}

/// What learns of writes: the caches.
pub(crate) trait Caches: Send + Sync {
    /// Whether objects of this kind are held.
    fn hold(&self, resource: &ResourceType) -> bool;
    /// A write was answered with this object.
    fn wrote(&self, resource: &ResourceType, object: &[u8]);
    /// A write was answered: this incarnation is gone.
    fn wrote_gone(&self, resource: &ResourceType, key: &ObjectKey, uid: Uid);
}

impl Client {
    /// A client with a configuration. Calls and watches share connections by HTTP/2, where the server speaks it. kube's own retries are
    /// turned off: ours know what they repeat.
    ///
    /// Must be called within a Tokio runtime.
    pub fn new(mut config: kube::Config, options: ClientOptions) -> Result<Self, InvalidClient> {
        config.default_retry = false;
        // Ours is set on each request; one of the configuration would be put over it.
        config.headers.retain(|(name, _)| name != http::header::USER_AGENT);
        Self::from_kube(transport::client(config).map_err(InvalidClient::Config)?, options)
    }

    /// A client around one of kube's, which should not repeat calls itself.
    pub fn from_kube(kube: kube::Client, options: ClientOptions) -> Result<Self, InvalidClient> {
        let user_agent = HeaderValue::from_str(&options.user_agent)
            .map_err(|_| InvalidClient::UserAgent(options.user_agent.clone()))?;
        let inner =
            Inner { kube, options, user_agent, stats: ClientStats::default(), caches: RwLock::default() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// kube's client inside, for what is not offered here. Writes through it reach the caches by the watch only.
    pub fn kube(&self) -> &kube::Client {
        &self.inner.kube
    }

    /// What this client and its clones have done.
    pub fn stats(&self) -> &ClientStats {
        &self.inner.stats
    }

    /// How this client behaves.
    pub fn options(&self) -> &ClientOptions {
        &self.inner.options
    }

    /// The objects of a typed kind.
    pub fn objects<K>(&self) -> Objects<K>
    where
        K: Resource<DynamicType = (), Scope: ScopeKind> + DeserializeOwned,
    {
        self.objects_of(ResourceType::of::<K>())
    }

    /// The objects of any kind, decoded as `T`: a struct with the fields of interest, or a JSON value.
    pub fn objects_of<T: DeserializeOwned>(&self, resource: ResourceType) -> Objects<T> {
        Objects::new(self.clone(), resource)
    }

    pub(crate) fn user_agent(&self) -> &HeaderValue {
        &self.inner.user_agent
    }

    /// From now on, this cache learns of writes.
    pub(crate) fn feed(&self, cache: Weak<dyn Caches>) {
        let mut caches = self.inner.caches.write();
        caches.retain(|cache| cache.strong_count() > 0);
        caches.push(cache);
    }

    pub(crate) fn caches(&self) -> Vec<Arc<dyn Caches>> {
        self.inner.caches.read().iter().filter_map(Weak::upgrade).collect()
    }
}
