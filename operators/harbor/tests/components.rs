//! Each component on a real control plane, under exactly the rights that the manifests grant.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod sample;

use anyhow::Result;
use harbor_operator::settings::HarborSettings;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, PodTemplateSpec, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt as _;
use kube::api::ListParams;
use sample::world::{World, condition};
use sample::{KINDS, NAME, claim, component, secrets};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use windlass_testenv::{TestEnv, or_not_run};

/// The newest release that has a component.
fn version(kind: &str) -> &'static str {
    match kind {
        "ChartMuseum" | "NotaryServer" | "NotarySigner" => "2.6.2",
        _ => "2.15.2",
    }
}

fn child_name(component: &str, controller: &str) -> String {
    format!("{component}-{controller}")
}

fn controller(kind: &str) -> String {
    kind.to_lowercase()
}

/// Creates the objects that every component reads: Secrets, and the claim for images.
async fn furnish(world: &World) -> Result<()> {
    for secret in secrets() {
        world.put(&secret).await?;
    }
    world.put(&claim("ReadWriteMany")).await
}

fn secret(name: &str) -> Value {
    secrets().into_iter().find(|secret| secret["metadata"]["name"] == name).unwrap()
}

#[tokio::test]
async fn each_component_alone_becomes_ready() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "alone").await?;
    furnish(&world).await?;
    let operator = world.operator().await?;
    let controller_object = component("RegistryController", "2.15.2", true);
    world.put(&controller_object).await?;
    for (kind, _) in KINDS {
        let mut owner = component(kind, version(kind), true);
        owner["metadata"]["annotations"]["goharbor.io/network-policies"] = json!("true");
        world.put(&owner).await?;
    }
    for (kind, _) in KINDS {
        let owner = component(kind, version(kind), true);
        let status = world.ready(&owner).await?;
        assert_eq!(condition(&status, "InProgress")["status"], "False", "{kind}: {status}");
        assert_eq!(condition(&status, "Failed")["status"], "False", "{kind}: {status}");
        assert_eq!(status["operator"]["controllerName"], json!(controller(kind)));
        let name = child_name(NAME, &controller(kind));
        let made: Deployment = world.get(&name).await?;
        let wanted = made.spec.unwrap().replicas.unwrap();
        assert_eq!(status["replicas"], json!(wanted), "{kind}: {status}");
        world.get::<Service>(&name).await?;
        assert_eq!(
            world.namespace.api::<PodDisruptionBudget>().get_opt(&name).await?.is_some(),
            wanted > 1,
            "{kind}"
        );
    }
    world.ready(&controller_object).await?;
    world.end(operator).await
}

#[tokio::test]
async fn a_missing_secret_is_waited_for_by_name_and_then_it_goes_on() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "missing").await?;
    furnish(&world).await?;
    let operator = world.operator().await?;
    world.put(&component("RegistryController", "2.15.2", false)).await?;
    let cases = [
        ("Core", "encryption"),
        ("Registry", "registry-basicauth"),
        ("JobService", "jobservice-secret"),
        ("Trivy", "github"),
        ("Exporter", "database"),
    ];
    for (kind, missing) in cases {
        let owner = component(kind, version(kind), false);
        world.delete(&secret(missing)).await?;
        world.put(&owner).await?;
        let named = format!("waiting for Secret {missing}: it does not exist");
        let status = world
            .status(&owner, "waiting by name", |status| {
                condition(status, "Ready")["message"]
                    .as_str()
                    .is_some_and(|message| message.starts_with(&named))
            })
            .await?;
        assert_eq!(condition(&status, "Failed")["status"], "False", "to wait is not to fail: {status}");
        assert_eq!(condition(&status, "InProgress")["status"], "True");
        world.put(&secret(missing)).await?;
        world.ready(&owner).await?;
    }
    world.end(operator).await
}

#[tokio::test]
async fn users_d1_the_size_limit_of_trivys_cache_can_be_removed() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "limit").await?;
    furnish(&world).await?;
    let operator = world.operator().await?;
    let mut owner = component("Trivy", "2.15.2", false);
    owner["spec"]["storage"]["cache"] = json!({"volumeSource": {"emptyDir": {"sizeLimit": "1Gi"}}});
    world.put(&owner).await?;
    world.ready(&owner).await?;
    let limit = |deployment: &Deployment| {
        let pod = deployment.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
        let cache = pod.volumes.iter().flatten().find(|volume| volume.name == "cache");
        cache.and_then(|cache| cache.empty_dir.clone()).map(|empty| empty.size_limit)
    };
    let name = child_name(NAME, "trivy");
    assert!(limit(&world.get(&name).await?).unwrap().is_some());
    let without =
        json!({"spec": {"storage": {"cache": {"volumeSource": {"emptyDir": {"sizeLimit": null}}}}}});
    world.change::<harbor_operator::api::Trivy>(NAME, without).await?;
    world.see::<Deployment>(&name, "without a limit", |next| limit(next) == Some(None)).await?;
    world.ready(&owner).await?;
    world.end(operator).await
}

