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

/// The field manager of the Lease.
const MANAGER: &str = "windlass-leader-election";

/// Timeout of a watch request in seconds: the longest that kube permits.
const WATCH_SECONDS: u32 = 290;

/// The operations of a campaign on a Lease. There are two implementations: the real one, and one for tests.
pub(super) trait Lock: Sync {
    /// Reads the Lease; `None` if it does not exist. Cancel safe.
    fn read(&self) -> impl Future<Output = Result<Option<Found>, LeaseError>> + Send;
    /// Writes the Lease and returns its new form. A cancelled write may or may not have been done.
    fn write(&self, write: &Write) -> impl Future<Output = Result<Found, LeaseError>> + Send;
    /// Watches the Lease from a resource version. The stream ends, or fails, when the watch does.
    fn changes(&self, since: Option<&str>) -> BoxStream<'static, Result<Option<Found>, LeaseError>>;
}

/// A failed request: its meaning for the protocol, and a message.
#[derive(Clone, Debug)]
pub(super) struct LeaseError {
    pub(super) failed: Failed,
    pub(super) message: String,
}

impl fmt::Display for LeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<ClientError> for LeaseError {
    fn from(error: ClientError) -> Self {
        let certain = error.is_conflict() || error.is_already_exists();
        let remedy = if error.is_forbidden() {
            "; the role of this account must allow get, create, patch and preferably watch of leases in coordination.k8s.io"
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
    async fn read(&self) -> Result<Option<Found>, LeaseError> {
        let lease = self.client.objects::<Lease>().find(&self.key).await?;
        Ok(lease.as_ref().map(Found::from))
    }

    async fn write(&self, write: &Write) -> Result<Found, LeaseError> {
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
                // A merge patch with a resource version is rejected if the object has a different one, and
                // keeps fields that it does not name.
                lease["metadata"]["resourceVersion"] = json!(version);
                leases.patch(&self.key, &Patch::Merge(lease), MANAGER).await
            }
        };
        match written {
            Ok(lease) => Ok(Found::from(&lease)),
            // The Lease was deleted meanwhile, so nothing was written.
            Err(error) if error.is_not_found() && write.replaces.is_some() => {
                Err(LeaseError { failed: Failed::Conflict, message: error.to_string() })
            }
            Err(error) => Err(error.into()),
        }
    }

    fn changes(&self, since: Option<&str>) -> BoxStream<'static, Result<Option<Found>, LeaseError>> {
        let namespace = self.key.namespace().unwrap_or_default();
        let leases = Api::<Lease>::namespaced(self.client.kube().clone(), namespace);
        let wanted = WatchParams::default()
            .fields(&format!("metadata.name={}", self.key.name()))
            .timeout(WATCH_SECONDS);
        let since = since.unwrap_or("0").to_owned();
        let events = async move {
            let events = leases.watch(&wanted, &since).await.map_err(unheard)?;
            Ok::<_, LeaseError>(events.map_err(unheard))
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
                    Ok(WatchEvent::Error(status)) => Some(Err(LeaseError {
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

fn unheard(error: kube::Error) -> LeaseError {
    let why = match error {
        kube::Error::Api(status) => status.message,
        other => root_cause(&other),
    };
    LeaseError { failed: Failed::Unknown, message: format!("the Lease cannot be watched: {why}") }
}
