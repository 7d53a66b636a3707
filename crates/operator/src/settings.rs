//! Settings of a process: everything that its command line can set, as data.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use windlass::PlanMetrics;

/// Settings of a process of an operator.
///
/// The default serves nothing, elects no leader and watches all namespaces: the starting point for tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The watched namespaces; none means all.
    pub namespaces: BTreeSet<String>,
    /// The operator's own namespace, for its Lease and its certificates; `None`: the namespace of the Pod.
    pub own_namespace: Option<String>,
    /// The number of objects that each controller reconciles at the same time.
    pub workers: usize,
    /// The addresses at which health and readiness are served, in clear; metrics too, unless
    /// [`secure_metrics`](Self::secure_metrics) is set.
    pub admin: BTreeSet<SocketAddr>,
    /// The address at which metrics are served over TLS, to users with RBAC permission for `/metrics`. The
    /// certificate is kept in a Secret of the operator's own namespace. `None`: see [`admin`](Self::admin).
    pub secure_metrics: Option<SocketAddr>,
    /// The number of owners that have series of their own in `windlass_owner_condition`; 0: none.
    pub metrics_owner_limit: usize,
    /// The Lease of the leader election; `None`: the process works at once.
    pub election: Option<Lease>,
    /// The address at which webhooks are served, if the operator has any; `None`: they are not served.
    pub webhooks: Option<SocketAddr>,
    /// Names and addresses by which the API server calls the webhooks, in addition to that of their Service:
    /// for a process outside of the cluster, with configurations that name a URL.
    pub webhook_names: BTreeSet<String>,
    /// The time for which webhooks go on answering after a stop was requested. Default: zero.
    pub webhook_linger: Duration,
    /// The time that work in flight may take to finish at a stop.
    pub grace: Duration,
}

/// The Lease of the leader election; fields that are `None` default to the operator's name and namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// The name of the Lease.
    pub name: Option<String>,
    /// The namespace of the Lease.
    pub namespace: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespaces: BTreeSet::new(),
            own_namespace: None,
            workers: 16,
            admin: BTreeSet::new(),
            secure_metrics: None,
            metrics_owner_limit: PlanMetrics::OWNERS,
            election: None,
            webhooks: None,
            webhook_names: BTreeSet::new(),
            webhook_linger: Duration::ZERO,
            grace: Duration::from_secs(30),
        }
    }
}

impl Settings {
    /// Returns the same settings, restricted to these namespaces.
    #[must_use]
    pub fn in_namespaces(self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { namespaces: namespaces.into_iter().map(Into::into).collect(), ..self }
    }
}
