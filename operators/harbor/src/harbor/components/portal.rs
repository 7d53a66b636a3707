//! What the portal is told.

use crate::api::{Portal, PortalSpec};
use crate::catalogue::Component;

use super::Wiring;

/// How many connections one worker serves at the same time.
const CONNECTIONS: i32 = 1024;

impl Wiring<'_> {
    /// The portal.
    pub fn portal(&self) -> Portal {
        let given = self.common().portal.as_ref().map(|portal| &portal.component);
        let spec = PortalSpec {
            component: self.component(given, Component::Portal),
            max_connections: CONNECTIONS,
            network: self.common().network.clone(),
            tls: self.tls(Component::Portal),
        };
        Portal { metadata: self.metadata_behind_ingress(), spec, status: None }
    }
}
