//! How a process runs: everything that its command line can say, as data.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

/// How a process of an operator runs.
///
/// The default serves nothing, elects nobody and looks at all namespaces: what a test starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The namespaces that it looks at; none: all.
    pub namespaces: BTreeSet<String>,
    /// The namespace that it lives in, for its Lease and its certificates; `None`: that of the Pod.
    pub own_namespace: Option<String>,
    /// How many objects each controller reconciles at the same time.
    pub workers: usize,
    /// Where health, readiness and metrics are served: one server, at each of these.
    pub admin: BTreeSet<SocketAddr>,
    /// The Lease by which one of several replicas is elected; `None`: it works at once.
    pub election: Option<Lease>,
    /// Where webhooks are served, if the operator has any; `None`: they are not.
    pub webhooks: Option<SocketAddr>,
    /// Names and addresses by which the API server calls the webhooks, beside that of their Service: for a process outside of
    /// the cluster, whose configurations name a URL.
    pub webhook_names: BTreeSet<String>,
    /// How long work in flight may take to finish at a stop.
    pub grace: Duration,
}

/// Which Lease; what is `None` goes by the operator's name and namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// Its name.
    pub name: Option<String>,
    /// Its namespace.
    pub namespace: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespaces: BTreeSet::new(),
            own_namespace: None,
            workers: 2,
            admin: BTreeSet::new(),
            election: None,
            webhooks: None,
            webhook_names: BTreeSet::new(),
            grace: Duration::from_secs(30),
        }
    }
}

impl Settings {
    /// The same, looking at these namespaces only.
    #[must_use]
    pub fn in_namespaces(self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { namespaces: namespaces.into_iter().map(Into::into).collect(), ..self }
    }
}
