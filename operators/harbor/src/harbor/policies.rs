//! NetworkPolicies between the components of a Harbor.
//!
//! All connections between components that Harbor needs are allowed. Ports for users and for Prometheus are
//! open to everybody, because the operator does not know where they connect from. Everything else is denied:
//! only Core and JobService can reach the registry without the checks of Core.

use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde_json::{Value, json};
use windlass::PlanError;
use windlass_runtime::json::typed;

use crate::api::observe::Metrics;
use crate::catalogue::Component;

use super::components::Wiring;
use super::names::metadata;

/// Port of the registry.
const REGISTRY: i32 = 5000;
/// Port of NotaryServer.
const NOTARY_SERVER: i32 = 4443;
/// Port of NotarySigner.
const NOTARY_SIGNER: i32 = 7899;

/// The allowed clients of a port.
enum From<'a> {
    Anywhere,
    Components(&'a [Component]),
}

/// Returns the policies of a Harbor.
pub(crate) fn all(wiring: &Wiring<'_>) -> Result<Vec<NetworkPolicy>, PlanError> {
    use From::{Anywhere, Components};
    let common = wiring.common();
    let web = wiring.served.container_port();
    let metrics = |metrics: Option<&Metrics>| {
        metrics.filter(|metrics| metrics.enabled).map(|metrics| rule(wiring, &Anywhere, metrics.port))
    };
    let workers = Components(&[Component::Core, Component::JobService]);
    let rule = |from: &From<'_>, port| rule(wiring, from, port);
    let core = common.core.as_ref().and_then(|core| metrics(core.metrics.as_ref()));
    let jobs = common.jobservice.as_ref().and_then(|jobs| metrics(jobs.metrics.as_ref()));
    let registry = common.registry.as_ref().and_then(|registry| metrics(registry.metrics.as_ref()));

    let mut open = vec![
        (Component::Core, std::iter::once(rule(&Anywhere, web)).chain(core).collect::<Vec<_>>()),
        (
            Component::JobService,
            std::iter::once(rule(&Components(&[Component::Core]), web)).chain(jobs).collect(),
        ),
        (Component::Registry, std::iter::once(rule(&workers, REGISTRY)).chain(registry).collect()),
        (Component::RegistryController, vec![rule(&workers, web)]),
    ];
    if common.portal.is_some() {
        open.push((Component::Portal, vec![rule(&Anywhere, web)]));
    }
    if common.chartmuseum.is_some() {
        open.push((Component::ChartMuseum, vec![rule(&Components(&[Component::Core]), web)]));
    }
    if common.trivy.is_some() {
        open.push((Component::Trivy, vec![rule(&workers, web)]));
    }
    if let Some(exporter) = &common.exporter {
        open.push((Component::Exporter, vec![rule(&Anywhere, exporter.port)]));
    }
    if common.notary.is_some() {
        open.push((Component::NotaryServer, vec![rule(&Anywhere, NOTARY_SERVER)]));
        open.push((
            Component::NotarySigner,
            vec![rule(&Components(&[Component::NotaryServer]), NOTARY_SIGNER)],
        ));
    }
    if common.expose.core.service.is_some() {
        open.push((Component::Proxy, vec![rule(&Anywhere, 8080), rule(&Anywhere, 8443)]));
    }
    let mut policies = Vec::with_capacity(open.len() + 1);
    for (component, rules) in open {
        policies.push(policy(
            wiring,
            component,
            "ingress",
            &json!({"policyTypes": ["Ingress"], "ingress": rules}),
        )?);
    }
    if common.portal.is_some() {
        // The portal serves files and connects to nothing.
        policies.push(policy(wiring, Component::Portal, "egress", &json!({"policyTypes": ["Egress"]}))?);
    }
    Ok(policies)
}

fn rule(wiring: &Wiring<'_>, from: &From<'_>, port: i32) -> Value {
    let ports = json!([{"port": port, "protocol": "TCP"}]);
    match from {
        From::Anywhere => json!({"ports": ports}),
        From::Components(peers) => {
            let peer = |component: &Component| json!({"podSelector": {"matchLabels": wiring.names.selector(*component)}});
            json!({"ports": ports, "from": peers.iter().map(peer).collect::<Vec<_>>()})
        }
    }
}

