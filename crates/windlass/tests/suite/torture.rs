//! A Shop is created, changed and deleted, and its operator is killed at every one of its writes.
//!
//! All points take a while: a normal run of the tests takes a slice, chosen by the commit. To run all of
//! them: `WINDLASS_TORTURE=all cargo test -p windlass --test suite torture -- --nocapture`.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::kit;

use anyhow::Result;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::Ingress;
use kube::CustomResourceExt as _;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass::PlanController;
use windlass_testenv::torture::{Kind, OperatorRun, Scene, Torture};
use windlass_testenv::{TestEnv, or_not_run};

use kit::Operator;
use kit::shop::{Registrar, Shop, Shops, password, shop};

/// Returns whether the shop exists and is ready with this image.
async fn is_ready(scene: &Scene, image: &str) -> Result<bool> {
    let shop = scene.api::<Shop>().get("one").await?;
    let conditions = shop.status.map(|status| status.standard.conditions).unwrap_or_default();
    let ready = conditions.iter().any(|condition| {
        condition.type_ == "Ready"
            && condition.status == "True"
            && condition.observed_generation == shop.metadata.generation
    });
    Ok(ready && shop.spec.image == image)
}

/// Owners have other uids in every run, and so do the marks that contain them.
fn forget_uids(object: &mut DynamicObject) {
    let metadata = &mut object.metadata;
    metadata.labels.iter_mut().for_each(|labels| labels.retain(|label, _| label != "windlass.dev/owner"));
    let made_of_uids = ["windlass.dev/digest", "windlass.dev/dependencies"];
    // The volume controllers write these at any time.
    let of_volumes = |mark: &str| ["volume.", "pv."].iter().any(|prefix| mark.starts_with(prefix));
    if let Some(marks) = &mut metadata.annotations {
        marks.retain(|mark, _| !made_of_uids.contains(&&**mark) && !of_volumes(mark));
    }
    if let Some(spec) = object.data.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("volumeName");
    }
    for place in [
        "/spec/template/metadata/annotations",
        "/spec/template/metadata/labels",
        "/spec/selector/matchLabels",
    ] {
        if let Some(marks) = object.data.pointer_mut(place).and_then(Value::as_object_mut) {
            marks.retain(|mark, _| mark != "windlass.dev/dependencies" && !mark.ends_with("controller-uid"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_is_killed_at_any_write_reaches_the_same_state() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(&[Shop::crd()]).await?;
    // The outside world outlives the operator.
    let registrar = Registrar::default();
    let report = Torture::new("shop", move |run: OperatorRun| {
        let blueprint = Shops { registrar: registrar.clone() };
        async move {
            let operator = Operator::with(run.config(), run.namespace(), PlanController::of(blueprint))?;
            operator.run().await
        }
    })
    .watch(Kind::of::<Shop>())
    .watch(Kind::of::<ServiceAccount>())
    .watch(Kind::of::<ConfigMap>())
    .watch(
        Kind::of::<Secret>().created_once_where(|secret| secret.metadata.name.as_deref() == Some("one-key")),
    )
    .watch(Kind::of::<PersistentVolumeClaim>())
    .watch(Kind::of::<StatefulSet>())
    .watch(Kind::of::<Service>())
    .watch(Kind::of::<Job>())
    .watch(Kind::of::<Deployment>())
    .watch(Kind::of::<Ingress>())
    .step(
        "create",
        |scene| async move {
            scene.api::<Secret>().create(&PostParams::default(), &password("one")).await?;
            scene.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
            Ok(())
        },
        |scene| async move { Ok(is_ready(&scene, "shop:1").await?) },
    )
    .step(
        "change",
        |scene| async move {
            let change = Patch::Merge(json!({"spec": {"image": "shop:2", "host": null}}));
            scene.api::<Shop>().patch("one", &PatchParams::default(), &change).await?;
            Ok(())
        },
        |scene| async move {
            let pruned = scene.api::<Ingress>().get_opt("one-web").await?.is_none();
            Ok(pruned && is_ready(&scene, "shop:2").await?)
        },
    )
    .step(
        "delete",
        |scene| async move {
            scene.api::<Shop>().delete("one", &DeleteParams::default()).await?;
            Ok(())
        },
        |scene| async move {
            let shop = scene.api::<Shop>().get_opt("one").await?;
            let web = scene.api::<Deployment>().get_opt("one-web").await?;
            Ok(shop.is_none() && web.is_none())
        },
    )
    .normalise(forget_uids)
    .owners("shops")
    .slice_by_commit(10)
    .run(&env)
    .await?;
    println!("{report}");
    report.assert_passed();
    Ok(())
}
