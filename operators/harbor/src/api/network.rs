//! Addresses and proxies.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::pattern;

/// The addresses on which components listen.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Network {
    /// IPv4, IPv6; both if nothing is said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ip_families: Vec<String>,
}

impl Network {
    /// The families that there are.
    pub const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];

    /// Whether this one is listened on.
    pub fn has(&self, family: &str) -> bool {
        self.ip_families.is_empty() || self.ip_families.iter().any(|named| named == family)
    }
}

/// The proxy through which a component reaches the world.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Proxy {
    /// For http.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::URL))]
    pub http_proxy: Option<String>,
    /// For https.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::URL))]
    pub https_proxy: Option<String>,
    /// Hosts that are reached without it.
    pub no_proxy: Vec<String>,
}

impl Default for Proxy {
    fn default() -> Self {
        let usual = ["127.0.0.1", "localhost", ".local", ".internal"];
        Self { http_proxy: None, https_proxy: None, no_proxy: usual.map(str::to_owned).into() }
    }
}

choice! {
    /// How Ingress controllers differ.
    IngressController { Default = "default", Gce = "gce", Ncp = "ncp", Contour = "contour" }
}

/// An Ingress.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ingress {
    /// The host name that users type.
    pub host: String,
    /// Which controller serves it, where that makes a difference.
    #[serde(default = "any_controller")]
    pub controller: IngressController,
    /// The class of the Ingress; the cluster's default if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_class_name: Option<String>,
    /// Annotations of the Ingress; they win over the operator's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

fn any_controller() -> IngressController {
    IngressController::Default
}

choice! {
    /// How a Service is reached.
    ServiceType { ClusterIp = "ClusterIP", NodePort = "NodePort", LoadBalancer = "LoadBalancer" }
}

/// A Service in front of Harbor's own proxy.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxyService {
    /// How it is reached.
    #[serde(rename = "type")]
    pub kind: ServiceType,
    /// Annotations of the Service, for the cloud that serves it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The port for http on every node, for NodePort; the cluster chooses if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub http_node_port: Option<i32>,
    /// The port for https on every node, for NodePort; the cluster chooses if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub https_node_port: Option<i32>,
    /// The class of load balancer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer_class: Option<String>,
    /// Who may reach the load balancer, as CIDRs; everybody if nothing is said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load_balancer_source_ranges: Vec<String>,
    /// How the pods of the proxy are run.
    #[serde(skip_serializing_if = "is_default")]
    pub proxy: super::component::ComponentSpec,
}

fn is_default(spec: &super::component::ComponentSpec) -> bool {
    *spec == super::component::ComponentSpec::default()
}

impl Default for ProxyService {
    fn default() -> Self {
        Self {
            kind: ServiceType::ClusterIp,
            annotations: BTreeMap::new(),
            http_node_port: None,
            https_node_port: None,
            load_balancer_class: None,
            load_balancer_source_ranges: Vec::new(),
            proxy: super::component::ComponentSpec::default(),
        }
    }
}

/// The certificate that users see.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExposeTls {
    /// The Secret with tls.crt, tls.key and ca.crt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: Option<String>,
    /// Where no Secret is named: a certificate of an authority of this Harbor's own, also for an Ingress, which otherwise has that of
    /// its controller.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub built_in: bool,
}

/// How one front door is reached.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExposeComponent {
    /// By an Ingress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Ingress>,
    /// With TLS. If no certificate is said, an Ingress has that of its controller, and Harbor's own proxy a built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<ExposeTls>,
    /// By a Service, in front of a proxy of Harbor's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ProxyService>,
}

impl ExposeComponent {
    /// The Secret with the certificate that users see.
    pub fn certificate(&self) -> Option<&str> {
        self.tls.as_ref().and_then(|tls| tls.certificate_ref.as_deref())
    }

    /// Whether that is one of an authority of this Harbor's own.
    pub fn has_built_in_certificate(&self) -> bool {
        let asked =
            |tls: &ExposeTls| tls.certificate_ref.is_none() && (tls.built_in || self.service.is_some());
        self.tls.as_ref().is_some_and(asked)
    }
}

/// How Harbor is reached.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Expose {
    /// The portal, the API and the registry.
    pub core: ExposeComponent,
    /// Notary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notary: Option<ExposeComponent>,
}