fn policy(
    wiring: &Wiring<'_>,
    component: Component,
    way: &str,
    rules: &Value,
) -> Result<NetworkPolicy, PlanError> {
    let mut spec = rules.clone();
    spec["podSelector"] = json!({"matchLabels": wiring.names.selector(component)});
    let name = wiring.names.with(&format!("{}-{way}", component.as_str()));
    Ok(NetworkPolicy { metadata: metadata(&wiring.names, name), spec: Some(typed(&spec)?) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harbor::blueprint::samples::{full, wired};
    use crate::harbor::names::Names;

    /// Returns true if policies let somebody reach a port of a component.
    fn allowed(
        policies: &[NetworkPolicy],
        names: &Names,
        from: Option<Component>,
        to: Component,
        port: i32,
    ) -> bool {
        let all: Vec<Value> = policies.iter().map(|policy| json!(policy.spec)).collect();
        let selects = |selector: &Value, component: Component| {
            let labels = names.selector(component);
            selector["matchLabels"]
                .as_object()
                .unwrap()
                .iter()
                .all(|(key, value)| labels.get(key).is_some_and(|label| *value == **label))
        };
        let concerned: Vec<&Value> = all
            .iter()
            .filter(|spec| spec["policyTypes"] == json!(["Ingress"]) && selects(&spec["podSelector"], to))
            .collect();
        concerned.is_empty()
            || concerned.iter().flat_map(|spec| spec["ingress"].as_array().unwrap()).any(|rule| {
                let ports = rule["ports"].as_array().unwrap();
                let who = rule.get("from").and_then(Value::as_array);
                let peer = |who: &Vec<Value>| {
                    from.is_some_and(|from| who.iter().any(|peer| selects(&peer["podSelector"], from)))
                };
                ports.iter().any(|open| open["port"] == port) && who.is_none_or(peer)
            })
    }

    #[test]
    fn a13_policies_let_harbor_work_and_nothing_else() {
        use Component::{ChartMuseum, Core, Exporter, JobService, NotaryServer, NotarySigner, Portal, Proxy};
        use Component::{Registry, RegistryController, Trivy};
        let harbor = full("2.6.2", true);
        let (policies, names) = wired(&harbor, |wiring| (all(wiring).unwrap(), wiring.names.clone()));
        let may = |from, to, port| allowed(&policies, &names, from, to, port);
        let needed = [
            (Some(Core), Registry, 5000),
            (Some(Core), RegistryController, 8443),
            (Some(Core), JobService, 8443),
            (Some(Core), Portal, 8443),
            (Some(Core), ChartMuseum, 8443),
            (Some(Core), Trivy, 8443),
            (Some(Core), NotaryServer, 4443),
            (Some(JobService), Core, 8443),
            (Some(JobService), Registry, 5000),
            (Some(JobService), RegistryController, 8443),
            (Some(JobService), Trivy, 8443),
            (Some(Trivy), Core, 8443),
            (Some(Exporter), Core, 8443),
            (Some(NotaryServer), NotarySigner, 7899),
            (Some(NotaryServer), Core, 8443),
            (Some(Proxy), Core, 8443),
            (Some(Proxy), Portal, 8443),
            (None, Core, 8443),
            (None, Portal, 8443),
            (None, NotaryServer, 4443),
            (None, Exporter, 8001),
            (None, Core, 8001),
            (None, Registry, 8001),
        ];
        for (from, to, port) in needed {
            assert!(may(from, to, port), "{from:?} to {to:?}:{port}");
        }
        let closed = [
            (None, Registry, 5000),
            (None, RegistryController, 8443),
            (None, JobService, 8443),
            (None, Trivy, 8443),
            (None, NotarySigner, 7899),
            (Some(Portal), Registry, 5000),
            (Some(Trivy), NotarySigner, 7899),
        ];
        for (from, to, port) in closed {
            assert!(!may(from, to, port), "{from:?} to {to:?}:{port}");
        }
        let egress: Vec<_> =
            policies.iter().filter(|policy| json!(policy.spec)["policyTypes"] == json!(["Egress"])).collect();
        assert_eq!(egress.len(), 1);
    }
}
