//! The nginx proxy of a Harbor that is exposed by a Service.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::{Value, json};
use windlass::PlanError;
use windlass_runtime::json::typed;

use crate::api::network::{ProxyService, ServiceType};
use crate::catalogue::Component;
use crate::config::proxy::{CONFIG_KEY, CONFIG_PATH, Proxy, SSL_DIR, render};
use crate::config::{Address, portal::Families};
use crate::workload::disruption::budget_of;
use crate::workload::{Check, Container, Pod, Probes, config_map, deployment_spec, mount_part, secret};

use super::components::Wiring;
use super::names::metadata;

/// The objects of the proxy.
pub(crate) struct ProxyObjects {
    /// The ConfigMap with nginx's configuration.
    pub config: ConfigMap,
    /// The Service that clients connect to.
    pub service: Service,
    /// The Deployment. It comes after the Services of Core and Portal, because nginx resolves their names
    /// when it starts.
    pub deployment: Deployment,
    /// The PodDisruptionBudget, with several replicas.
    pub budget: Option<PodDisruptionBudget>,
}

/// Returns the proxy; `None` if Harbor is not exposed by a Service.
pub(crate) fn objects(wiring: &Wiring<'_>) -> Result<Option<ProxyObjects>, PlanError> {
    let expose = &wiring.common().expose.core;
    let Some(asked) = &expose.service else { return Ok(None) };
    let certificate = wiring.public_certificate();
    let name = wiring.names.service(Component::Proxy);
    let deployment = deployment(wiring, &name, asked, certificate.as_deref())?;
    let several = asked.proxy.replicas() > 1;
    let budget = several
        .then(|| budget_of(metadata(&wiring.names, name.clone()), wiring.names.selector(Component::Proxy)));
    let config = ConfigMap {
        metadata: metadata(&wiring.names, name.clone()),
        data: Some(config(wiring, certificate.is_some())?),
        ..ConfigMap::default()
    };
    Ok(Some(ProxyObjects {
        config,
        service: service(wiring, &name, asked, certificate.is_some())?,
        deployment,
        budget,
    }))
}

fn config(wiring: &Wiring<'_>, https: bool) -> Result<std::collections::BTreeMap<String, String>, PlanError> {
    let port = u16::try_from(wiring.served.service_port())?;
    let of = |component| Address::new(wiring.names.service(component), port);
    let network = wiring.common().network.as_ref();
    let proxy = Proxy {
        core: of(Component::Core),
        portal: wiring.common().portal.as_ref().map(|_| of(Component::Portal)),
        internal_tls: wiring.has_tls(),
        https: https.then(|| authority(&wiring.common().external_url).to_owned()),
        plain_url: wiring.common().external_url.starts_with("http://"),
        families: network
            .map_or(Families::BOTH, |network| Families { v4: network.has("IPv4"), v6: network.has("IPv6") }),
    };
    Ok(render(&proxy, &wiring.release).config)
}

/// Returns the authority of a URL: the text between scheme and path.
pub(crate) fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

