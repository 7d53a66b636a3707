//! A Harbor on a real control plane, with pods that only say that they run, under exactly the rights that the
//! manifests grant.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod certificates;
mod grows;
// Of the servers, only PostgreSQL is needed here; that a program is fetched is said.
#[allow(dead_code, clippy::print_stderr)]
#[path = "../kit/mod.rs"]
mod kit;
mod schema;
mod world;

use std::collections::BTreeMap;

use anyhow::Result;
use harbor_operator::api::{Core, Harbor, JobService, Registry, Trivy};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Secret, Service};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::json;
use windlass_testenv::world::Written;
use windlass_testenv::{Requests, Story, TestEnv, or_not_run};
use world::{World, harbor, status_and_message};

/// The most requests that a Harbor may cost until it is ready, events apart.
const BUDGET: usize = 70;
/// The part of it that is for objects and for following what they need: one write each, and one watch each.
const WITHOUT_STATUS: usize = 54;

/// The Secrets that each component refers to, by the ends of their names.
const TOLD: [(&str, &[&str]); 5] = [
    ("registrycontrollers", &["core-secret", "jobservice-secret", "internal-tls-registryctl"]),
    ("registries", &["registry-basicauth", "registry-http", "internal-tls-registry"]),
    (
        "cores",
        &[
            "registry-basicauth",
            "core-csrf",
            "core-secret",
            "core-tokencert",
            "core-encryptionkey",
            "jobservice-secret",
            "internal-tls-core",
        ],
    ),
    ("jobservices", &["core-secret", "jobservice-secret", "registry-basicauth", "internal-tls-jobservice"]),
    ("portals", &["internal-tls-portal"]),
];

/// Checks that the objects of a Harbor were created in order: Secrets and certificates before the components
/// that refer to them, the registry before Core, JobService after Core, and the Ingress last.
fn came_in_order(asked: &Requests) -> Result<()> {
    let written = Written::of(asked);
    let of = |kind: &str, part: &str| format!("{kind} sample-harbor-{part}");
    for (component, secrets) in TOLD {
        for &secret in secrets {
            written.before(&of("secrets", secret), &format!("{component} sample-harbor"))?;
            if secret.starts_with("internal-tls-") {
                written.before(&of("secrets", "internal-tls-authority"), &of("secrets", secret))?;
            }
        }
    }
    // No pods before what they read.
    for (kind, part) in [
        ("configmaps", "registry"),
        ("configmaps", "core"),
        ("secrets", "core"),
        ("configmaps", "jobservice"),
        ("secrets", "jobservice"),
        ("configmaps", "portal"),
    ] {
        written.before(&of(kind, part), &of("deployments", part))?;
    }
    for [first, then] in [
        ["registrycontrollers sample-harbor", "registries sample-harbor"],
        ["registries sample-harbor", "cores sample-harbor"],
        ["deployments sample-harbor-registry", "cores sample-harbor"],
        ["cores sample-harbor", "jobservices sample-harbor"],
        ["deployments sample-harbor-core", "jobservices sample-harbor"],
        ["deployments sample-harbor-core", "ingresses sample-harbor"],
        ["deployments sample-harbor-portal", "ingresses sample-harbor"],
    ] {
        written.before(first, then)?;
    }
    Ok(())
}

