//! The Ingress of MinIO, for clients whose downloads are redirected to it.

use k8s_openapi::api::networking::v1::Ingress;
use serde_json::json;
use windlass::PlanError;
use windlass_runtime::json::typed;

use crate::api::component::Tls;
use crate::api::network::Ingress as IngressSpec;
use crate::cluster::Site;

/// Returns an Ingress to a Service.
pub(super) fn ingress(
    site: &Site<'_>,
    name: &str,
    spec: &IngressSpec,
    tls: Option<&Tls>,
    service: &str,
    port: i32,
) -> Result<Ingress, PlanError> {
    let mut metadata = site.metadata(name);
    // Image layers may have any size.
    let ours = [("nginx.ingress.kubernetes.io/proxy-body-size".to_owned(), "0".to_owned())];
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.extend(ours.into_iter().chain(spec.annotations.clone()));
    let backend = json!({"service": {"name": service, "port": {"number": port}}});
    let spec = json!({
        "ingressClassName": spec.ingress_class_name,
        "tls": tls.map(|tls| json!([{"hosts": [spec.host], "secretName": tls.certificate_ref}])),
        "rules": [{
            "host": spec.host,
            "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]},
        }],
    });
    Ok(Ingress { metadata, spec: Some(typed(&spec)?), status: None })
}
