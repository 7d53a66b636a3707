//! The Portal of a Harbor.

use crate::api::{Portal, PortalSpec};
use crate::catalogue::Component;

use super::Wiring;

/// Connections of one nginx worker (`worker_connections`).
const CONNECTIONS: i32 = 1024;

impl Wiring<'_> {
    /// Returns the Portal.
    pub(crate) fn portal(&self) -> Portal {
        let spec = self.common().portal.as_ref().map(|portal| &portal.component);
        let spec = PortalSpec {
            component: self.component(spec, Component::Portal),
            max_connections: CONNECTIONS,
            network: self.common().network.clone(),
            tls: self.tls(Component::Portal),
        };
        Portal { metadata: self.metadata_behind_ingress(), spec, status: None }
    }
}