#[tokio::test]
async fn a_harbor_becomes_ready_in_order_within_its_budget_and_then_costs_nothing() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "minimal").await?;
    let operator = world.operator().await?;
    operator.settled().await?;
    let begun = world.mark()?;
    world.put::<Harbor>(harbor()).await?;
    let ready = world.ready().await?;
    assert_eq!(status_and_message(&ready, "InProgress").0, "False");
    assert_eq!(status_and_message(&ready, "Failed").0, "False");
    let status = json!(ready.status);
    assert_eq!(status["version"], "2.15.2");
    assert_eq!(status["operator"]["controllerName"], "harbor");
    // Nobody is there under the name of its database: that is said, and holds nothing up.
    let (clean, why) = status_and_message(&ready, "SchemaClean");
    assert!(clean == "Unknown" && why.contains("core on db:5432"), "{clean}: {why}");
    operator.settled().await?;

    let asked = world.requests(begun)?;
    // What the first Harbor of an installation costs once for all of them: keys of digests, and a look for
    // each kind that is missing.
    let once = |name: &str, resource: &str| {
        name.ends_with("-digest-key") || world::MISSING_KINDS.contains(&resource)
    };
    let first = asked.filter(|request| once(&request.name, &request.resource));
    let asked = asked.filter(|request| !once(&request.name, &request.resource));
    let mut counts = BTreeMap::<String, usize>::new();
    for request in asked.iter() {
        let slash = if request.subresource.is_empty() { "" } else { "/" };
        let what = format!("{} {}{slash}{}", request.verb, request.resource, request.subresource);
        *counts.entry(what).or_default() += 1;
    }
    let status = asked.filter(|request| request.subresource == "status").count();
    println!(
        "{} requests until ready, {status} of them for status; and {} once for all Harbors: {counts:#?}",
        asked.count(),
        first.count()
    );
    // How often a status is written depends on how long things take: at most once a second, while it waits.
    let (room, others) = (BUDGET - WITHOUT_STATUS, asked.count() - status);
    assert!(others <= WITHOUT_STATUS, "{others} requests, and room for {room} of status");

    came_in_order(&asked)?;

    let quiet = world.mark()?;
    let reconciles = operator.settled().await?;
    world.change::<Harbor>("sample", json!({"metadata": {"annotations": {"look": "again"}}})).await?;
    operator.idle_after(reconciles + 1).await?;
    let writes = world.requests(quiet)?.writes();
    assert!(writes.is_empty(), "converged, and yet: {writes}");

    operator.stop().await?;
    let restart = world.mark()?;
    let operator = world.operator().await?;
    operator.idle_after(6).await?; // the Harbor and its five components
    operator.settled().await?;
    let asked = world.requests(restart)?;
    println!("after a restart: {asked}");
    let others = asked.filter(|request| !matches!(&*request.verb, "list" | "watch"));
    // The key of digests is read once by each controller.
    let others = others.filter(|request| !request.name.ends_with("-digest-key"));
    assert!(others.is_empty(), "after a restart: {others}");
    world.end(operator).await
}

#[tokio::test]
async fn a1_an_edit_leaves_every_generated_secret_as_it_is() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "edit").await?;
    let operator = world.operator().await?;
    world.put::<Harbor>(harbor()).await?;
    world.ready().await?;
    let secrets = || async {
        let all = world.namespace.api::<Secret>().list(&ListParams::default()).await?.items;
        let ours = all.into_iter().filter(|secret| secret.name_any().starts_with("sample-harbor"));
        anyhow::Ok(ours.map(|secret| (secret.name_any(), secret.data)).collect::<BTreeMap<_, _>>())
    };
    let before = secrets().await?;
    assert!(
        before.contains_key("sample-harbor-registry-basicauth") && before.len() >= 13,
        "{:?}",
        before.keys()
    );
    let edit = json!({"spec": {"logLevel": "debug", "externalURL": "https://other.example.com"}});
    world.change::<Harbor>("sample", edit).await?;
    world
        .see("sample-harbor", "told of the edit", |core: &Core| {
            core.spec.external_endpoint == "https://other.example.com"
        })
        .await?;
    world.ready().await?;
    let after = secrets().await?;
    for (name, content) in &before {
        // What components render for themselves may change with the spec.
        if !name.ends_with("-core") && !name.ends_with("-jobservice") && !name.ends_with("-registry") {
            assert_eq!(after.get(name), Some(content), "{name}");
        }
    }
    world.end(operator).await
}