#[tokio::test]
async fn a_missing_key_is_named_and_what_runs_goes_on() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "key").await?;
    furnish(&world).await?;
    let operator = world.operator().await?;
    let owner = component("Core", "2.15.2", false);
    world.put(&owner).await?;
    world.ready(&owner).await?;
    let name = child_name(NAME, "core");
    let before: Deployment = world.get(&name).await?;
    let mut broken = secret("csrf");
    broken["stringData"] = json!({"other": "x"});
    world.delete(&secret("csrf")).await?;
    world.put(&broken).await?;
    world
        .status(&owner, "the key is named", |status| {
            let message = condition(status, "Ready")["message"].to_string();
            message.contains("spec.csrfKeyRef")
                && message.contains("Secret csrf has no text under the key key")
        })
        .await?;
    let during: Deployment = world.get(&name).await?;
    assert_eq!(before.spec, during.spec, "pods that run are left alone");
    world.get::<k8s_openapi::api::core::v1::Secret>(&name).await?;
    world.delete(&broken).await?;
    world.put(&secret("csrf")).await?;
    world.ready(&owner).await?;
    let after: Deployment = world.get(&name).await?;
    assert_eq!(before.spec, after.spec, "what is as it was replaces no pods");
    world.end(operator).await
}

#[tokio::test]
async fn a_password_under_another_key_works_and_advice_names_the_right_key() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "advice").await?;
    furnish(&world).await?;
    let operator = world.operator().await?;
    let with_key = |key: &str| {
        let mut secret = secret("database");
        secret["stringData"] = json!({key: "database"});
        secret
    };
    // One that the pods read themselves, and one for which we write it into a URL.
    let owners = [component("Core", "2.15.2", false), component("NotaryServer", "2.8.6", false)];
    for owner in &owners {
        world.delete(&secret("database")).await?;
        world.put(&with_key("postgresql-password")).await?;
        world.put(owner).await?;
        let status = world.ready(owner).await?;
        let advice = condition(&status, "Advice")["message"].as_str().unwrap_or_default();
        for part in ["Secret database", "under the key postgresql-password", "to the key postgres-password"] {
            assert!(advice.contains(part), "{part} in {advice:?}");
        }
        world.delete(&secret("database")).await?;
        world.put(&with_key("postgres-password")).await?;
        world.status(owner, "no more advice", |status| condition(status, "Advice").is_null()).await?;
    }
    world.end(operator).await
}

async fn revisions(world: &World, deployment: &str) -> Result<usize> {
    let all = world.namespace.api::<ReplicaSet>().list(&ListParams::default()).await?.items;
    let owned = |set: &&ReplicaSet| set.owner_references().iter().any(|owner| owner.name == deployment);
    Ok(all.iter().filter(owned).count())
}

/// Every Secret of [`components_with_more`], and the kinds whose pods read it: itself, or what we write of
/// it.
const READERS: &[(&str, &[&str])] = &[
    ("admin", &["Core"]),
    ("csrf", &["Core"]),
    ("core-secret", &["Core", "Registry", "JobService", "ChartMuseum"]),
    ("jobservice-secret", &["Core", "Registry", "JobService"]),
    ("registry-basicauth", &["Core", "Registry", "JobService"]),
    ("registry-http", &["Registry"]),
    ("database", &["Core", "Exporter", "NotaryServer", "NotarySigner"]),
    ("redis", &["Core", "Registry", "JobService", "Trivy", "Exporter", "ChartMuseum"]),
    // An exporter's database is written as Core's is, but nothing of it is decrypted.
    ("encryption", &["Core"]),
    ("aliases", &["NotarySigner"]),
    ("github", &["Trivy"]),
    ("extra", &["Core"]),
    ("token", &["Core", "NotaryServer"]),
    ("public", &["Core", "Trivy"]),
    ("signer", &["NotaryServer", "NotarySigner"]),
    (
        "tls",
        &["Portal", "Core", "Registry", "JobService", "Trivy", "Exporter", "ChartMuseum", "NotaryServer"],
    ),
    // The registry's controller runs in the registry's pods.
    ("ctl-tls", &["Registry"]),
    ("core-jaeger", &["Core"]),
    ("core-redis", &["Core"]),
    ("jobs-authority", &["JobService"]),
    ("jobs-jaeger", &["JobService"]),
    ("jobs-redis", &["JobService"]),
    ("images-authority", &["Registry"]),
    ("images-hook", &["Registry"]),
    ("images-jaeger", &["Registry"]),
    ("images-middleware", &["Registry"]),
    ("images-redis", &["Registry"]),
    ("images-reporter", &["Registry"]),
    ("images-schema1", &["Registry"]),
    ("images-store", &["Registry"]),
    ("images-store-authority", &["Registry"]),
    ("scans-authority", &["Trivy"]),
    ("scans-clients", &["Trivy"]),
    ("scans-redis", &["Trivy"]),
    ("metrics-redis", &["Exporter"]),
    ("charts-authority", &["ChartMuseum"]),
    ("charts-bearer", &["ChartMuseum"]),
    ("charts-store", &["ChartMuseum"]),
];

