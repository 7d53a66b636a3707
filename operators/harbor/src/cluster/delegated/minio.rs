//! MinIO, run by its own operator, with a bucket for images and charts.
//!
//! Its Service is always called `minio`: there can be one of them in a namespace.

use k8s_openapi::ByteString;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use windlass::{Needs, Plan, PlanError, Planned, Predecessor, Readiness};
use windlass_runtime::json::typed;

use crate::api::driver::{ImageChartStorage, S3, StorageRedirect};
use crate::api::harborcluster_parts::{ClusterRedirect, MinIo};
use crate::catalogue::Delegated;
use crate::cluster::{Part, Site};
use crate::workload::at_field;

use super::found;
use super::ingress::ingress;
use super::kinds::{Tenant, TenantSpec, TenantStatus, at as place, fields};

const SERVICE: &str = "minio";
const PORT: i32 = 80;
const BUCKET: &str = "harbor";
const REGION: &str = "us-east-1";
const POOL: &str = "zone-harbor";
const USER: i64 = 10_000;
/// The key of the registry's Secret.
const KEY: &str = "secret";
/// Makes the bucket, if it is not there. The keys go through a pipe, and are in nobody's list of processes.
const MAKE_BUCKET: &str = r#"set -eu
printf '%s\n%s\n' "$ACCESS_KEY" "$SECRET_KEY" | mc alias set minio "$ENDPOINT" > /dev/null
mc mb --ignore-existing "minio/$BUCKET"
"#;

/// The Secret with the keys: the user's, or a generated one.
fn credentials(site: &Site<'_>, minio: &MinIo) -> String {
    let given = minio.secret_ref.clone().filter(|name| !name.is_empty());
    given.unwrap_or_else(|| site.names.minio_credentials())
}

fn spec_of<'a>(site: &Site<'a>) -> Result<&'a MinIo, PlanError> {
    let storage = site.cluster.spec.storage.as_ref();
    storage
        .and_then(|storage| storage.spec.minio.as_ref())
        .ok_or_else(|| PlanError::new("spec.storage.spec.minIO is missing: say how many servers there are"))
}

/// Plans a tenant, and all around it.
pub fn storage(
    site: &Site<'_>,
    needs: &Needs<'_>,
    plan: &mut Plan,
) -> Result<Part<ImageChartStorage>, PlanError> {
    let minio = spec_of(site)?;
    let name = site.names.minio();
    let secret = credentials(site, minio);
    let generated = (secret == site.names.minio_credentials()).then(|| generate(site, &secret, plan));

    let (there, stored) = (needs.observe::<Tenant>(&name), needs.observe::<Secret>(&secret));
    let (there, stored) = (found(there)?, found(stored)?);
    let spec = fields(tenant_spec(site, minio, &secret, there.as_ref())?);
    let mut tenant = Tenant::new(&name, TenantSpec { fields: spec });
    tenant.metadata = labelled(site, &name);
    let health = health(there, minio.replicas, &format!("{name}-{POOL}"));
    let tenant = site.keep(plan.add(tenant).ready_when(move |_| health.clone())).after(&generated);
    let bucket = plan.task(bucket(site, minio, &secret)?).after([&tenant]);
    let mut before = vec![tenant, bucket];
    before.extend(generated);

    let keys = stored.and_then(|stored| {
        let mut data = stored.data?;
        let access = String::from_utf8(data.remove("accesskey")?.0).ok()?;
        Some((access, data.remove("secretkey")?))
    });
    // A preview has no values, and shows what there would be.
    let keys = keys.or_else(|| needs.is_assumed().then(|| (String::new(), ByteString::default())));
    let redirect = redirect(site);
    if let Some((redirect, exposed)) =
        redirect.and_then(|redirect| Some((redirect, redirect.expose.as_ref()?)))
        && let Some(to) = exposed.ingress.as_ref().filter(|_| redirect.enable)
    {
        let ingress = plan.add(ingress(site, &name, to, exposed.tls.as_ref(), SERVICE, PORT)?);
        before.push(ingress.takes_over(Predecessor::held_by::<Tenant>(&*name)));
    }
    let told = if let Some((access, key)) = keys {
        before.push(
            site.keep(plan.add(registry_key(site, &name, key)))
                .takes_over(Predecessor::held_by::<Tenant>(&*name)),
        );
        Ok(store(site, access))
    } else {
        let why = format!("Secret {secret} does not have the keys accesskey and secretkey yet");
        before.push(plan.pending::<Secret>(&name, why.clone()));
        Err(why)
    };
    Ok(Part { told, needs: before })
}

