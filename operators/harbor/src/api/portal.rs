//! Portal: the Harbor web interface.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::component::{ComponentSpec, Served, Tls};
use super::network::Network;
use super::status::ComponentStatus;

/// Desired state of Portal, the Harbor web interface.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "Portal",
    plural = "portals",
    namespaced,
    category = "goharbor",
    doc = "Portal serves the Harbor web interface.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct PortalSpec {
    /// Pod settings of the portal.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Maximum number of connections per nginx worker process (`worker_connections` of nginx). Default: 1024,
    /// also for 0.
    #[serde(default = "connections")]
    #[schemars(range(min = 0))]
    pub max_connections: i32,
    /// IP families on which the portal's nginx listens. If unset, it listens on IPv4 and IPv6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Internal TLS certificate of the portal. If unset, the portal serves plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

impl PortalSpec {
    /// Returns the scheme under which the portal is reached inside the cluster.
    pub fn served(&self) -> Served {
        Served::with(self.tls.as_ref())
    }
}

fn connections() -> i32 {
    1024
}
