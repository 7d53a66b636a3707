//! What a user has before there is a Harbor, wherever that is.

use anyhow::Result;
use harbor_operator::api::Harbor;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use crate::world::said;

/// Creates it in a namespace.
pub(crate) async fn furnish(client: &kube::Client, namespace: &str) -> Result<()> {
    for (name, data) in [
        ("admin", json!({"secret": "Harbor12345"})),
        ("db", json!({"postgres-password": "password"})),
        ("public", json!({"tls.crt": "certificate", "tls.key": "key", "ca.crt": "authority"})),
    ] {
        let secret = json!({"metadata": {"name": name}, "stringData": data});
        let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
        secrets.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
    }
    let claim = json!({"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}});
    let claim = json!({"metadata": {"name": "images"}, "spec": claim});
    let claims = Api::<PersistentVolumeClaim>::namespaced(client.clone(), namespace);
    claims.create(&PostParams::default(), &serde_json::from_value(claim)?).await?;
    Ok(())
}

/// Whether a Harbor is ready with its present spec.
pub(crate) fn is_ready(harbor: &Harbor) -> bool {
    let status: Value = json!(harbor.status);
    status["observedGeneration"] == json!(harbor.metadata.generation) && said(harbor, "Ready").0 == "True"
}