/// Every component with the fields that the samples leave out and that name a Secret, each one of its own.
fn components_with_more() -> Vec<Value> {
    let redis = |database: u8, authority: &str| {
        json!({
            "host": "redis.example", "passwordRef": "redis", "database": database, "certificateRef": authority,
        })
    };
    let trace = |password: &str| {
        let collector = json!({"endpoint": "http://jaeger.example", "passwordRef": password});
        json!({
            "enabled": true, "provider": "jaeger", "jaeger": {"mode": "collector", "collector": collector},
        })
    };
    let more = |kind: &str| match kind {
        "Core" => json!({"redis": redis(0, "core-redis"), "trace": trace("core-jaeger")}),
        "JobService" => json!({
            "certificateRefs": ["jobs-authority"],
            "trace": trace("jobs-jaeger"),
            "workerPool": {"redisPool": redis(2, "jobs-redis")},
        }),
        "Registry" => json!({
            "certificateRefs": ["images-authority"],
            "compatibility": {"schema1": {"enabled": true, "certificateRef": "images-schema1"}},
            "log": {"hooks": [{"type": "mail", "levels": ["panic"], "optionsRef": "images-hook"}]},
            "middlewares": {"storage": [{"name": "cloudfront", "optionsRef": "images-middleware"}]},
            "redis": redis(1, "images-redis"),
            "reporting": {"bugsnag": "images-reporter"},
            "storage": {
                "cache": {"blobdescriptor": "redis"},
                "driver": {"s3": {
                    "region": "r", "bucket": "b", "accesskey": "id",
                    "secretkeyRef": "images-store", "certificateRef": "images-store-authority",
                }},
            },
            "trace": trace("images-jaeger"),
        }),
        "Trivy" => json!({
            "certificateRefs": ["scans-authority"],
            "redis": redis(5, "scans-redis"),
            "server": {
                "tls": {"certificateRef": "tls"},
                "clientCertificateAuthorityRefs": ["scans-clients"],
                "tokenServiceCertificateAuthorityRefs": ["public"],
            },
        }),
        "Exporter" => json!({"jobservice": {"redisPool": redis(2, "metrics-redis")}}),
        "ChartMuseum" => json!({
            "certificateRefs": ["charts-authority"],
            "authentication": {
                "basicAuthRef": "core-secret",
                "bearer": {"realm": "https://harbor.example", "service": "s", "certificateRef": "charts-bearer"},
            },
            "chart": {"storage": {"amazon": {"accessKeyID": "id", "accessSecretRef": "charts-store", "bucket": "b"}}},
        }),
        _ => json!({}),
    };
    let mut owners = vec![component("RegistryController", "2.15.2", true)];
    for (kind, _) in KINDS {
        let mut owner = component(kind, version(kind), true);
        owner["spec"].as_object_mut().unwrap().extend(more(kind).as_object().unwrap().clone());
        owners.push(owner);
    }
    owners
}

/// A Secret of the samples, or one with every key that is asked for beyond them.
fn sample_secret(name: &str) -> Value {
    let sample = secrets().into_iter().find(|secret| secret["metadata"]["name"] == name);
    sample.unwrap_or_else(|| {
        let data = json!({"secret": "a", "password": "b", "tls.crt": "c", "tls.key": "d", "ca.crt": "e"});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data})
    })
}

/// The same with another last character in each value: some have to have a certain length.
fn rotated(name: &str) -> Value {
    let mut secret = sample_secret(name);
    for value in secret["stringData"].as_object_mut().unwrap().values_mut() {
        let mut text = value.as_str().unwrap().to_owned();
        text.pop();
        text.push('~');
        *value = json!(text);
    }
    secret
}