#[tokio::test]
async fn seam_h2_deletion_needs_no_finalizer_keeps_the_keys_and_the_next_harbor_of_that_name_finds_them()
-> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "delete").await?;
    let operator = world.operator().await?;
    world.put::<Harbor>(harbor()).await?;
    world.ready().await?;
    assert_eq!(world.get::<Harbor>("sample").await?.finalizers(), [""; 0]);
    let key: Secret = world.get("sample-harbor-core-encryptionkey").await?;
    assert!(key.owner_references().is_empty(), "the garbage collector has no say");
    let ended = world.mark()?;
    world.delete::<Harbor>("sample").await?;
    world.gone::<Harbor>("sample").await?;
    world.gone::<Core>("sample-harbor").await?;
    world.gone::<Secret>("sample-harbor-core-csrf").await?;
    world.gone::<Ingress>("sample-harbor").await?;
    // The garbage collector does that: a Harbor can be deleted without the operator.
    let deleted = world.requests(ended)?.verb("delete");
    assert!(deleted.is_empty(), "{deleted}");
    let kept: Secret = world.get("sample-harbor-core-encryptionkey").await?;
    assert_eq!((kept.uid(), &kept.data), (key.uid(), &key.data));
    world.put::<Harbor>(harbor()).await?;
    world.ready().await?;
    let found: Secret = world.get("sample-harbor-core-encryptionkey").await?;
    assert_eq!((found.uid(), &found.data), (key.uid(), &key.data));
    world.end(operator).await
}

#[tokio::test]
async fn a17_a_lost_key_is_a_failure_and_is_made_anew_only_where_that_is_allowed() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "lost").await?;
    let operator = world.operator().await?;
    world.put::<Harbor>(harbor()).await?;
    world.ready().await?;
    let lost = "sample-harbor-core-csrf";
    let before: Secret = world.get(lost).await?;
    world.delete::<Secret>(lost).await?;
    let failed = world
        .see("sample", "failed", |harbor: &Harbor| status_and_message(harbor, "Failed").0 == "True")
        .await?;
    let (_, message) = status_and_message(&failed, "Ready");
    assert!(message.contains(lost) && message.contains("windlass.dev/regenerate"), "{message}");
    assert!(world.namespace.api::<Secret>().get_opt(lost).await?.is_none());
    let allow = json!({"metadata": {"annotations": {"windlass.dev/regenerate": lost}}});
    world.change::<Harbor>("sample", allow).await?;
    world.ready().await?;
    let after: Secret = world.get(lost).await?;
    assert_ne!(after.data, before.data);
    world.end(operator).await
}

#[tokio::test]
async fn a10_trivy_can_be_removed_alone() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "trivy").await?;
    let operator = world.operator().await?;
    let mut with = harbor();
    with["spec"]["trivy"] = json!({"storage": {}, "templateAnnotations": Story::NeverReady.annotations()});
    with["metadata"]["annotations"] = json!({"goharbor.io/network-policies": "true"});
    world.put::<Harbor>(with).await?;
    world
        .see("sample", "waiting for Trivy", |harbor: &Harbor| {
            let (truth, message) = status_and_message(harbor, "Ready");
            truth == "False" && message.starts_with("waiting for Trivy sample-harbor:")
        })
        .await?;
    let pods = world.namespace.api::<Pod>();
    Story::Ready.assign_to(&pods, "trivy.goharbor.io/name=sample-harbor-trivy").await?;
    world.ready().await?;
    world.get::<NetworkPolicy>("sample-harbor-trivy-ingress").await?;

    world.change::<Harbor>("sample", json!({"spec": {"trivy": null}})).await?;
    world.ready().await?;
    world.gone::<Trivy>("sample-harbor").await?;
    world.gone::<Deployment>("sample-harbor-trivy").await?;
    world.gone::<Secret>("sample-harbor-internal-tls-trivy").await?;
    world.gone::<NetworkPolicy>("sample-harbor-trivy-ingress").await?;
    for still in ["core", "registry", "jobservice", "portal"] {
        world.get::<Deployment>(&format!("sample-harbor-{still}")).await?;
    }
    world.end(operator).await
}

#[tokio::test]
async fn a17_a_key_that_another_operator_made_is_kept_and_outlives_the_harbor() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "taken").await?;
    let owner = world.put::<Harbor>(harbor()).await?;
    let name = "sample-harbor-core-encryptionkey";
    let reference = json!({"apiVersion": "goharbor.io/v1beta1", "kind": "Harbor", "name": "sample", "uid": owner.uid(),
        "controller": true, "blockOwnerDeletion": true});
    let made = json!({"metadata": {"name": name, "ownerReferences": [reference]}, "type": "goharbor.io/single",
        "immutable": true, "stringData": {"secret": "0123456789abcdef"}});
    let before = world.put::<Secret>(made).await?;
    let operator = world.operator().await?;
    world.ready().await?;
    let kept: Secret = world.get(name).await?;
    assert_eq!((kept.uid(), &kept.data), (before.uid(), &before.data));
    assert!(kept.owner_references().is_empty(), "the garbage collector has no say any more");
    world.delete::<Harbor>("sample").await?;
    world.gone::<Secret>("sample-harbor-core-csrf").await?;
    assert_eq!(world.get::<Secret>(name).await?.data, before.data);
    world.end(operator).await
}

