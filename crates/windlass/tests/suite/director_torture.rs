//! A Cell is created, shrinks, gets another version and is deleted, and its operator is killed at every one
//! of its writes. The store outlives the operator.
//!
//! A normal run of the tests takes a slice. To run all points:
//! `WINDLASS_TORTURE=all cargo test -p windlass --test suite director_torture -- --nocapture`.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::CustomResourceExt as _;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde_json::{Value, json};
use windlass::PlanController;
use windlass_testenv::torture::{Kind, OperatorRun, Scene, Torture};
use windlass_testenv::{TestEnv, or_not_run};

use super::kit::Operator;
use super::kit::cell::{Call, Cell, CellDirector, CellSpec, LABEL, Store};

/// The stores of all namespaces: every run of the scenario has a namespace of its own.
#[derive(Clone, Default)]
struct Stores(Arc<Mutex<HashMap<String, Arc<Store>>>>);

impl Stores {
    fn of(&self, namespace: &str) -> Arc<Store> {
        Arc::clone(self.0.lock().entry(namespace.to_owned()).or_default())
    }
}

async fn is_ready(scene: &Scene) -> Result<bool> {
    let cell = scene.api::<Cell>().get("one").await?;
    let conditions = cell.status.map(|status| status.standard.conditions).unwrap_or_default();
    Ok(conditions.iter().any(|condition| {
        condition.type_ == "Ready"
            && condition.status == "True"
            && condition.observed_generation == cell.metadata.generation
    }))
}

async fn change(scene: &Scene, spec: Value) -> Result<()> {
    let change = Patch::Merge(json!({"spec": spec}));
    scene.api::<Cell>().patch("one", &PatchParams::default(), &change).await?;
    Ok(())
}

/// Returns whether every pod has the image of this version.
async fn have_version(scene: &Scene, version: &str) -> Result<bool> {
    let pods = scene.api::<Pod>().list(&ListParams::default().labels(&format!("{LABEL}=one"))).await?;
    let image = format!("store:{version}");
    let has_it = |pod: &Pod| {
        let spec = pod.spec.as_ref();
        spec.is_some_and(|spec| spec.containers.iter().all(|one| one.image.as_deref() == Some(&*image)))
    };
    Ok(pods.items.iter().all(has_it))
}

/// Owners have other uids in every run, and so do the marks that contain them.
fn forget_uids(object: &mut DynamicObject) {
    let metadata = &mut object.metadata;
    metadata.labels.iter_mut().for_each(|labels| labels.retain(|label, _| label != "windlass.dev/owner"));
    if let Some(marks) = &mut metadata.annotations {
        marks.retain(|mark, _| mark != "windlass.dev/digest");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_director_that_is_killed_at_any_write_moves_no_member_twice() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(&[Cell::crd()]).await?;
    let stores = Stores::default();
    let of_operator = stores.clone();
    let [shrunk, rolled] = [stores.clone(), stores];
    let report = Torture::new("cell", move |run: OperatorRun| {
        let director = CellDirector { store: of_operator.of(run.namespace()) };
        async move {
            let operator =
                Operator::with(run.config(), run.namespace(), PlanController::directed_by(director))?;
            operator.run().await
        }
    })
    .watch(Kind::of::<Cell>())
    .watch(Kind::of::<StatefulSet>())
    .step(
        "create",
        |scene| async move {
            let spec = CellSpec { members: 3, version: "1".into(), broken: false };
            scene.api::<Cell>().create(&PostParams::default(), &Cell::new("one", spec)).await?;
            Ok(())
        },
        |scene| async move { Ok(is_ready(&scene).await?) },
    )
    .step(
        "shrink",
        |scene| async move { Ok(change(&scene, json!({"members": 2})).await?) },
        move |scene| {
            let store = shrunk.of(scene.namespace());
            async move {
                let left = store.calls.lock().iter().filter(|call| matches!(call, Call::Leave(_))).count();
                Ok(is_ready(&scene).await? && left == 1 && store.members.lock().len() == 2)
            }
        },
    )
    .step(
        "roll",
        |scene| async move { Ok(change(&scene, json!({"version": "2"})).await?) },
        move |scene| {
            let store = rolled.of(scene.namespace());
            async move {
                let members = store.members.lock().len();
                Ok(is_ready(&scene).await? && have_version(&scene, "2").await? && members == 2)
            }
        },
    )
    .step(
        "delete",
        |scene| async move {
            scene.api::<Cell>().delete("one", &DeleteParams::default()).await?;
            Ok(())
        },
        |scene| async move { Ok(scene.api::<StatefulSet>().get_opt("one").await?.is_none()) },
    )
    .normalise(forget_uids)
    .owners("cells")
    .slice_by_commit(12)
    .run(&env)
    .await?;
    println!("{report}");
    report.assert_passed();
    Ok(())
}
