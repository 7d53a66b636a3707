//! The Lease on the API server.

use std::collections::BTreeMap;
use std::fmt;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, WatchEvent, WatchParams};
use serde_json::json;

use super::protocol::{Failed, Write};
use super::record::Found;
use crate::client::{Client, ClientError, Patch, root_cause};
use crate::key::ObjectKey;

/// In whose name the Lease is written.
const MANAGER: &str = "windlass-leader-election";

/// How long the server keeps a watch open, in seconds; as long as kube permits.
const WATCH_SECONDS: u32 = 290;

/// What a campaign needs of a Lease. There are two: the real one, and that of the tests.
pub(super) trait Lock: Sync {
    /// The Lease, if there is one. Cancel safe.
    fn read(&self) -> impl Future<Output = Result<Option<Found>, Refusal>> + Send;
    /// Writes it; the Lease as it is then. Cancelled, it may or may not have been done.
    fn write(&self, write: &Write) -> impl Future<Output = Result<Found, Refusal>> + Send;
    /// What becomes of it after a version. Ends, or fails, when it can tell no more.
    fn changes(&self, since: Option<&str>) -> BoxStream<'static, Result<Option<Found>, Refusal>>;
}

/// A request that failed: what that means, and how to say it.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) failed: Failed,
    pub(super) message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<ClientError> for Refusal {
    fn from(error: ClientError) -> Self {
        let certain = error.is_conflict() || error.is_already_exists();
        let remedy = if error.is_forbidden() {
            "; the role of this account must allow get, create, patch and (better) watch of leases in coordination.k8s.io"
        } else {
            ""
        };
        Self {
            failed: if certain { Failed::Conflict } else { Failed::Unknown },
            message: format!("{error}{remedy}"),
        }
    }
}

/// A Lease on the API server.
#[derive(Clone)]
pub(super) struct LeaseLock {
    pub(super) client: Client,
    pub(super) key: ObjectKey,
    pub(super) labels: BTreeMap<String, String>,
}

impl Lock for LeaseLock {
    async fn read(&self) -> Result<Option<Found>, Refusal> {
        let lease = self.client.objects::<Lease>().find(&self.key).await?;
        Ok(lease.as_ref().map(Found::from))
    }

    async fn write(&self, write: &Write) -> Result<Found, Refusal> {
        let leases = self.client.objects::<Lease>();
        let mut lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.key.name(), "namespace": self.key.namespace()},
            "spec": write.record.to_spec(),
        });
        if !self.labels.is_empty() {
            lease["metadata"]["labels"] = json!(self.labels);
        }
        let written = match &write.replaces {
            None => leases.create(&self.key, &lease).await,
            Some(version) => {
                // A merge patch that names a version is refused if it is another, and leaves alone what it does not name.
                lease["metadata"]["resourceVersion"] = json!(version);
                leases.patch(&self.key, &Patch::Merge(lease), MANAGER).await
            }
        };
        match written {
            Ok(lease) => Ok(Found::from(&lease)),
            // Deleted meanwhile, so nothing was written.
            Err(error) if error.is_not_found() && write.replaces.is_some() => {
                Err(Refusal { failed: Failed::Conflict, message: error.to_string() })
            }
            Err(error) => Err(error.into()),
        }
    }

    fn changes(&self, since: Option<&str>) -> BoxStream<'static, Result<Option<Found>, Refusal>> {
        let namespace = self.key.namespace().unwrap_or_default();
        let leases = Api::<Lease>::namespaced(self.client.kube().clone(), namespace);
        let wanted = WatchParams::default()
            .fields(&format!("metadata.name={}", self.key.name()))
            .timeout(WATCH_SECONDS);
        let since = since.unwrap_or("0").to_owned();
        let events = async move {
            let events = leases.watch(&wanted, &since).await.map_err(unheard)?;
            Ok::<_, Refusal>(events.map_err(unheard))
        };
        futures::stream::once(events)
            .try_flatten()
            .filter_map(|event| {
                let seen = match event {
                    Ok(WatchEvent::Added(lease) | WatchEvent::Modified(lease)) => {
                        Some(Ok(Some(Found::from(&lease))))
                    }
                    Ok(WatchEvent::Deleted(_)) => Some(Ok(None)),
                    Ok(WatchEvent::Bookmark(_)) => None,
                    Ok(WatchEvent::Error(status)) => Some(Err(Refusal {
                        failed: Failed::Unknown,
                        message: format!("the watch of the Lease failed: {}", status.message),
                    })),
                    Err(refusal) => Some(Err(refusal)),
                };
                futures::future::ready(seen)
            })
            .boxed()
    }
}

fn unheard(error: kube::Error) -> Refusal {
    let why = match error {
        kube::Error::Api(status) => status.message,
        other => root_cause(&other),
    };
    Refusal { failed: Failed::Unknown, message: format!("the Lease cannot be watched: {why}") }
}