#[tokio::test]
async fn a_harbor_exposed_by_a_service_has_a_proxy() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "service").await?;
    let operator = world.operator().await?;
    let mut with = harbor();
    with["spec"]["expose"] = json!({"core": {"service": {"type": "ClusterIP"}, "tls": {}}});
    world.put::<Harbor>(with).await?;
    world.ready().await?;
    let service: Service = world.get("sample-harbor-proxy").await?;
    assert_eq!(service.spec.unwrap().ports.unwrap().len(), 2);
    let certificate: Secret = world.get("sample-harbor-public-tls").await?;
    assert!(certificate.data.unwrap().contains_key("ca.crt"));
    assert_eq!(world.namespace.api::<Ingress>().list(&ListParams::default()).await?.items.len(), 0);

    // The change to an Ingress deletes the proxy and its certificate.
    let ingress = json!({"ingress": {"host": "harbor.example.com"}, "tls": {"certificateRef": "public"}, "service": null});
    world.change::<Harbor>("sample", json!({"spec": {"expose": {"core": ingress}}})).await?;
    world.ready().await?;
    world.gone::<Deployment>("sample-harbor-proxy").await?;
    world.gone::<Secret>("sample-harbor-public-tls").await?;
    world.end(operator).await
}

/// The image of the first container of a Deployment.
fn image(deployment: &Deployment) -> String {
    let spec = json!(deployment.spec);
    spec["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn an_upgrade_begins_with_core_and_stops_there_if_core_does_not_come_up() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "upgrade").await?;
    let operator = world.operator().await?;
    let mut with = harbor();
    with["spec"]["version"] = json!("2.14.4");
    world.put::<Harbor>(with).await?;
    world.ready().await?;
    let version = |object: &dyn Fn() -> std::collections::BTreeMap<String, String>| {
        object().get("harbor.goharbor.io/version").cloned().unwrap_or_default()
    };
    let begun = world.mark()?;
    let stuck = json!({"spec": {"version": "2.15.2", "core": {"templateAnnotations": Story::NeverReady.annotations()}}});
    world.change::<Harbor>("sample", stuck).await?;
    world
        .see("sample", "waiting for Core", |harbor: &Harbor| {
            status_and_message(harbor, "Ready").1.starts_with("waiting for Core sample-harbor:")
        })
        .await?;
    let core: Core = world.get("sample-harbor").await?;
    let registry: Registry = world.get("sample-harbor").await?;
    let jobs: JobService = world.get("sample-harbor").await?;
    assert_eq!(version(&|| core.annotations().clone()), "2.15.2");
    assert_eq!(version(&|| registry.annotations().clone()), "2.14.4");
    assert_eq!(version(&|| jobs.annotations().clone()), "2.14.4");
    assert_eq!(json!(world.get::<Harbor>("sample").await?.status)["version"], "2.14.4");
    let is_new = |deployment: &Deployment| image(deployment).ends_with(":v2.15.2");
    world.see("sample-harbor-core", "of the new version", is_new).await?;
    for still in ["registry", "jobservice", "portal"] {
        let deployment: Deployment = world.get(&format!("sample-harbor-{still}")).await?;
        assert!(image(&deployment).ends_with(":v2.14.4"), "{still}: {}", image(&deployment));
    }

    let pods = world.namespace.api::<Pod>();
    Story::Ready.assign_to(&pods, "core.goharbor.io/name=sample-harbor-core").await?;
    let ready = world.ready().await?;
    assert_eq!(json!(ready.status)["version"], "2.15.2");
    let registry: Registry = world.get("sample-harbor").await?;
    assert_eq!(version(&|| registry.annotations().clone()), "2.15.2");
    // The same in the server's log: nobody's pods are replaced before Core's, and those of the jobs after the
    // registry's.
    let written = Written::of(&world.requests(begun)?.resource("deployments"));
    let parts = ["core", "registry", "jobservice", "portal"];
    for part in parts {
        assert!(is_new(&world.get(&format!("sample-harbor-{part}")).await?), "{part}");
    }
    let of = |part: &str| format!("deployments sample-harbor-{part}");
    assert_eq!(written.objects().len(), parts.len(), "{:?}", written.objects());
    for then in ["registry", "jobservice", "portal"] {
        written.before(&of("core"), &of(then))?;
    }
    written.before(&of("registry"), &of("jobservice"))?;

    // And not back.
    world.change::<Harbor>("sample", json!({"spec": {"version": "2.14.4"}})).await?;
    let refused = world
        .see("sample", "refused", |harbor: &Harbor| status_and_message(harbor, "Failed").0 == "True")
        .await?;
    assert!(
        status_and_message(&refused, "Ready").1.contains("cannot be downgraded"),
        "{:?}",
        status_and_message(&refused, "Ready")
    );
    assert_eq!(status_and_message(&refused, "InProgress").0, "False", "nothing goes on");
    world.end(operator).await
}

#[tokio::test]
async fn a4_objects_that_others_change_or_delete_are_restored() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "drift").await?;
    let operator = world.operator().await?;
    world.put::<Harbor>(harbor()).await?;
    world.ready().await?;
    world
        .change::<Core>("sample-harbor", json!({"spec": {"externalEndpoint": "https://evil.example.com"}}))
        .await?;
    world
        .see("sample-harbor", "put back", |core: &Core| {
            core.spec.external_endpoint == "https://harbor.example.com"
        })
        .await?;
    let before: Ingress = world.get("sample-harbor").await?;
    world.delete::<Ingress>("sample-harbor").await?;
    world.see("sample-harbor", "there again", |ingress: &Ingress| ingress.uid() != before.uid()).await?;
    world.ready().await?;
    world.end(operator).await
}

