//! Every property of a Harbor and of a HarborCluster is mutated, with the webhooks.
//!
//! All cases take hours: a run of the tests takes a slice, chosen by the commit. All of them:
//! `WINDLASS_MUTATION=all cargo test -p harbor-operator --test mutation -- --nocapture`.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use harbor_operator::api::Harbor;
use harbor_operator::settings::HarborSettings;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt as _;
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use windlass::names::mark;
use windlass_operator::Operator;
use windlass_testenv::mutation::Mutation;
use windlass_testenv::torture::{Kind, OperatorRun, Scene, StepResult};
use windlass_testenv::{TestEnv, or_not_run};

/// The number of slices of the cases of one kind. One takes about half a minute.
const SLICES: u64 = 240;

/// The ends of the names of what components render for themselves: it follows the spec.
const RENDERED: [&str; 3] = ["-core", "-jobservice", "-registry"];

/// The text of a file beside this one.
fn read(name: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutation").join(name);
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

fn operator() -> Operator {
    // A cheap hash: its strength is not tested.
    harbor_operator::operator_with(&HarborSettings {
        registry_encryption_cost: 4,
        ..HarborSettings::default()
    })
}

/// Creates what the values of the cases refer to. The generated names are `mutation-a` and `mutation-b`.
async fn furnish(scene: Scene) -> StepResult {
    let certificate = json!({"tls.crt": "certificate", "tls.key": "key", "ca.crt": "authority"});
    let everything = |text: &str| {
        let mut data = certificate.clone();
        let keys = [
            "secret",
            "password",
            "postgres-password",
            "redis-password",
            "username",
            "token",
            "github-token",
            "secretkey",
            "accesskey",
            "accountkey",
            "options",
            "GCS_KEY_DATA",
            "config",
        ];
        for key in keys {
            data[key] = json!(text);
        }
        data
    };
    for (name, data) in [
        ("admin", json!({"secret": "Harbor12345"})),
        ("sample-admin", json!({"secret": "Harbor12345"})),
        ("db", json!({"postgres-password": "password"})),
        ("public", certificate.clone()),
        ("mutation-a", everything("a")),
        ("mutation-b", everything("b")),
    ] {
        let secret = serde_json::from_value(json!({"metadata": {"name": name}, "stringData": data}))?;
        scene.api::<Secret>().create(&PostParams::default(), &secret).await?;
    }
    let spec = json!({"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}});
    for name in ["images", "mutation-a", "mutation-b"] {
        let claim = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec}))?;
        scene.api::<PersistentVolumeClaim>().create(&PostParams::default(), &claim).await?;
    }
    for name in ["mutation-a", "mutation-b"] {
        let account = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        scene.api::<ServiceAccount>().create(&PostParams::default(), &account).await?;
    }
    Ok(())
}

/// Returns true if the API server asks the webhooks about Harbors of the namespace.
async fn asks(scene: Scene) -> StepResult<bool> {
    let base: Value = serde_json::from_str(&read("harbor.json")?)?;
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let mut harbor: Value = base;
    harbor["spec"]["version"] = json!("9.9.9");
    let refused = scene.api::<Harbor>().create(&dry, &serde_json::from_value(harbor)?).await;
    Ok(matches!(refused, Err(kube::Error::Api(status)) if status.message.contains("9.9.9")))
}

/// Returns true for Secrets with random content that changes when they are recreated: only their keys are
/// compared.
fn is_generated(secret: &DynamicObject) -> bool {
    let name = secret.name_any();
    let ours = name.starts_with("sample-") || name.ends_with("-digest-key");
    ours && name != "sample-admin" && !RENDERED.iter().any(|end| name.ends_with(end))
}

/// Takes out marks that follow from random content and from the server's own work.
fn forget_what_differs(object: &mut DynamicObject) {
    let made = [
        mark::DIGEST,
        mark::DEPENDENCIES,
        mark::DUE,
        mark::MADE_FROM,
        mark::MADE_AT,
        // Has the generation in it, which grows on the way back too.
        "registryctl.goharbor.io/revision",
    ];
    let of_the_server = |mark: &str| {
        ["volume.", "pv.", "deployment.kubernetes.io/"].iter().any(|prefix| mark.starts_with(prefix))
    };
    // The owner of an object that was made again has another uid.
    if let Some(labels) = &mut object.metadata.labels {
        labels.retain(|label, _| label != "windlass.dev/owner");
    }
    if let Some(marks) = &mut object.metadata.annotations {
        marks.retain(|mark, _| !made.contains(&&**mark) && !of_the_server(mark));
    }
    for place in ["/spec/template/metadata/annotations", "/spec/template/metadata/labels"] {
        if let Some(marks) = object.data.pointer_mut(place).and_then(Value::as_object_mut) {
            marks.retain(|mark, _| !made.contains(&&**mark));
        }
    }
}

/// The mutation of a kind, with the files that begin with `name`.
fn mutation(kind: &str, name: &str) -> Result<Mutation> {
    let operator = operator();
    let definition = operator.definitions().iter().find(|one| one.spec.names.kind == kind);
    let definition = definition.with_context(|| format!("no definition of {kind}"))?;
    let base = serde_json::from_str(&read(&format!("{name}.json"))?)?;
    let values = format!("{}\n{}", read("common.values.txt")?, read(&format!("{name}.values.txt"))?);
    let start =
        |run: OperatorRun| async move { example_support::run_with_webhooks(&self::operator(), &run).await };
    // Kinds of our own are left out: a field that is only passed on to one of them has no effect yet.
    Ok(Mutation::new(name, definition, base, start)
        .values(values)
        .exceptions(read(&format!("{name}.exceptions.txt"))?)
        .watch(Kind::of::<Deployment>())
        .watch(Kind::of::<StatefulSet>())
        .watch(Kind::of::<Service>())
        .watch(Kind::of::<ConfigMap>())
        .watch(Kind::of::<Secret>().created_once_where(is_generated))
        .watch(Kind::of::<PersistentVolumeClaim>())
        .watch(Kind::of::<Ingress>())
        .watch(Kind::of::<NetworkPolicy>())
        .watch(Kind::of::<PodDisruptionBudget>())
        .normalise(forget_what_differs)
        .prepare(furnish)
        .serves(asks)
        .patience(Duration::from_mins(1))
        // An operator waits a second before it says a second time what it waits for.
        .calm(Duration::from_millis(1200))
        .lanes(3)
        .slice_by_commit(SLICES))
}

#[allow(clippy::print_stdout)] // shows the judged cases
async fn run(kind: &str, name: &str) -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(operator().definitions()).await?;
    let report = or_not_run!(mutation(kind, name)?.run(&env).await);
    println!("{report}");
    report.assert_passed();
    Ok(())
}

#[test]
fn every_property_has_a_value_and_every_line_of_the_files_a_property() {
    for (kind, name) in [("Harbor", "harbor"), ("HarborCluster", "harborcluster")] {
        let ids = mutation(kind, name).unwrap().ids().unwrap();
        println!("{kind}: {} cases\n{}", ids.len(), ids.join("\n"));
        assert!(ids.len() > 1000, "{kind}: {}", ids.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_of_a_harbor_are_mutated() -> Result<()> {
    run("Harbor", "harbor").await
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_of_a_harborcluster_are_mutated() -> Result<()> {
    run("HarborCluster", "harborcluster").await
}
