//! The client: live reads and all writes.
//!
//! Promises: every call has a deadline; it is repeated only where that is safe, a few times, and counted; an
//! error keeps its class ([`Failure`]) and never contains a body; the response to a write is in the caches of
//! its kind before the call returns.
//!
//! Does not: read from a cache implicitly (declared kinds are read through a
//! [`Reader`](crate::cache::Reader)), log bodies, or limit its own rate (the API server's priority and
//! fairness does).
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

use std::path::{Path, PathBuf};
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
pub use stats::{ClientStats, Durations};

pub(crate) use call::{retry_after, root_cause};
pub(crate) use query::{encode, selectors_query};

use crate::fence::Fence;
use crate::key::ObjectKey;
use crate::meta::Uid;
use crate::resource::{ResourceType, ScopeKind};

/// A client of the API server. Clones share connections, counters and caches.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    kube: kube::Client,
    /// Another transport to the same server; `None` for a client made from one of kube's.
    other: Option<kube::Client>,
    options: ClientOptions,
    user_agent: HeaderValue,
    stats: Arc<ClientStats>,
    caches: Arc<RwLock<Vec<Weak<dyn Caches>>>>,
    /// Writes need this fence to be open.
    fence: Option<Fence>,
}

/// Options of a client.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Deadline of a call, including its retries.
    pub deadline: Duration,
    /// The retry policy of calls.
    pub retry: RetryPolicy,
    /// The user agent, as the server logs it.
    pub user_agent: String,
    /// The file of the API server's CA, which is read again whenever a connection is opened: the CA of a
    /// cluster is rotated while Pods run. `None`: in a Pod, the file beside the token of its ServiceAccount;
    /// elsewhere, the CA of the configuration is used without end.
    pub ca_file: Option<PathBuf>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(30),
            retry: RetryPolicy::default(),
            user_agent: concat!("windlass/", env!("CARGO_PKG_VERSION")).to_owned(),
            ca_file: None,
        }
    }
}

/// The reason why a client cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum InvalidClient {
    /// The user agent has characters that are not allowed in a header.
    #[error("the user agent {0:?} cannot be sent as a header")]
    UserAgent(String),
    /// The configuration cannot be used.
    #[error("the configuration cannot be used: {}", root_cause(.0))]
    Config(#[source] kube::Error),
}

/// Returns the file of the CA if this configuration is that of a Pod: it lies beside the token.
fn ca_of_pod(config: &kube::Config) -> Option<PathBuf> {
    const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
    let token = config.auth_info.token_file.as_ref()?;
    (Path::new(token).parent() == Some(Path::new(ACCOUNT))).then(|| Path::new(ACCOUNT).join("ca.crt"))
}

/// Receivers of write responses: the caches.
pub(crate) trait Caches: Send + Sync {
    /// Returns true if objects of this kind are cached.
    fn hold(&self, resource: &ResourceType) -> bool;
    /// Handles a write that was answered with this object.
    fn wrote(&self, resource: &ResourceType, object: &[u8]);
    /// Handles a write after which the object with this uid is deleted.
    fn wrote_gone(&self, resource: &ResourceType, key: &ObjectKey, uid: Uid);
}

impl Client {
    /// Creates a client for a configuration. Calls and watches share HTTP/2 connections if the server
    /// supports them. kube's own retries are disabled: the retries of this client know what may be repeated.
    ///
    /// Must be called within a Tokio runtime.
    pub fn new(mut config: kube::Config, options: ClientOptions) -> Result<Self, InvalidClient> {
        config.default_retry = false;
        // The user agent is set on each request; one in the configuration would override it.
        config.headers.retain(|(name, _)| name != http::header::USER_AGENT);
        let ca_file = options.ca_file.clone().or_else(|| ca_of_pod(&config));
        let client = |config| transport::client(config, ca_file.clone()).map_err(InvalidClient::Config);
        let other = client(config.clone())?;
        Self::build(client(config)?, Some(other), options)
    }

    /// Creates a client from one of kube's, which should not retry calls itself.
    pub fn from_kube(kube: kube::Client, options: ClientOptions) -> Result<Self, InvalidClient> {
        Self::build(kube, None, options)
    }

    fn build(
        kube: kube::Client,
        other: Option<kube::Client>,
        options: ClientOptions,
    ) -> Result<Self, InvalidClient> {
        let user_agent = HeaderValue::from_str(&options.user_agent)
            .map_err(|_| InvalidClient::UserAgent(options.user_agent.clone()))?;
        let (stats, caches) = (Arc::default(), Arc::default());
        Ok(Self { inner: Arc::new(Inner { kube, other, options, user_agent, stats, caches, fence: None }) })
    }

    /// Returns a client that shares no connection with this one, but its counters and caches. A connection
    /// that hangs or is at its capacity does not delay it: the election uses it for the Lease.
    ///
    /// A client made by [`from_kube`](Self::from_kube) has no second transport, and is returned as it is.
    #[must_use]
    pub fn with_own_connections(&self) -> Self {
        let Some(kube) = self.inner.other.clone() else { return self.clone() };
        Self { inner: Arc::new(Inner { kube, other: None, fence: None, ..Inner::clone(&self.inner) }) }
    }

    /// Returns a client for the leader only: its writes fail with [`Failure::Fenced`], without being sent,
    /// when the lease deadline has passed. It shares connections, counters and caches with this one.
    ///
    /// The fence is checked right before each send, and again by the transport when the connection is open.
    /// Reads and watches are not fenced.
    #[must_use]
    pub fn fenced(&self, fence: &Fence) -> Self {
        Self { inner: Arc::new(Inner { fence: Some(fence.clone()), ..Inner::clone(&self.inner) }) }
    }

    /// The fence of a client for the leader only, for other I/O of the leader.
    pub fn fence(&self) -> Option<&Fence> {
        self.inner.fence.as_ref()
    }

    /// The underlying kube client, for operations that this client does not offer. Writes through it are
    /// not fenced, and reach the caches only by the watch.
    pub fn kube(&self) -> &kube::Client {
        &self.inner.kube
    }

    /// The counters of this client and its clones.
    pub fn stats(&self) -> &ClientStats {
        &self.inner.stats
    }

    /// The options of this client.
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

    /// Adds a cache that receives write responses from now on.
    pub(crate) fn feed(&self, cache: Weak<dyn Caches>) {
        let mut caches = self.inner.caches.write();
        caches.retain(|cache| cache.strong_count() > 0);
        caches.push(cache);
    }

    pub(crate) fn caches(&self) -> Vec<Arc<dyn Caches>> {
        self.inner.caches.read().iter().filter_map(Weak::upgrade).collect()
    }
}
