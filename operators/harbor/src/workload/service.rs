//! The Service in front of a component.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;
use kube::api::ObjectMeta;

use crate::api::component::Served;
use crate::api::names::annotation::INGRESS_CONTROLLER;

use super::Site;

/// A port of a Service, which leads to the port of the same name of the pods.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    /// Its name.
    pub name: &'static str,
    /// Its number.
    pub number: i32,
}

impl Port {
    /// `https` 443 or `http` 80.
    pub const fn served(served: Served) -> Self {
        Self { name: served.scheme(), number: served.service_port() }
    }
}

/// A Service named `name` in front of the pods of a site.
pub fn service(site: &Site, name: &str, ports: &[Port]) -> Service {
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

/// Tells Prometheus where metrics are.
pub fn scraped(mut service: Service, port: i32, path: &str) -> Service {
    let annotations = service.annotations_mut();
    for (key, value) in [("scrape", "true".to_owned()), ("path", path.to_owned()), ("port", port.to_string())]
    {
        annotations.insert(format!("prometheus.io/{key}"), value);
    }
    service
}

/// Tells Contour that a port speaks TLS, if it is Contour that serves the component.
pub fn known_to_ingress(mut service: Service, owner: &ObjectMeta, served: Served, port: &str) -> Service {
    let controller = owner.annotations.as_ref().and_then(|all: &BTreeMap<_, _>| all.get(INGRESS_CONTROLLER));
    if controller.is_some_and(|controller| controller == "contour") && served == Served::Https {
        let key = "projectcontour.io/upstream-protocol.tls".to_owned();
        service.annotations_mut().insert(key, port.to_owned());
    }
    service
}