#[tokio::test]
async fn a11_a_waiting_harbor_has_not_failed_and_names_the_missing_secret() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "waiting").await?;
    world.delete::<Secret>("db").await?;
    let operator = world.operator().await?;
    world.put::<Harbor>(harbor()).await?;
    let waiting = world
        .see("sample", "waiting for the password", |harbor: &Harbor| {
            status_and_message(harbor, "Ready").1.contains("Secret db")
        })
        .await?;
    assert!(status_and_message(&waiting, "Ready").1.starts_with("waiting for Core sample-harbor:"));
    assert_eq!(status_and_message(&waiting, "Failed").0, "False");
    assert_eq!(status_and_message(&waiting, "InProgress").0, "True");
    let password = json!({"metadata": {"name": "db"}, "stringData": {"postgres-password": "password"}});
    world.put::<Secret>(password).await?;
    world.ready().await?;
    world.end(operator).await
}

#[tokio::test]
async fn users_an_impossible_database_password_is_named_before_anything_is_created_and_can_be_corrected()
-> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "password").await?;
    let password = |text: &str| json!({"stringData": {"postgres-password": text}});
    world.change::<Secret>("db", password("two words")).await?;
    let operator = world.operator().await?;
    operator.settled().await?;
    let begun = world.mark()?;
    world.put::<Harbor>(harbor()).await?;
    let refused = world
        .see("sample", "refused for its password", |harbor: &Harbor| {
            status_and_message(harbor, "Ready").1.contains("spec.database.passwordRef")
        })
        .await?;
    let (status, message) = status_and_message(&refused, "Ready");
    assert_eq!(status, "False");
    for part in ["Secret db", "key postgres-password", "choose one without"] {
        assert!(message.contains(part), "{part} in {message}");
    }
    assert!(!message.contains("two words"), "{message}");
    operator.settled().await?;
    let created: Vec<String> = world.writes(begun)?;
    assert!(!created.iter().any(|write| write.contains("sample-harbor")), "{created:#?}");
    world.change::<Secret>("db", password("password")).await?;
    world.ready().await?;
    world.end(operator).await
}
