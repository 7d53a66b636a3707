//! Connections that were upgraded (exec, port-forward): bytes pass in both directions.

use std::sync::{Arc, Mutex};

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::upstream::UpstreamBody;

/// The slot in which a request that becomes a tunnel leaves it for its connection.
pub(super) type TunnelSlot = Arc<Mutex<Option<Tunnel>>>;

/// The two ends of an upgraded connection.
pub(super) struct Tunnel {
    pub(super) client: OnUpgrade,
    pub(super) server: OnUpgrade,
    /// Keeps the server's connection alive until it is handed over.
    pub(super) carrier: UpstreamBody,
}

impl Tunnel {
    /// Copies both ways until both sides are done or one fails.
    pub(super) async fn run(self) {
        let (client, server) = match futures::try_join!(self.client, self.server) {
            Ok(ends) => ends,
            Err(error) => {
                tracing::debug!(%error, "an upgrade failed");
                return;
            }
        };
        let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
        if let Err(error) = tokio::io::copy_bidirectional(&mut client, &mut server).await {
            tracing::debug!(%error, "a tunnel ended");
        }
        drop(self.carrier);
    }
}
