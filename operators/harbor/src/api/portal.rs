//! The portal: the pages that users see.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::component::{ComponentSpec, Served, Tls};
use super::network::Network;
use super::status::ComponentStatus;

/// What the portal should be.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "Portal",
    plural = "portals",
    namespaced,
    category = "goharbor",
    doc = "Portal serves the pages that users see.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct PortalSpec {
    /// How its pods are run.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// How many connections one worker serves at the same time.
    #[serde(default = "connections")]
    #[schemars(range(min = 0))]
    pub max_connections: i32,
    /// The addresses on which it listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The certificate with which it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

impl PortalSpec {
    /// How it is reached inside the cluster.
    pub fn served(&self) -> Served {
        Served::with(self.tls.as_ref())
    }
}

fn connections() -> i32 {
    1024
}
