//! MinIO, run by its own operator, with a bucket for images and charts.
//!
//! The MinIO operator always names its Service `minio`, so a namespace can have one Tenant only.

use k8s_openapi::ByteString;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use windlass::{Needs, Plan, PlanError, Planned, Predecessor, Readiness};
use windlass_runtime::json::typed;

use crate::api::driver::{ImageChartStorage, S3, StorageRedirect};
use crate::api::harborcluster_parts::{ClusterRedirect, MinIo};
use crate::catalogue::Delegated;
use crate::cluster::{Dependency, Site};
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
/// State of a Tenant whose servers run.
const INITIALIZED: &str = "Initialized";
/// State of a pool whose servers run.
const POOL_INITIALIZED: &str = "PoolInitialized";
/// Key of the registry's access key Secret.
const KEY: &str = "secret";
/// Creates the bucket if it does not exist. The keys are passed through a pipe, so that they do not show in
/// the list of processes.
const MAKE_BUCKET: &str = r#"set -eu
printf '%s\n%s\n' "$ACCESS_KEY" "$SECRET_KEY" | mc alias set minio "$ENDPOINT" > /dev/null
mc mb --ignore-existing "minio/$BUCKET"
"#;

/// Returns the name of the Secret with the root credentials: the one in the spec, or the generated one.
fn credentials(site: &Site<'_>, minio: &MinIo) -> String {
    let named = minio.secret_ref.clone().filter(|name| !name.is_empty());
    named.unwrap_or_else(|| site.names.minio_credentials())
}

fn spec_of<'a>(site: &Site<'a>) -> Result<&'a MinIo, PlanError> {
    let storage = site.cluster.spec.storage.as_ref();
    storage
        .and_then(|storage| storage.spec.minio.as_ref())
        .ok_or_else(|| PlanError::new("spec.storage.spec.minIO is missing: set the number of servers"))
}

