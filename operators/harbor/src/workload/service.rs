//! The Service of a component.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;
use kube::api::ObjectMeta;

use crate::api::component::Served;
use crate::api::names::annotation::INGRESS_CONTROLLER;

use super::Site;

/// A port of a Service; its target is the pods' port of the same name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    /// The name of the port.
    pub name: &'static str,
    /// The port number.
    pub number: i32,
}

impl Port {
    /// Returns port `https` 443 or `http` 80.
    pub(crate) const fn served(served: Served) -> Self {
        Self { name: served.scheme(), number: served.service_port() }
    }
}

/// Returns a Service with this name for the pods of a site.
pub(crate) fn service(site: &Site, name: &str, ports: &[Port]) -> Service {
    let port = |port: &Port| ServicePort {
        name: Some(port.name.to_owned()),
        port: port.number,
        protocol: Some("TCP".to_owned()),
        target_port: Some(IntOrString::String(port.name.to_owned())),
        ..ServicePort::default()
    };
    let spec = ServiceSpec {
        ports: Some(ports.iter().map(port).collect()),
        selector: Some(site.selector()),
        ..ServiceSpec::default()
    };
    Service { metadata: site.metadata(name), spec: Some(spec), status: None }
}

/// Adds the annotations with which Prometheus finds the metrics.
pub(crate) fn scraped(mut service: Service, port: i32, path: &str) -> Service {
    let annotations = service.annotations_mut();
    for (key, value) in [("scrape", "true".to_owned()), ("path", path.to_owned()), ("port", port.to_string())]
    {
        annotations.insert(format!("prometheus.io/{key}"), value);
    }
    service
}

/// Adds the annotation with which Contour uses TLS to the port, if Contour is the Ingress controller.
pub(crate) fn known_to_ingress(
    mut service: Service,
    owner: &ObjectMeta,
    served: Served,
    port: &str,
) -> Service {
    let controller = owner.annotations.as_ref().and_then(|all: &BTreeMap<_, _>| all.get(INGRESS_CONTROLLER));
    if controller.is_some_and(|controller| controller == "contour") && served == Served::Https {
        let key = "projectcontour.io/upstream-protocol.tls".to_owned();
        service.annotations_mut().insert(key, port.to_owned());
    }
    service
}
