//! Heartbeats of the control plane's nodes: a sign from outside of the program under test that time passes.

use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};

use crate::env::TestEnv;
use crate::error::{Error, Result};

/// The namespace in which every node renews a Lease.
const NODE_LEASES: &str = "kube-node-lease";
/// The longest time for one heartbeat. A node of the test environment has one every ten seconds.
const PATIENCE: Duration = Duration::from_mins(2);

impl TestEnv {
    /// Waits until a node has renewed its Lease `count` times, about ten seconds each.
    ///
    /// A test that proves the *absence* of something, such as requests of an idle operator, needs an end of
    /// its observation. A number of heartbeats is one that a busy machine cannot cut short: while the
    /// control plane stands still, so does the count. Requests for Leases are not in the audit log.
    ///
    /// # Errors
    ///
    /// Fails if there is no node, or if a node misses its heartbeat for two minutes.
    pub async fn heartbeats(&self, count: usize) -> Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.client(), NODE_LEASES);
        let failed = || Error::api("reading the Leases of the nodes");
        let listed = leases.list(&ListParams::default()).await.map_err(failed())?;
        let lost = |why: &str| Error::TimedOut {
            what: format!("{count} heartbeats of a node"),
            seconds: PATIENCE.as_secs(),
            last: why.to_owned(),
        };
        let Some(node) = listed.items.into_iter().find_map(|lease| lease.metadata.name) else {
            return Err(lost("no node has a Lease"));
        };
        let selected = WatchParams::default().fields(&format!("metadata.name={node}"));
        let mut version = listed.metadata.resource_version.unwrap_or_default();
        let mut seen = 0;
        while seen < count {
            let mut changes = leases.watch(&selected, &version).await.map_err(failed())?.boxed();
            while seen < count {
                let next = tokio::time::timeout(PATIENCE, changes.next()).await;
                match next.map_err(|_| lost(&format!("{seen} heartbeats of {node}")))? {
                    Some(Ok(WatchEvent::Modified(lease))) => {
                        seen += 1;
                        version = lease.metadata.resource_version.unwrap_or(version);
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(failed()(error)),
                    None => break,
                }
            }
        }
        Ok(())
    }
}
