//! A Harbor with internal TLS is created, reconfigured, upgraded and deleted, and its operator is killed at
//! every one of its writes.
//!
//! All points take hours: a run of the tests takes a slice, chosen by the commit. All of them:
//! `WINDLASS_TORTURE=all cargo test -p harbor-operator --test program torture -- --nocapture`.

use std::time::Duration;

use anyhow::Result;
use harbor_operator::api::{Core, Harbor, JobService, Portal, Registry, RegistryController};
use harbor_operator::settings::HarborSettings;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass::names::mark;
use windlass_operator::Settings;
use windlass_runtime::manager::Stop;
use windlass_testenv::torture::{Kind, OperatorRun, Scene, StepResult, Torture};
use windlass_testenv::{TestEnv, or_not_run};

use crate::world::{furnish, harbor, is_ready};

/// The number of slices. A run of the tests takes one.
const SLICES: u64 = 200;
/// Secrets that components render for themselves: they follow the spec, and hold generated values.
const RENDERED: [&str; 3] = ["sample-harbor-core", "sample-harbor-jobservice", "sample-harbor-registry"];

/// Generated: random, and never changed, whatever happens.
fn is_generated(secret: &DynamicObject) -> bool {
    let name = secret.name_any();
    (name.starts_with("sample-harbor") || name.ends_with("-digest-key")) && !RENDERED.contains(&&*name)
}

/// Owners have other uids in every run, and so have the marks that are made of them and of what is random.
fn forget_what_differs(object: &mut DynamicObject) {
    // The last three are of certificates: made at another time, of an authority with another key.
    let made_of_uids = [mark::DIGEST, mark::DEPENDENCIES, mark::DUE, mark::MADE_FROM, mark::MADE_AT];
    let of_volumes = |mark: &str| {
        ["volume.", "pv.", "deployment.kubernetes.io/"].iter().any(|prefix| mark.starts_with(prefix))
    };
    if let Some(labels) = &mut object.metadata.labels {
        labels.retain(|label, _| label != "windlass.dev/owner");
    }
    if let Some(marks) = &mut object.metadata.annotations {
        marks.retain(|mark, _| !made_of_uids.contains(&&**mark) && !of_volumes(mark));
    }
    if let Some(spec) = object.data.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("volumeName");
    }
    for place in ["/spec/template/metadata/annotations", "/spec/template/metadata/labels"] {
        if let Some(marks) = object.data.pointer_mut(place).and_then(Value::as_object_mut) {
            marks.retain(|mark, _| !made_of_uids.contains(&&**mark));
        }
    }
    if RENDERED.contains(&&*object.name_any())
        && let Some(data) = object.data.get_mut("data").and_then(Value::as_object_mut)
    {
        data.values_mut().for_each(|value| *value = json!("rendered"));
    }
}

async fn change(scene: &Scene, patch: Value) -> StepResult {
    scene.api::<Harbor>().patch("sample", &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

async fn ready(scene: &Scene, version: &str, url: &str) -> StepResult<bool> {
    let harbor = scene.api::<Harbor>().get("sample").await?;
    let core = scene.api::<Core>().get("sample-harbor").await?;
    let at = json!(harbor.status)["version"] == version && core.spec.external_endpoint == url;
    Ok(at && is_ready(&harbor))
}

/// Returns true if everything that is deleted with a Harbor is gone.
async fn gone(scene: &Scene) -> StepResult<bool> {
    let all = ListParams::default();
    let harbor = scene.api::<Harbor>().get_opt("sample").await?.is_some();
    let workloads = scene.api::<Deployment>().list(&all).await?.items.len();
    let services = scene.api::<Service>().list(&all).await?.items.len();
    let ingresses = scene.api::<Ingress>().list(&all).await?.items.len();
    let is_ours =
        |name: String| name.starts_with("sample-harbor") && name != "sample-harbor-core-encryptionkey";
    let maps = scene.api::<ConfigMap>().list(&all).await?.items;
    let secrets = scene.api::<Secret>().list(&all).await?.items;
    let left = maps.iter().filter(|map| is_ours(map.name_any())).count()
        + secrets.iter().filter(|secret| is_ours(secret.name_any())).count();
    Ok(!harbor && workloads + services + ingresses + left == 0)
}

#[tokio::test(flavor = "multi_thread")]
async fn torture_of_a_harbor_that_is_created_reconfigured_upgraded_and_deleted() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(harbor_operator::operator().definitions()).await?;
    let report = Torture::new("harbor", |run: OperatorRun| async move {
        let options = HarborSettings { registry_encryption_cost: 4, ..HarborSettings::default() };
        let home = run.namespace();
        let settings =
            Settings { own_namespace: Some(home.to_owned()), ..Settings::default().in_namespaces([home]) };
        let process = harbor_operator::operator_with(&options).assemble(run.config(), &settings)?;
        let (_stopper, stop) = Stop::pair();
        process.run_until(stop).await?;
        anyhow::Ok(())
    })
    .watch(Kind::of::<Harbor>())
    .watch(Kind::of::<Core>())
    .watch(Kind::of::<JobService>())
    .watch(Kind::of::<Portal>())
    .watch(Kind::of::<Registry>())
    .watch(Kind::of::<RegistryController>())
    .watch(Kind::of::<Deployment>())
    .watch(Kind::of::<Service>())
    .watch(Kind::of::<ConfigMap>())
    .watch(Kind::of::<Secret>().created_once_where(is_generated))
    .watch(Kind::of::<PersistentVolumeClaim>())
    .watch(Kind::of::<Ingress>())
    .step(
        "create",
        |scene| async move {
            furnish(&scene.client(), scene.namespace()).await?;
            let mut sample = harbor();
            sample["spec"]["version"] = json!("2.14.4");
            scene.api::<Harbor>().create(&PostParams::default(), &serde_json::from_value(sample)?).await?;
            Ok(())
        },
        |scene| async move { ready(&scene, "2.14.4", "https://harbor.example.com").await },
    )
    .step(
        "reconfigure",
        |scene| async move {
            let spec = json!({"logLevel": "debug", "externalURL": "https://other.example.com", "portal": {"replicas": 2}});
            change(&scene, json!({"spec": spec})).await
        },
        |scene| async move { ready(&scene, "2.14.4", "https://other.example.com").await },
    )
    .step(
        "upgrade",
        |scene| async move { change(&scene, json!({"spec": {"version": "2.15.2"}})).await },
        |scene| async move { ready(&scene, "2.15.2", "https://other.example.com").await },
    )
    .step(
        "delete",
        |scene| async move {
            scene.api::<Harbor>().delete("sample", &DeleteParams::default()).await?;
            Ok(())
        },
        |scene| async move { gone(&scene).await },
    )
    .normalise(forget_what_differs)
    .patience(Duration::from_mins(2))
    // An operator waits a second before it says a second time what it waits for.
    .calm(Duration::from_millis(1500))
    .side_by_side(2)
    .slice_by_commit(SLICES)
    .run(&env)
    .await?;
    println!("{report}");
    report.assert_passed();
    Ok(())
}