/// Returns the host of a URL, without the port.
pub(crate) fn host(url: &str) -> &str {
    let authority = authority(url);
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

fn service(wiring: &Wiring<'_>, name: &str, asked: &ProxyService, https: bool) -> Result<Service, PlanError> {
    let node = |port: Option<i32>| port.filter(|_| asked.kind != ServiceType::ClusterIp);
    let http =
        json!({"name": "http", "port": 80, "targetPort": "http", "nodePort": node(asked.http_node_port)});
    let secure =
        json!({"name": "https", "port": 443, "targetPort": "https", "nodePort": node(asked.https_node_port)});
    let ports: Vec<Value> = std::iter::once(http).chain(https.then_some(secure)).collect();
    let balanced = asked.kind == ServiceType::LoadBalancer;
    let spec = json!({
        "type": asked.kind,
        "selector": wiring.names.selector(Component::Proxy),
        "ports": ports,
        "loadBalancerClass": asked.load_balancer_class.as_ref().filter(|_| balanced),
        "loadBalancerSourceRanges": Some(&asked.load_balancer_source_ranges).filter(|all| balanced && !all.is_empty()),
    });
    let mut metadata = metadata(&wiring.names, name.to_owned());
    metadata.annotations.get_or_insert_default().extend(asked.annotations.clone());
    Ok(Service { metadata, spec: Some(typed(&spec)?), status: None })
}

fn deployment(
    wiring: &Wiring<'_>,
    name: &str,
    asked: &ProxyService,
    certificate: Option<&str>,
) -> Result<Deployment, PlanError> {
    let component = wiring.component(Some(&asked.proxy), Component::Proxy);
    // A TCP probe, not a page: the pages come from the portal, and nginx must not be restarted because the
    // portal is down.
    let probes = Probes::of(Check::Tcp { port: if certificate.is_some() { "https" } else { "http" } });
    let container = Container::new("proxy", component.image.clone().unwrap_or_default(), probes)
        .port("http", 8080)
        .port_if("https", certificate.map(|_| 8443))
        .mount(mount_part("configuration", CONFIG_PATH, Some(CONFIG_KEY)));
    let mut pod = Pod::of(container, &component);
    pod.volumes.push(config_map("configuration", name));
    if let Some(certificate) = certificate {
        pod = pod.with(secret("certificate", certificate, &[]), SSL_DIR);
    }
    let spec = deployment_spec(wiring.names.selector(Component::Proxy), &component, pod)?;
    Ok(Deployment { metadata: metadata(&wiring.names, name.to_owned()), spec: Some(spec), status: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harbor::blueprint::samples::{harbor, wired};

    #[test]
    fn hosts_are_taken_out_of_urls() {
        for (url, of, name) in [
            ("https://a.example", "a.example", "a.example"),
            ("https://a.example:8443/x", "a.example:8443", "a.example"),
            ("http://[::1]:80", "[::1]:80", "[::1]"),
            ("a.example", "a.example", "a.example"),
        ] {
            assert_eq!((authority(url), host(url)), (of, name));
        }
    }

    #[test]
    fn a_service_of_each_type_has_what_belongs_to_it() {
        let made = |kind: &str, tls: Value| {
            let mut harbor = harbor("2.15.2", true);
            let expose = json!({"core": {"tls": tls, "service": {"type": kind, "httpNodePort": 30080, "httpsNodePort": 30443,
                "annotations": {"cloud": "yes"}, "loadBalancerSourceRanges": ["10.0.0.0/8"]}}});
            harbor.spec.common.expose = serde_json::from_value(expose).unwrap();
            wired(&harbor, |wiring| objects(wiring).unwrap().unwrap())
        };
        let node = made("NodePort", json!({"certificateRef": "public"}));
        let spec = json!(node.service.spec);
        assert_eq!(
            (&spec["ports"][0]["nodePort"], &spec["ports"][1]["nodePort"]),
            (&json!(30080), &json!(30443))
        );
        assert!(spec.get("loadBalancerSourceRanges").is_none_or(Value::is_null));
        let conf = &node.config.data.unwrap()[CONFIG_KEY];
        assert!(
            conf.contains("https://core/v2/") && conf.contains("server sample-harbor-core:443;"),
            "{conf}"
        );
        let balanced = made("LoadBalancer", json!(null));
        let spec = json!(balanced.service.spec);
        assert_eq!(spec["ports"].as_array().unwrap().len(), 1, "without a certificate there is no https");
        assert_eq!(spec["loadBalancerSourceRanges"], json!(["10.0.0.0/8"]));
        assert_eq!(balanced.service.metadata.annotations.unwrap()["cloud"], "yes");
        let inside = made("ClusterIP", json!({}));
        let spec = json!(inside.service.spec);
        assert!(spec["ports"][0].get("nodePort").is_none_or(Value::is_null));
        let volumes = json!(inside.deployment.spec);
        assert_eq!(
            volumes["template"]["spec"]["volumes"][1]["secret"]["secretName"],
            "sample-harbor-public-tls"
        );
    }

    #[test]
    fn the_proxys_pods_have_the_settings_of_the_spec() {
        let mut harbor = harbor("2.15.2", true);
        harbor.spec.common.portal = None;
        let made = |harbor: &mut crate::api::Harbor, pods: Value| {
            let expose = json!({"core": {"service": {"proxy": pods}}});
            harbor.spec.common.expose = serde_json::from_value(expose).unwrap();
            wired(harbor, |wiring| objects(wiring).unwrap().unwrap())
        };
        let one = made(&mut harbor, json!({}));
        assert!(one.budget.is_none(), "a single pod may be evicted");
        let conf = &one.config.data.unwrap()[CONFIG_KEY];
        assert!(conf.contains("location / {\n") && conf.contains("return 404;"), "{conf}");
        let several = json!({"replicas": 2, "nodeSelector": {"disk": "fast"}, "priorityClassName": "high",
            "resources": {"limits": {"memory": "64Mi"}}, "extraEnv": [{"name": "TZ", "value": "UTC"}]});
        let several = made(&mut harbor, several);
        assert_eq!(json!(several.budget)["spec"]["maxUnavailable"], 1);
        let spec = json!(several.deployment.spec);
        let pod = &spec["template"]["spec"];
        let container = &pod["containers"][0];
        assert_eq!((&spec["replicas"], &pod["nodeSelector"]["disk"]), (&json!(2), &json!("fast")));
        assert_eq!((&pod["priorityClassName"], &container["env"][0]["name"]), (&json!("high"), &json!("TZ")));
        assert_eq!(container["resources"]["limits"]["memory"], "64Mi");
        // The liveness probe does not depend on the content of any page.
        assert_eq!(container["livenessProbe"]["tcpSocket"]["port"], "http");
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    }
}