/// Adds the Tenant, its bucket and its Ingress to the plan.
pub(crate) fn storage(
    site: &Site<'_>,
    needs: &Needs<'_>,
    plan: &mut Plan,
) -> Result<Dependency<ImageChartStorage>, PlanError> {
    let minio = spec_of(site)?;
    let name = site.names.minio();
    let secret = credentials(site, minio);
    let generated = (secret == site.names.minio_credentials()).then(|| generate(site, &secret, plan));

    let (there, stored) = (needs.observe::<Tenant>(&name), needs.observe::<Secret>(&secret));
    let (there, stored) = (found(there)?, found(stored)?);
    let spec = fields(tenant_spec(site, minio, &secret, there.as_ref())?);
    for advice in ignored_edits(minio, there.as_ref()) {
        plan.advise(advice);
    }
    let servers = spec["pools"][0]["servers"].as_i64().and_then(|servers| i32::try_from(servers).ok());
    let mut tenant = Tenant::new(&name, TenantSpec { fields: spec });
    tenant.metadata = labelled(site, &name);
    let health = health(there, servers.unwrap_or(minio.replicas), &format!("{name}-{POOL}"));
    let tenant = site.keep(plan.add(tenant).ready_when(move |_| health.clone())).after(&generated);
    let bucket = plan.task(bucket(site, minio, &secret)?).after([&tenant]);
    let mut before = vec![tenant, bucket];
    before.extend(generated);

    let keys = stored.and_then(|stored| {
        let mut data = stored.data?;
        let access = String::from_utf8(data.remove("accesskey")?.0).ok()?;
        Some((access, data.remove("secretkey")?))
    });
    // A preview has no values and shows the objects that would exist.
    let keys = keys.or_else(|| needs.is_assumed().then(|| (String::new(), ByteString::default())));
    let redirect = redirect(site);
    if let Some((redirect, exposed)) =
        redirect.and_then(|redirect| Some((redirect, redirect.expose.as_ref()?)))
        && let Some(to) = exposed.ingress.as_ref().filter(|_| redirect.enable)
    {
        let ingress = plan.add(ingress(site, &name, to, exposed.tls.as_ref(), SERVICE, PORT)?);
        before.push(ingress.takes_over(Predecessor::held_by::<Tenant>(&*name)));
    }
    let settings = if let Some((access, key)) = keys {
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
    Ok(Dependency { settings, needs: before })
}

/// Returns the redirect settings. Without them downloads are not redirected, because clients outside the
/// cluster could not reach MinIO.
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
        Some(resources) => json!(resources.typed().map_err(|error| at_field(&at("resources"), &error))?),
        None => Value::Null,
    };
    let layout = |field: &str, asked: Value| {
        let live = there.filter(|tenant| has_data(tenant)).and_then(|tenant| in_pool(tenant, field));
        live.filter(|live| !covers(live, &asked)).cloned().unwrap_or(asked)
    };
    let pool = fields(json!({
        "name": POOL,
        "servers": layout("servers", json!(minio.replicas)),
        "volumesPerServer": layout("volumesPerServer", json!(minio.volumes_per_server)),
        "volumeClaimTemplate": layout("volumeClaimTemplate", claim),
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

/// Returns a field of the pool of a live Tenant.
fn in_pool<'t>(tenant: &'t Tenant, field: &str) -> Option<&'t Value> {
    place(&tenant.spec.fields, &format!("pools/0/{field}"))
}

/// Returns true if a live value has all that is asked for. It may have more: defaults of its operator.
fn covers(live: &Value, asked: &Value) -> bool {
    match (live, asked) {
        (Value::Object(live), Value::Object(asked)) => asked
            .iter()
            .all(|(field, asked)| asked.is_null() || live.get(field).is_some_and(|live| covers(live, asked))),
        (live, asked) => live == asked,
    }
}

/// Returns true if a live Tenant has been initialised, so that its volumes may hold data.
fn has_data(tenant: &Tenant) -> bool {
    tenant.status.as_ref().is_some_and(|status| {
        status.available_replicas > 0
            || status.current_state.as_deref() == Some(INITIALIZED)
            || status.pools.iter().any(|pool| pool.state == POOL_INITIALIZED)
    })
}

/// Returns advice for each field of the spec that differs from the layout of a live Tenant, which cannot
/// change: admission refuses such an edit, but may have been disabled or unreachable.
fn ignored_edits(minio: &MinIo, there: Option<&Tenant>) -> Vec<String> {
    let Some(tenant) = there.filter(|tenant| has_data(tenant)) else { return Vec::new() };
    let asked = [
        ("replicas", "servers", Some(json!(minio.replicas))),
        ("volumesPerServer", "volumesPerServer", Some(json!(minio.volumes_per_server))),
        (
            "volumeClaimTemplate",
            "volumeClaimTemplate",
            minio.volume_claim_template.as_ref().map(|template| template.raw().clone()),
        ),
    ];
    let differs = |(field, live, asked): (&str, &str, Option<Value>)| {
        let (live, asked) = (in_pool(tenant, live)?, asked?);
        (!covers(live, &asked)).then(|| {
            format!(
                "spec.storage.spec.minIO.{field}: {asked} has no effect, because the MinIO Tenant holds data \
                 and keeps {live}: set {live}, or create another HarborCluster with the new size and \
                 replicate the images to it"
            )
        })
    };
    asked.into_iter().filter_map(differs).collect()
}

/// Returns the storage class of the volumes of a live Tenant. The class is immutable, and another operator
/// may have chosen one that is not the default.
fn class_of(tenant: &Tenant) -> Option<&str> {
    place(&tenant.spec.fields, "pools/0/volumeClaimTemplate/spec/storageClassName")?.as_str()
}

fn endpoint(site: &Site<'_>) -> String {
    format!("http://{}:{PORT}", site.names.host(SERVICE))
}

/// Returns the Job that creates the bucket.
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

/// Returns the registry's storage settings. With redirects the endpoint is the Ingress, because clients use
/// the URLs that the registry signs.
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
        return Readiness::waiting("the MinIO operator has not reconciled it yet");
    };
    if state != INITIALIZED {
        return Readiness::waiting(format!("the MinIO operator reports {state}"));
    }
    if available_replicas != replicas {
        return Readiness::waiting(format!("{available_replicas} of {replicas} servers available"));
    }
    match pools.iter().find(|one| one.ss_name == pool) {
        Some(one) if one.state == POOL_INITIALIZED => Readiness::Ready,
        Some(one) => Readiness::waiting(format!("its pool {pool} is {}", one.state)),
        None => Readiness::waiting(format!("its pool {pool} does not exist yet")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_volumes_keep_their_storage_class() {
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
    fn seam_m9_a_live_tenant_keeps_its_servers_and_volumes_and_the_edit_is_reported() {
        let cluster = crate::cluster::blueprint::samples::delegated();
        let settings = crate::settings::HarborSettings::default();
        let site = Site::of(&cluster, &settings);
        let mut minio = spec_of(&site).unwrap().clone();
        let drawn = |minio: &MinIo, there: Option<&Tenant>| tenant_spec(&site, minio, "keys", there).unwrap();
        let mut there = Tenant::new("x", TenantSpec { fields: fields(drawn(&minio, None)) });
        let before = drawn(&minio, None)["pools"][0].clone();
        minio.replicas += 2;
        minio.volumes_per_server += 1;
        minio.volume_claim_template =
            serde_json::from_value(json!({"spec": {"storageClassName": "b"}})).unwrap();
        assert_ne!(drawn(&minio, Some(&there))["pools"][0], before, "nothing is in it yet");
        assert!(ignored_edits(&minio, Some(&there)).is_empty());
        there.status = serde_json::from_value(json!({"currentState": "Initialized"})).unwrap();
        assert_eq!(drawn(&minio, Some(&there))["pools"][0], before);
        let advice = ignored_edits(&minio, Some(&there)).join("\n");
        for field in ["replicas", "volumesPerServer", "volumeClaimTemplate"] {
            assert!(advice.contains(&format!("spec.storage.spec.minIO.{field}: ")), "{field} in {advice}");
        }
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
                "the MinIO operator reports Waiting for Pods to be ready",
            ),
            ("Initialized", 3, "PoolInitialized", "3 of 4 servers available"),
            ("Initialized", 4, "PoolCreated", "its pool minio-x-zone-harbor is PoolCreated"),
        ] {
            assert_eq!(found(state, available, pool), Readiness::waiting(why));
        }
        assert!(matches!(health(None, 4, "p"), Readiness::Waiting(_)));
    }
}