/// Whether downloads are redirected to it; without a word on it, they are not: nobody outside could follow.
fn redirect<'a>(site: &Site<'a>) -> Option<&'a ClusterRedirect> {
    site.cluster.spec.storage.as_ref().and_then(|storage| storage.spec.redirect())
}

fn labelled(site: &Site<'_>, name: &str) -> kube::api::ObjectMeta {
    let mut metadata = site.metadata(name);
    let labels = [("type", "harbor-cluster-minio"), ("app", "minio")];
    let labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
    metadata.labels.get_or_insert_default().extend(labels);
    metadata
}

fn generate(site: &Site<'_>, name: &str, plan: &mut Plan) -> Planned {
    let metadata = labelled(site, name);
    let planned = plan.create_once(name, move |random| {
        let (access, key) = (random.alphanumeric(20)?, random.alphanumeric(40)?);
        let data = [("accesskey", access), ("secretkey", key)];
        Ok(Secret {
            metadata: metadata.clone(),
            data: Some(
                data.into_iter()
                    .map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes())))
                    .collect(),
            ),
            type_: Some("Opaque".to_owned()),
            ..Secret::default()
        })
    });
    site.keep(planned).takes_over(Predecessor::held_by::<Tenant>(site.names.minio()))
}

fn registry_key(site: &Site<'_>, name: &str, key: ByteString) -> Secret {
    Secret {
        metadata: labelled(site, name),
        data: Some([(KEY.to_owned(), key)].into()),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}

fn tenant_spec(
    site: &Site<'_>,
    minio: &MinIo,
    secret: &str,
    there: Option<&Tenant>,
) -> Result<Value, PlanError> {
    let runs = there.and_then(|there| place(&there.spec.fields, "image")?.as_str());
    let image = site.image_that_runs(&minio.image, runs, |repository, suffix| {
        Delegated::MinIo.image_reference(repository, suffix)
    });
    let at = |field: &str| format!("spec.storage.spec.minIO.{field}");
    let claim = match &minio.volume_claim_template {
        Some(template) => template.raw().clone(),
        None => json!({"spec": fields(json!({
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
            "storageClassName": there.and_then(class_of),
        }))}),
    };
    let resources = match &minio.resources {
        Some(given) => json!(given.typed().map_err(|error| at_field(&at("resources"), &error))?),
        None => Value::Null,
    };
    let pool = fields(json!({
        "name": POOL,
        "servers": minio.replicas,
        "volumesPerServer": minio.volumes_per_server,
        "volumeClaimTemplate": claim,
        "resources": resources,
        "securityContext": {"runAsUser": USER, "runAsGroup": USER, "fsGroup": USER},
    }));
    Ok(json!({
        "image": image.reference,
        "imagePullPolicy": image.policy,
        "imagePullSecret": image.secrets.first(),
        "pools": [pool],
        "mountPath": "/export",
        "credsSecret": {"name": secret},
        "podManagementPolicy": "Parallel",
        "requestAutoCert": false,
        "env": [{"name": "MINIO_BROWSER", "value": "on"}],
    }))
}

/// The class that the volumes of a tenant have, which cannot change: others may have made it, of another than the cluster's default.
fn class_of(tenant: &Tenant) -> Option<&str> {
    place(&tenant.spec.fields, "pools/0/volumeClaimTemplate/spec/storageClassName")?.as_str()
}

fn endpoint(site: &Site<'_>) -> String {
    format!("http://{}:{PORT}", site.names.host(SERVICE))
}

/// The Job that makes the bucket.
fn bucket(site: &Site<'_>, minio: &MinIo, secret: &str) -> Result<Job, PlanError> {
    let client = minio.mc.clone().unwrap_or_default();
    let image =
        site.image(&client, |repository, suffix| Delegated::MinIoClient.image_reference(repository, suffix));
    let key = |variable: &str, key: &str| json!({"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}});
    let container = json!({
        "name": "bucket",
        "image": image.reference,
        "imagePullPolicy": image.policy,
        "command": ["/bin/sh", "-c", MAKE_BUCKET],
        "env": [
            {"name": "ENDPOINT", "value": endpoint(site)},
            {"name": "BUCKET", "value": BUCKET},
            {"name": "MC_CONFIG_DIR", "value": "/run/mc"},
            key("ACCESS_KEY", "accesskey"),
            key("SECRET_KEY", "secretkey"),
        ],
        "volumeMounts": [{"name": "scratch", "mountPath": "/run/mc"}],
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
    });
    let mut metadata = labelled(site, &site.names.minio());
    metadata.labels.get_or_insert_default().insert("job-type".to_owned(), "minio-init".to_owned());
    let job = json!({
        "metadata": metadata,
        "spec": {
            "backoffLimit": 10,
            "template": {"spec": {
                "restartPolicy": "OnFailure",
                "containers": [container],
                "volumes": [{"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
                "enableServiceLinks": false,
                "automountServiceAccountToken": false,
                "imagePullSecrets": image.secrets(),
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
            }},
        },
    });
    Ok(typed(&job)?)
}

/// What the registry is told: by way of the Ingress where downloads are redirected, since what it signs is what users ask for.
fn store(site: &Site<'_>, access: String) -> ImageChartStorage {
    let exposed =
        redirect(site).filter(|redirect| redirect.enable).and_then(|redirect| redirect.expose.as_ref());
    let outside = exposed.and_then(|exposed| Some((exposed.ingress.as_ref()?, exposed.tls.as_ref())));
    let (endpoint, tls) = match outside {
        Some((ingress, tls)) => {
            let scheme = if tls.is_some() { "https" } else { "http" };
            (format!("{scheme}://{}", ingress.host.to_lowercase()), tls)
        }
        None => (endpoint(site), None),
    };
    let s3 = S3 {
        access_key: Some(access),
        secret_key_ref: Some(site.names.minio()),
        region: REGION.to_owned(),
        region_endpoint: Some(endpoint),
        bucket: BUCKET.to_owned(),
        root_directory: None,
        storage_class: "STANDARD".to_owned(),
        key_id: None,
        encrypt: false,
        skip_verify: tls.is_none(),
        certificate_ref: tls.and_then(|tls| tls.certificate_ref.clone()),
        secure: tls.is_some(),
        v4_auth: true,
        chunk_size: None,
        multipart_copy_chunk_size: None,
        multipart_copy_max_concurrency: None,
        multipart_copy_threshold_size: None,
    };
    let redirect = Some(StorageRedirect { disable: outside.is_none() });
    ImageChartStorage { redirect, s3: Some(s3), ..ImageChartStorage::default() }
}

fn health(found: Option<Tenant>, replicas: i32, pool: &str) -> Readiness {
    let Some(TenantStatus { current_state: Some(state), available_replicas, pools }) =
        found.and_then(|found| found.status)
    else {
        return Readiness::waiting("MinIO's operator has not seen it yet");
    };
    if state != "Initialized" {
        return Readiness::waiting(format!("MinIO's operator says {state}"));
    }
    if available_replicas != replicas {
        return Readiness::waiting(format!("{available_replicas} of {replicas} servers available"));
    }
    match pools.iter().find(|one| one.ss_name == pool) {
        Some(one) if one.state == "PoolInitialized" => Readiness::Ready,
        Some(one) => Readiness::waiting(format!("its pool {pool} is {}", one.state)),
        None => Readiness::waiting(format!("its pool {pool} is not there yet")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_that_are_there_keep_their_class() {
        let cluster = crate::cluster::blueprint::samples::delegated();
        let settings = crate::settings::HarborSettings::default();
        let site = Site::of(&cluster, &settings);
        let minio = spec_of(&site).unwrap();
        let class = |there: Option<&Tenant>| {
            let spec = tenant_spec(&site, minio, "keys", there).unwrap();
            spec["pools"][0]["volumeClaimTemplate"]["spec"].get("storageClassName").cloned()
        };
        assert_eq!(class(None), None);
        let pool = json!({"volumeClaimTemplate": {"spec": {"storageClassName": "default"}}});
        let there = Tenant::new("x", TenantSpec { fields: fields(json!({"pools": [pool]})) });
        assert_eq!(class(Some(&there)), Some(json!("default")));
    }

    #[test]
    fn a_tenant_is_ready_when_state_servers_and_pool_say_so() {
        let found = |state: &str, available: i32, pool: &str| {
            let status = json!({"currentState": state, "availableReplicas": available,
                "pools": [{"ssName": "minio-x-zone-harbor", "state": pool}]});
            let mut tenant = Tenant::new("minio-x", TenantSpec::default());
            tenant.status = serde_json::from_value(status).unwrap();
            health(Some(tenant), 4, "minio-x-zone-harbor")
        };
        assert_eq!(found("Initialized", 4, "PoolInitialized"), Readiness::Ready);
        for (state, available, pool, why) in [
            (
                "Waiting for Pods to be ready",
                4,
                "PoolInitialized",
                "MinIO's operator says Waiting for Pods to be ready",
            ),
            ("Initialized", 3, "PoolInitialized", "3 of 4 servers available"),
            ("Initialized", 4, "PoolCreated", "its pool minio-x-zone-harbor is PoolCreated"),
        ] {
            assert_eq!(found(state, available, pool), Readiness::waiting(why));
        }
        assert!(matches!(health(None, 4, "p"), Readiness::Waiting(_)));
    }
}
