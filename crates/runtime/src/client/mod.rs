//! Live reads and all writes.

use std::sync::Arc;

/// Talks to the API server. Clones share everything.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    kube: kube::Client,
}

impl Client {
    /// A client around one of kube's.
    pub fn from_kube(kube: kube::Client) -> Self {
        Self {
            inner: Arc::new(Inner { kube }),
        }
    }

    /// kube's client inside.
    pub fn kube(&self) -> &kube::Client {
        &self.inner.kube
    }
}