/// Returns the generation and the pod template of the Deployment of each kind.
async fn workloads(world: &World) -> Result<BTreeMap<&'static str, (i64, PodTemplateSpec)>> {
    let mut all = BTreeMap::new();
    for (kind, _) in KINDS {
        let made: Deployment = world.get(&child_name(NAME, &controller(kind))).await?;
        all.insert(kind, (made.metadata.generation.unwrap(), made.spec.unwrap().template));
    }
    Ok(all)
}

#[tokio::test]
async fn a3_a_changed_secret_replaces_the_pods_that_read_it_once_and_no_others() -> Result<()> {
    for sample in secrets() {
        let name = &sample["metadata"]["name"];
        assert!(READERS.iter().any(|(known, _)| name == known), "who reads {name}?");
    }
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "rotate").await?;
    for &(name, _) in READERS {
        world.put(&sample_secret(name)).await?;
    }
    let operator = world.operator().await?;
    let owners = components_with_more();
    for owner in &owners {
        world.put(owner).await?;
    }
    for owner in &owners {
        world.ready(owner).await?;
    }
    operator.idle_after(0).await?;
    let mut known = workloads(&world).await?;
    for &(name, readers) in READERS {
        let reconciles = operator.metric("controller_runtime_reconcile_total");
        world.put(&rotated(name)).await?;
        for &kind in readers {
            let (child, before) = (child_name(NAME, &controller(kind)), Some(known[kind].0));
            world
                .see::<Deployment>(&child, &format!("another template after {name}"), |next| {
                    next.metadata.generation > before
                })
                .await?;
        }
        operator.idle_after(reconciles + 1).await?;
        let now = workloads(&world).await?;
        for (kind, _) in KINDS {
            let ((before, old), (after, new)) = (&known[kind], &now[kind]);
            let reads = readers.contains(&kind);
            assert_eq!((after - before, new != old), (i64::from(reads), reads), "{kind} after {name}");
        }
        known = now;
    }
    // Nothing was put off: when the last pods run, it is as it was.
    for (kind, _) in KINDS {
        world
            .see::<Deployment>(&child_name(NAME, &controller(kind)), "rolled out", |next| {
                let (wanted, status) = (next.spec.as_ref().unwrap().replicas, next.status.as_ref().unwrap());
                status.observed_generation == next.metadata.generation
                    && [status.replicas, status.updated_replicas, status.available_replicas] == [wanted; 3]
            })
            .await?;
    }
    operator.idle_after(0).await?;
    assert_eq!(workloads(&world).await?, known);
    world.end(operator).await
}

#[tokio::test]
async fn a4_an_edited_child_is_healed_and_a_converged_one_is_left_alone() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "heal").await?;
    furnish(&world).await?;
    let operator = world.operator().await?;
    let (owner, controller_object) =
        (component("Registry", "2.15.2", false), component("RegistryController", "2.15.2", false));
    world.put(&controller_object).await?;
    world.put(&owner).await?;
    world.ready(&owner).await?;
    world.ready(&controller_object).await?;
    let (name, beside) = (child_name(NAME, "registry"), child_name(NAME, "registryctl"));

    let config: ConfigMap = world.get(&name).await?;
    world.change::<ConfigMap>(&name, json!({"data": {"config.yml": "broken"}})).await?;
    world.see::<ConfigMap>(&name, "healed", |next| next.data == config.data).await?;
    world.change::<Deployment>(&name, json!({"spec": {"replicas": 5}})).await?;
    world
        .see::<Deployment>(&name, "one replica", |next| next.spec.as_ref().unwrap().replicas == Some(1))
        .await?;
    let service: Service = world.get(&beside).await?;
    assert!(service.owner_references().iter().any(|owner| owner.kind == "Registry"));
    world.namespace.api::<Service>().delete(&beside, &kube::api::DeleteParams::default()).await?;
    world.see::<Service>(&beside, "another one", |next| next.uid() != service.uid()).await?;
    world
        .see::<Deployment>(&name, "settled", |next| {
            let status = next.status.as_ref().unwrap();
            status.observed_generation == next.metadata.generation
                && (status.replicas, status.available_replicas) == (Some(1), Some(1))
        })
        .await?;
    operator.stop().await?;
    let operator = world.operator().await?;
    world.ready(&owner).await?;
    world.ready(&controller_object).await?;
    operator.idle_after(2).await?;
    operator.events_written().await?;

    // Worth a look, and nothing to do about; then again after a restart.
    let mark = world.mark()?;
    let mut labelled = owner.clone();
    labelled["metadata"]["labels"] = json!({"seen": "yes"});
    let reconciles = operator.metric("controller_runtime_reconcile_total");
    world.put(&labelled).await?;
    operator.idle_after(reconciles + 1).await?;
    operator.stop().await?;
    let again = world.operator().await?;
    again.idle_after(2).await?;
    let writes = world.requests(mark)?.writes();
    assert!(writes.is_empty(), "{writes}");
    world.end(again).await
}

