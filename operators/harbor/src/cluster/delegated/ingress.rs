//! The way to MinIO, for users whose downloads are redirected there.

use k8s_openapi::api::networking::v1::Ingress;
use serde_json::json;
use windlass::PlanError;
use windlass_runtime::json::typed;

use crate::api::component::Tls;
use crate::api::network::Ingress as IngressSpec;
use crate::cluster::Site;

/// The Ingress of this name, to this Service.
pub(super) fn ingress(
    site: &Site<'_>,
    name: &str,
    given: &IngressSpec,
    tls: Option<&Tls>,
    service: &str,
    port: i32,
) -> Result<Ingress, PlanError> {
    let mut metadata = site.metadata(name);
    // Layers may be of any size.
    let ours = [("nginx.ingress.kubernetes.io/proxy-body-size".to_owned(), "0".to_owned())];
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.extend(ours.into_iter().chain(given.annotations.clone()));
    let backend = json!({"service": {"name": service, "port": {"number": port}}});
    let spec = json!({
        "ingressClassName": given.ingress_class_name,
        "tls": tls.map(|tls| json!([{"hosts": [given.host], "secretName": tls.certificate_ref}])),
        "rules": [{
            "host": given.host,
            "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]},
        }],
    });
    Ok(Ingress { metadata, spec: Some(typed(&spec)?), status: None })
}
