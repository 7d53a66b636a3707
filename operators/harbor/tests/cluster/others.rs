//! The other operators that a HarborCluster may leave its parts to: their kinds, as small as can be, and
//! their part, played.

use anyhow::Result;
use harbor_operator::cluster::delegated::{Postgresql, RedisFailover, Tenant};
use harbor_operator::harbor::certmanager::Certificate;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use windlass_testenv::world::Namespaced;

use crate::world::World;

fn definition(
    group: &str,
    version: &str,
    kind: &str,
    plural: &str,
    status: bool,
) -> CustomResourceDefinition {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let subresources = if status { json!({"status": {}}) } else { json!({}) };
    serde_json::from_value(json!({
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}},
            }],
        },
    }))
    .unwrap()
}

/// The kinds of the other operators.
pub(crate) fn definitions() -> Vec<CustomResourceDefinition> {
    vec![
        definition("databases.spotahome.com", "v1", "RedisFailover", "redisfailovers", false),
        definition("acid.zalan.do", "v1", "postgresql", "postgresqls", true),
        definition("minio.min.io", "v2", "Tenant", "tenants", true),
    ]
}

/// Creates the objects that the operator of RedisFailovers creates for a HarborCluster of this name.
pub(crate) async fn play_redis(world: &World, cluster: &str) -> Result<()> {
    world.see(&format!("{cluster}-redis"), "asked for", |_: &RedisFailover| true).await?;
    let labels = |name: &str| json!({"app": name});
    let workload = |name: &str| {
        json!({
            "metadata": {"name": name},
            "spec": {
                "replicas": 1, "serviceName": name, "selector": {"matchLabels": labels(name)},
                "template": {"metadata": {"labels": labels(name)}, "spec": {"containers": [{"name": "redis", "image": "redis"}]}},
            },
        })
    };
    world.put::<StatefulSet>(workload(&format!("rfr-{cluster}-redis"))).await?;
    let mut sentinels = workload(&format!("rfs-{cluster}-redis"));
    sentinels["spec"].as_object_mut().unwrap().remove("serviceName");
    world.put::<Deployment>(sentinels).await?;
    Ok(())
}

/// Creates the objects and the status that Zalando's operator writes.
pub(crate) async fn play_postgres(world: &World, cluster: &str) -> Result<String> {
    let name = format!("postgresql-{}-{cluster}", world.namespace.name());
    world.see(&name, "asked for", |_: &Postgresql| true).await?;
    let secret = json!({"metadata": {"name": format!("harbor.{name}.credentials")}, "stringData": {"username": "harbor", "password": "first"}});
    world.put::<Secret>(secret).await?;
    say::<Postgresql>(world, &name, json!({"PostgresClusterStatus": "Running"})).await?;
    Ok(name)
}

/// Writes the status that MinIO's operator writes.
pub(crate) async fn play_minio(world: &World, cluster: &str) -> Result<()> {
    let name = format!("minio-{cluster}");
    world.see(&name, "asked for", |_: &Tenant| true).await?;
    let pools = json!([{"ssName": format!("{name}-zone-harbor"), "state": "PoolInitialized"}]);
    let status = json!({"currentState": "Initialized", "availableReplicas": 2, "pools": pools});
    say::<Tenant>(world, &name, status).await
}

/// The kind Certificate of cert-manager.
pub(crate) fn certificates() -> CustomResourceDefinition {
    definition("cert-manager.io", "v1", "Certificate", "certificates", true)
}

/// Creates the Secret and the status that cert-manager writes if this issuer is asked for a certificate of
/// this name.
pub(crate) async fn play_cert_manager(world: &World, name: &str, issuer: &str) -> Result<()> {
    world.see::<Certificate>(name, "asked for", |asked| asked.spec.issuer_ref.name == issuer).await?;
    let data = json!({"tls.crt": "certificate", "tls.key": "key", "ca.crt": "authority"});
    let made = json!({"metadata": {"name": name}, "type": "kubernetes.io/tls", "stringData": data});
    world.put::<Secret>(made).await?;
    say::<Certificate>(world, name, json!({"conditions": [{"type": "Ready", "status": "True"}]})).await
}

/// Writes the status of an object, as its operator does.
pub(crate) async fn say<K: Namespaced>(world: &World, name: &str, status: Value) -> Result<()> {
    let patch = json!({"status": status});
    world.namespace.api::<K>().patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}
