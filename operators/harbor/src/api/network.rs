//! IP families, HTTP proxies, and how Harbor is exposed to users.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::pattern;

/// IP families on which components listen.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Network {
    /// IP families to listen on: `IPv4`, `IPv6`. If empty, both. Used by the portal and the nginx of
    /// `expose.core.service`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ip_families: Vec<String>,
}

impl Network {
    /// The IP families that exist.
    pub(crate) const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];

    /// Returns true if components listen on the given family.
    pub fn has(&self, family: &str) -> bool {
        self.ip_families.is_empty() || self.ip_families.iter().any(|named| named == family)
    }
}

/// HTTP proxy for outbound connections. It has no effect if neither `httpProxy` nor `httpsProxy` is set.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Proxy {
    /// URL of the proxy for http requests (`HTTP_PROXY`). If unset, they are sent directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::URL))]
    pub http_proxy: Option<String>,
    /// URL of the proxy for https requests (`HTTPS_PROXY`). If unset, they are sent directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::URL))]
    pub https_proxy: Option<String>,
    /// Hosts and domains that are reached without the proxy (`NO_PROXY`). Default: `127.0.0.1`, `localhost`,
    /// `.local`, `.internal`. Core and JobService add the other components.
    pub no_proxy: Vec<String>,
}

impl Default for Proxy {
    fn default() -> Self {
        let usual = ["127.0.0.1", "localhost", ".local", ".internal"];
        Self { http_proxy: None, https_proxy: None, no_proxy: usual.map(str::to_owned).into() }
    }
}

choice! {
    /// Ingress controllers that need different annotations.
    IngressController { Default = "default", Gce = "gce", Ncp = "ncp", Contour = "contour" }
}

/// Ingress that exposes a component.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ingress {
    /// Host name of the Ingress rule, such as `harbor.example.com`.
    pub host: String,
    /// Ingress controller, for the annotations that it needs: `default`, `gce`, `ncp` or `contour`. Default:
    /// `default`. Notary uses the controller of `expose.core`.
    #[serde(default = "any_controller")]
    pub controller: IngressController,
    /// Name of the IngressClass. If unset, the default IngressClass of the cluster applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_class_name: Option<String>,
    /// Annotations of the Ingress. They override those that the operator sets. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

fn any_controller() -> IngressController {
    IngressController::Default
}

choice! {
    /// Type of a Service, as in Kubernetes.
    ServiceType { ClusterIp = "ClusterIP", NodePort = "NodePort", LoadBalancer = "LoadBalancer" }
}

/// Service with an nginx of its own in front of Core and the portal, instead of an Ingress.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxyService {
    /// Type of the Service: `ClusterIP`, `NodePort` or `LoadBalancer`. Default: `ClusterIP`.
    #[serde(rename = "type")]
    pub kind: ServiceType,
    /// Annotations of the Service, for example for the cloud's load balancer. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Node port for http, for the types `NodePort` and `LoadBalancer`. If unset, Kubernetes assigns one.
    /// Rejected for `ClusterIP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub http_node_port: Option<i32>,
    /// Node port for https, for the types `NodePort` and `LoadBalancer`. If unset, Kubernetes assigns one.
    /// Rejected for `ClusterIP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub https_node_port: Option<i32>,
    /// Load balancer class of the Service, for type `LoadBalancer`. If unset, the default of the cluster
    /// applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer_class: Option<String>,
    /// Client IP ranges in CIDR notation that may reach the load balancer, for type `LoadBalancer`. If empty,
    /// all may.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load_balancer_source_ranges: Vec<String>,
    /// Pod settings of the nginx proxy. If unset, the defaults of its fields apply.
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

/// Certificate presented to users.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExposeTls {
    /// Name of the Secret with the certificate, in keys `tls.crt`, `tls.key` and `ca.crt`. If unset, an
    /// Ingress uses the default certificate of its controller unless `builtIn` is true, and a Service uses a
    /// built-in certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: Option<String>,
    /// Issue a certificate from a CA that the operator creates for this Harbor, if `certificateRef` is unset.
    /// Default: false for an Ingress; a Service always does so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub built_in: bool,
}

/// Exposure of an endpoint to users.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExposeComponent {
    /// Expose the endpoint with an Ingress. If neither `ingress` nor `service` is set, it is reachable inside
    /// the cluster only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Ingress>,
    /// Serve the endpoint with TLS. If unset, it is served with plain HTTP. Without a certificate, an Ingress
    /// uses that of its controller and a Service a built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<ExposeTls>,
    /// Expose the endpoint with a Service and an nginx of its own. For `expose.core` only, and not together
    /// with `ingress`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ProxyService>,
}

impl ExposeComponent {
    /// Returns the name of the user's Secret with the certificate presented to users.
    pub fn certificate(&self) -> Option<&str> {
        self.tls.as_ref().and_then(|tls| tls.certificate_ref.as_deref())
    }

    /// Returns true if the certificate is issued by the CA that the operator creates for this Harbor.
    pub(crate) fn has_built_in_certificate(&self) -> bool {
        let asked =
            |tls: &ExposeTls| tls.certificate_ref.is_none() && (tls.built_in || self.service.is_some());
        self.tls.as_ref().is_some_and(asked)
    }
}

/// Exposure of Harbor to users.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Expose {
    /// Exposure of the portal, the API and the registry.
    pub core: ExposeComponent,
    /// Exposure of the Notary server. Required if `notary` is set; `{}` keeps it inside the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notary: Option<ExposeComponent>,
}