#[tokio::test]
async fn a_registry_waits_for_its_controller_and_the_controller_for_the_registrys_pods() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "registryctl").await?;
    furnish(&world).await?;
    let operator = world.operator().await?;
    let owner = component("Registry", "2.15.2", true);
    let mut beside = component("RegistryController", "2.15.2", true);
    world.put(&owner).await?;
    let named = format!("waiting for RegistryController {NAME}: it does not exist");
    world
        .status(&owner, "waiting for its controller", |status| {
            condition(status, "Ready")["message"].as_str().is_some_and(|message| message.starts_with(&named))
        })
        .await?;
    world.put(&beside).await?;
    world.ready(&owner).await?;
    let status = world.ready(&beside).await?;
    assert_eq!(status["operator"]["controllerName"], "registryctl");
    assert_eq!(condition(&status, "InProgress")["status"], "False");

    // A change of its spec is seen in the registry's pods, and it is ready when they run it.
    beside["spec"]["log"] = json!({"level": "debug"});
    world.put(&beside).await?;
    world.ready(&beside).await?;
    let config: ConfigMap = world.get(&child_name(NAME, "registryctl")).await?;
    assert!(config.data.unwrap()["config.yml"].contains("debug"));
    assert_eq!(revisions(&world, &child_name(NAME, "registry")).await?, 2, "one roll");

    // So is a change of a Secret that only it names.
    let mut rotated = secret("ctl-tls");
    rotated["stringData"]["tls.crt"] = json!("renewed");
    let before: Deployment = world.get(&child_name(NAME, "registry")).await?;
    world.put(&rotated).await?;
    world
        .see::<Deployment>(&child_name(NAME, "registry"), "rolled", |next| {
            next.metadata.generation > before.metadata.generation
        })
        .await?;
    world.ready(&owner).await?;

    let mut stray = component("RegistryController", "2.15.2", true);
    stray["metadata"]["name"] = json!("stray");
    world.put(&stray).await?;
    world
        .status(&stray, "told to have the registry's name", |status| {
            condition(status, "Failed")["status"] == "True"
                && condition(status, "Ready")["message"].to_string().contains("spec.registryRef")
        })
        .await?;
    world.end(operator).await
}

#[tokio::test]
async fn a_component_without_a_version_has_the_remedy_in_its_status() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "version").await?;
    let operator = world.operator().await?;
    let mut owner = component("Portal", "2.15.2", false);
    owner["metadata"]["annotations"] = json!({});
    world.put(&owner).await?;
    let status =
        world.status(&owner, "refused", |status| condition(status, "Failed")["status"] == "True").await?;
    let message = condition(&status, "Ready")["message"].to_string();
    assert!(message.contains("harbor.goharbor.io/version") && message.contains("spec.image"), "{message}");
    owner["metadata"]["annotations"] = json!({"harbor.goharbor.io/version": "2.15.2"});
    world.put(&owner).await?;
    world.ready(&owner).await?;
    world.end(operator).await
}

#[tokio::test]
async fn an_operator_with_a_class_reconciles_that_class_only() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "class").await?;
    let portal = |name: &str, class: Option<&str>| {
        let mut owner = component("Portal", "2.15.2", false);
        owner["metadata"]["name"] = json!(name);
        if let Some(class) = class {
            owner["metadata"]["annotations"]["goharbor.io/harbor-class"] = json!(class);
        }
        owner
    };
    for owner in [portal("none", None), portal("other", Some("green")), portal("ours", Some("blue"))] {
        world.put(&owner).await?;
    }
    let settings = HarborSettings { class: Some("blue".to_owned()), ..HarborSettings::default() };
    let operator = world.operator_with(&settings).await?;
    world.ready(&portal("ours", Some("blue"))).await?;
    operator.idle_after(3).await?;
    let made = world.namespace.api::<Deployment>().list(&ListParams::default()).await?.items;
    assert_eq!(made.iter().map(kube::ResourceExt::name_any).collect::<Vec<_>>(), ["ours-portal"]);

    // Handed over.
    world.put(&portal("none", Some("blue"))).await?;
    world.ready(&portal("none", Some("blue"))).await?;
    world.end(operator).await
}
