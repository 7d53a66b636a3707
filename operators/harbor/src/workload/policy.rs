//! NetworkPolicies of a component.

use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::ObjectMeta;

use crate::api::names::annotation::NETWORK_POLICIES;

use super::Site;

/// Returns true if the component has NetworkPolicies: by its annotation, or else by default.
pub(crate) fn wanted(owner: &ObjectMeta, by_default: bool) -> bool {
    match owner.annotations.as_ref().and_then(|all| all.get(NETWORK_POLICIES)) {
        Some(value) => value == "true",
        None => by_default,
    }
}

/// Returns a policy that allows ingress from everywhere to these ports of a component's pods, and to no
/// other.
pub(crate) fn ingress(site: &Site, ports: impl IntoIterator<Item = i32>) -> NetworkPolicy {
    to_ports(site.metadata(site.ingress()), site.selector(), ports)
}

/// Returns a policy that denies all egress of a component's pods.
pub(crate) fn no_egress(site: &Site) -> NetworkPolicy {
    nowhere(site.metadata(site.egress()), site.selector())
}

/// Returns a policy that allows ingress from everywhere to these ports of the selected pods, and to no other.
pub(crate) fn to_ports(
    metadata: ObjectMeta,
    pods: BTreeMap<String, String>,
    ports: impl IntoIterator<Item = i32>,
) -> NetworkPolicy {
    let port = |port: i32| NetworkPolicyPort {
        port: Some(IntOrString::Int(port)),
        protocol: Some("TCP".to_owned()),
        end_port: None,
    };
    let rule = NetworkPolicyIngressRule { ports: Some(ports.into_iter().map(port).collect()), from: None };
    policy(metadata, pods, "Ingress", Some(vec![rule]))
}

/// Returns a policy that denies all egress of the selected pods. Replies to incoming connections are not
/// affected.
pub(crate) fn nowhere(metadata: ObjectMeta, pods: BTreeMap<String, String>) -> NetworkPolicy {
    policy(metadata, pods, "Egress", None)
}

fn policy(
    metadata: ObjectMeta,
    pods: BTreeMap<String, String>,
    kind: &str,
    ingress: Option<Vec<NetworkPolicyIngressRule>>,
) -> NetworkPolicy {
    let spec = NetworkPolicySpec {
        pod_selector: Some(LabelSelector { match_labels: Some(pods), match_expressions: None }),
        policy_types: Some(vec![kind.to_owned()]),
        ingress,
        egress: None,
    };
    NetworkPolicy { metadata, spec: Some(spec) }
}
