//! The Ingresses of a Harbor.

use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::Ingress;
use serde_json::{Value, json};
use windlass::PlanError;
use windlass_runtime::json::typed;

use crate::api::component::Served;
use crate::api::network::{ExposeComponent, Ingress as IngressSpec, IngressController};
use crate::catalogue::{Component, Feature};

use super::components::Wiring;
use super::names::metadata;

/// Annotations with which cert-manager creates the certificate of an Ingress.
const ISSUERS: [&str; 2] = ["cert-manager.io/issuer", "cert-manager.io/cluster-issuer"];

/// Returns true if the certificate is created from the Ingress. Then nothing that needs the certificate may
/// come before the Ingress.
pub(crate) fn makes_its_certificate(ingress: &IngressSpec) -> bool {
    ISSUERS.iter().any(|issuer| ingress.annotations.contains_key(*issuer))
}

/// Returns the Ingress of Core and Portal; `None` if Harbor is not exposed by an Ingress.
pub(crate) fn core(wiring: &Wiring<'_>) -> Result<Option<Ingress>, PlanError> {
    let expose = &wiring.common().expose.core;
    let Some(ingress) = &expose.ingress else { return Ok(None) };
    let (names, served) = (&wiring.names, wiring.served);
    let to = |component| backend(&names.service(component), served.service_port());
    let charts = wiring.release.has(Feature::ChartMuseum).then_some("/chartrepo/");
    let core = ["/api/", "/service/", "/v2"].into_iter().chain(charts).chain(["/c/"]);
    let portal = wiring.common().portal.as_ref().map(|_| path("/", &to(Component::Portal)));
    let paths: Vec<Value> = core.map(|of| path(of, &to(Component::Core))).chain(portal).collect();
    let annotations = annotations(ingress, ingress.controller, served);
    let certificate = wiring.public_certificate();
    Ok(Some(build(wiring, names.base().to_owned(), expose, ingress, certificate, &paths, annotations)?))
}

/// Returns the Ingress of Notary; `None` if Notary is not exposed.
pub(crate) fn notary(wiring: &Wiring<'_>) -> Result<Option<Ingress>, PlanError> {
    let common = wiring.common();
    let Some((expose, ingress)) =
        wiring.notary_expose().and_then(|expose| Some((expose, expose.ingress.as_ref()?)))
    else {
        return Ok(None);
    };
    // Both Ingresses have one controller, which is set at Core's.
    let controller = common.expose.core.ingress.as_ref().map_or(ingress.controller, |core| core.controller);
    let (names, served) = (&wiring.names, wiring.served);
    let name = names.service(Component::NotaryServer);
    let paths = [path("/", &backend(&name, served.service_port()))];
    let annotations = annotations(ingress, controller, served);
    let certificate = wiring.notary_public_certificate();
    Ok(Some(build(wiring, name, expose, ingress, certificate, &paths, annotations)?))
}

fn backend(service: &str, port: i32) -> Value {
    json!({"service": {"name": service, "port": {"number": port}}})
}

fn path(path: &str, backend: &Value) -> Value {
    json!({"path": path, "pathType": "Prefix", "backend": backend})
}

/// Returns the annotations for Ingress controllers. Annotations of the user take precedence.
fn annotations(
    ingress: &IngressSpec,
    controller: IngressController,
    served: Served,
) -> BTreeMap<String, String> {
    let mut annotations = BTreeMap::new();
    let mut say = |key: &str, value: &str| annotations.insert(key.to_owned(), value.to_owned());
    let tls = served == Served::Https;
    say("nginx.ingress.kubernetes.io/backend-protocol", if tls { "HTTPS" } else { "HTTP" });
    // Image layers may have any size.
    say("nginx.ingress.kubernetes.io/proxy-body-size", "0");
    match controller {
        IngressController::Ncp => {
            say("ncp/use-regex", "true");
            if tls {
                say("ncp/http-redirect", "true");
            }
        }
        IngressController::Contour if tls => {
            say("ingress.kubernetes.io/force-ssl-redirect", "true");
        }
        IngressController::Contour | IngressController::Default | IngressController::Gce => {}
    }
    annotations.extend(ingress.annotations.clone());
    annotations
}

fn build(
    wiring: &Wiring<'_>,
    name: String,
    expose: &ExposeComponent,
    ingress: &IngressSpec,
    certificate: Option<String>,
    paths: &[Value],
    annotations: BTreeMap<String, String>,
) -> Result<Ingress, PlanError> {
    let tls = expose.tls.as_ref().map(|_| json!([{"hosts": [ingress.host], "secretName": certificate}]));
    let spec = json!({
        "ingressClassName": ingress.ingress_class_name,
        "tls": tls,
        "rules": [{"host": ingress.host, "http": {"paths": paths}}],
    });
    let mut metadata = metadata(&wiring.names, name);
    metadata.annotations.get_or_insert_default().extend(annotations);
    Ok(Ingress { metadata, spec: Some(typed(&spec)?), status: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harbor::blueprint::samples::{harbor, wired};
    use serde_json::json;

    #[test]
    fn each_ingress_controller_gets_its_annotations_and_the_users_take_precedence() {
        let annotations_for = |controller: &str, tls: bool| {
            let mut harbor = harbor("2.15.2", tls);
            let ingress = json!({"host": "h", "controller": controller, "annotations": {
                "nginx.ingress.kubernetes.io/proxy-body-size": "1g", "mine": "yes"}});
            harbor.spec.common.expose.core.ingress = Some(serde_json::from_value(ingress).unwrap());
            let ingress = wired(&harbor, |wiring| core(wiring).unwrap().unwrap());
            let mut annotations = ingress.metadata.annotations.unwrap();
            annotations.remove("goharbor.io/warning");
            assert_eq!(annotations.remove("mine").as_deref(), Some("yes"));
            let size = annotations.remove("nginx.ingress.kubernetes.io/proxy-body-size");
            assert_eq!(size.as_deref(), Some("1g"));
            let pairs: Vec<String> =
                annotations.iter().map(|(key, value)| format!("{key}={value}")).collect();
            pairs.join(" ").replace("nginx.ingress.kubernetes.io/", "")
        };
        assert_eq!(annotations_for("default", false), "backend-protocol=HTTP");
        assert_eq!(annotations_for("gce", true), "backend-protocol=HTTPS");
        assert_eq!(annotations_for("ncp", false), "ncp/use-regex=true backend-protocol=HTTP");
        assert_eq!(
            annotations_for("ncp", true),
            "ncp/http-redirect=true ncp/use-regex=true backend-protocol=HTTPS"
        );
        assert_eq!(annotations_for("contour", false), "backend-protocol=HTTP");
        assert_eq!(
            annotations_for("contour", true),
            "ingress.kubernetes.io/force-ssl-redirect=true backend-protocol=HTTPS"
        );
    }

    #[test]
    fn paths_follow_the_release_and_the_portal() {
        let paths = |version: &str, portal: bool| {
            let mut harbor = harbor(version, false);
            if !portal {
                harbor.spec.common.portal = None;
            }
            let ingress = wired(&harbor, |wiring| core(wiring).unwrap().unwrap());
            let rules = ingress.spec.unwrap().rules.unwrap();
            let paths = rules[0].http.as_ref().unwrap().paths.clone();
            paths.into_iter().map(|path| path.path.unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(paths("2.6.2", true), "/api/ /service/ /v2 /chartrepo/ /c/ /");
        assert_eq!(paths("2.15.2", true), "/api/ /service/ /v2 /c/ /");
        assert_eq!(paths("2.15.2", false), "/api/ /service/ /v2 /c/");
    }

    #[test]
    fn the_certificate_is_the_users_or_the_controllers_or_built_in() {
        let made = |tls: Value| {
            let mut harbor = harbor("2.6.2", true);
            let way = |host: &str| json!({"tls": tls, "ingress": {"host": host, "ingressClassName": "fast"}});
            let expose = json!({"core": way("harbor.example.com"), "notary": way("notary.example.com")});
            harbor.spec.common.expose = serde_json::from_value(expose).unwrap();
            harbor.spec.common.notary = Some(serde_json::from_value(json!({})).unwrap());
            let plan = windlass::preview(&crate::harbor::HarborBlueprint::default(), &harbor).unwrap();
            let specs = wired(&harbor, |wiring| {
                [core(wiring), notary(wiring)].map(|made| json!(made.unwrap().unwrap().spec))
            });
            let [core, notary] = specs;
            assert_eq!(core["ingressClassName"], "fast");
            let of = |spec: &Value| spec["tls"][0]["secretName"].as_str().map(str::to_owned);
            assert!(tls.is_null() || core["tls"][0]["hosts"] == json!(["harbor.example.com"]));
            (of(&core), of(&notary), plan.text().to_string())
        };
        let (core, notary, plan) = made(json!({"certificateRef": "public"}));
        assert_eq!((core.as_deref(), notary.as_deref()), (Some("public"), Some("public")));
        assert!(!plan.contains("public-authority"), "{plan}");
        // As upstream: the Ingress controller serves its own certificate.
        let (core, notary, plan) = made(json!({}));
        assert_eq!((core, notary), (None, None));
        assert!(!plan.contains("public-authority"), "{plan}");
        let (core, notary, plan) = made(json!({"builtIn": true}));
        assert_eq!(core.as_deref(), Some("sample-harbor-public-tls"));
        assert_eq!(notary.as_deref(), Some("sample-harbor-notary-public-tls"));
        for secret in ["public-authority", "public-tls", "notary-public-tls"] {
            assert!(plan.contains(&format!("Secret sample-harbor-{secret}")), "{plan}");
        }
        let (core, ..) = made(json!(null));
        assert_eq!(core, None);
    }
}
