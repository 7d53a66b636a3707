//! Deletion: of an owner in reverse order, of a node that has left the plan; and objects that must not be
//! deleted with them.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::kit;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ObjectMeta, PostParams};
use serde_json::{Value, json};
use windlass::{Blueprint, Controls, Deletion, Kinds, Needs, Plan, PlanController, PlanError};
use windlass_testenv::{TestEnv, or_not_run};

use kit::Corner;
use kit::bundle::{Bundle, BundleSpec, Bundles, Item, note};
use kit::shop::{Shop, Shops, password, shop};

/// A shop named `one` that is ready.
async fn open_shop(corner: &Corner) -> Result<()> {
    corner.namespace.api::<Secret>().create(&PostParams::default(), &password("first")).await?;
    corner.namespace.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    Ok(())
}

fn deletes(writes: Vec<String>) -> Vec<String> {
    writes.iter().filter_map(|write| write.strip_prefix("delete ").map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_is_deleted_in_reverse_order_and_a_stuck_step_is_reported() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "reverse").await?;
    let shops = Shops::default();
    let registrar = shops.registrar.clone();
    let operator = corner.operate(PlanController::of(shops)).await?;
    open_shop(&corner).await?;
    assert_eq!(registrar.shops.lock().len(), 1);
    let claim = corner.object("PersistentVolumeClaim", "one-data").await?;

    *registrar.refuses.lock() = Some("the registry office is closed".into());
    let mark = corner.mark()?;
    corner.delete("Shop", "one").await?;
    let message = "deleting, waiting for registration: the registry office is closed";
    let (reason, _) = corner.until_message::<Shop>("one", "Ready", "False", message).await?;
    assert_eq!(reason, "Deleting");
    corner.look_again(&operator, "Shop", "one").await?;
    let mut early = deletes(corner.writes_since(mark)?);
    early.sort();
    assert_eq!(early, ["ingresses one-web", "services one-web"], "what the step depends on stays");

    *registrar.refuses.lock() = None;
    corner.gone("Shop", "one").await?;
    assert!(registrar.shops.lock().is_empty());
    let order = deletes(corner.writes_since(mark)?);
    let place = |start: &str| {
        let found = order.iter().position(|delete| delete.starts_with(start));
        found.unwrap_or_else(|| panic!("no {start} in {order:#?}"))
    };
    for (first, then) in [
        ("ingresses one-web", "services one-web"),
        ("deployments one-web", "jobs one-migrate-"),
        ("deployments one-web", "configmaps one-config"),
        ("jobs one-migrate-", "statefulsets one-db"),
        ("jobs one-migrate-", "services one-db"),
        ("statefulsets one-db", "serviceaccounts one-runner"),
        ("statefulsets one-db", "secrets one-key"),
    ] {
        assert!(place(first) < place(then), "{first} before {then}: {order:#?}");
    }
    assert_eq!(order.len(), 9, "each once, but the data never: {order:#?}");

    // The next owner of that name gets the data of the former one.
    corner.namespace.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    let taken_back = corner.object("PersistentVolumeClaim", "one-data").await?;
    assert_eq!(taken_back["metadata"]["uid"], claim["metadata"]["uid"]);
    assert_eq!(taken_back["spec"], claim["spec"]);
    let owner = corner.object("Shop", "one").await?;
    assert_eq!(taken_back["metadata"]["labels"]["windlass.dev/owner"], owner["metadata"]["uid"]);
    assert_eq!(taken_back["metadata"]["ownerReferences"], Value::Null);
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_object_that_leaves_the_plan_is_pruned() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "pruned").await?;
    let operator = corner.operate(PlanController::of(Shops::default())).await?;
    open_shop(&corner).await?;
    let (mark, mut standing) = (corner.mark()?, corner.standing().await?);
    corner.change("Shop", "one", json!({"spec": {"host": null}})).await?;
    corner.gone("Ingress", "one-web").await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    corner.look_again(&operator, "Shop", "one").await?;
    let writes = corner.writes_since(mark)?;
    let of_plan: Vec<_> = writes.iter().filter(|write| !write.contains(" shops")).collect();
    assert_eq!(of_plan, ["delete ingresses one-web"], "{writes:#?}");
    standing.remove("Ingress one-web");
    assert_eq!(corner.standing().await?, standing);
    operator.stop().await
}

async fn bundle(corner: &Corner, name: &str, items: Vec<Item>) -> Result<()> {
    let spec = BundleSpec { items, ..BundleSpec::default() };
    corner.namespace.api::<Bundle>().create(&PostParams::default(), &Bundle::new(name, spec)).await?;
    corner.until::<Bundle>(name, "Ready", "True").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn dependents_are_pruned_before_their_dependencies() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "chain").await?;
    let operator = corner.operate(PlanController::of(Bundles::default())).await?;
    let items = vec![
        Item::of(note("stays")),
        Item::of(note("a")),
        Item::of(note("b")).after("ConfigMap a"),
        Item::of(note("c")).after("ConfigMap b"),
    ];
    bundle(&corner, "one", items.clone()).await?;
    // A finalizer holds the last object: the objects that it depends on must wait for it.
    let held = json!({"metadata": {"finalizers": ["test.windlass.dev/hold"]}});
    corner.change("ConfigMap", "c", held).await?;
    let mark = corner.mark()?;
    corner.change("Bundle", "one", json!({"spec": {"items": [items[0]]}})).await?;
    windlass_testenv::eventually("the last of the chain is being deleted", || async {
        let last = corner.object("ConfigMap", "c").await.map_err(|error| error.to_string())?;
        let meta = &last["metadata"];
        if meta["deletionTimestamp"].is_null() { Err(meta.to_string()) } else { Ok(()) }
    })
    .await?;
    corner.look_again(&operator, "Bundle", "one").await?;
    assert_eq!(deletes(corner.writes_since(mark)?), ["configmaps c"]);
    corner.change("ConfigMap", "c", json!({"metadata": {"finalizers": null}})).await?;
    corner.gone("ConfigMap", "a").await?;
    assert_eq!(deletes(corner.writes_since(mark)?), ["configmaps c", "configmaps b", "configmaps a"]);
    corner.until::<Bundle>("one", "Ready", "True").await?;
    corner.object("ConfigMap", "stays").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_others_are_kept_even_with_our_labels() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "foreign").await?;
    let operator = corner.operate(PlanController::of(Bundles::default())).await?;
    bundle(&corner, "one", vec![Item::of(note("a")), Item::of(note("b"))]).await?;
    corner.change("Bundle", "one", json!({"spec": {"ordered": true}})).await?;
    let owner = corner.object("Bundle", "one").await?;
    let labels = json!({"windlass.dev/controller": "bundle.test.windlass.dev", "windlass.dev/owner": owner["metadata"]["uid"]});
    let keeper = corner.namespace.api::<Secret>().create(&PostParams::default(), &password("x")).await?;
    let reference = json!([{"apiVersion": "v1", "kind": "Secret", "name": "password", "uid": keeper.metadata.uid, "controller": true}]);
    // A foreign object; a copy of one of ours with its labels; and one of ours that another controller
    // controls.
    let before = operator.reconciles();
    for metadata in [
        json!({"name": "stranger"}),
        json!({"name": "copy", "labels": labels}),
        json!({"name": "theirs", "labels": labels, "ownerReferences": reference}),
    ] {
        let map: ConfigMap = serde_json::from_value(json!({"metadata": metadata}))?;
        corner.namespace.api::<ConfigMap>().create(&PostParams::default(), &map).await?;
    }
    operator.looked_after(before).await?;
    let mark = corner.mark()?;
    corner.change("Bundle", "one", json!({"spec": {"items": [Item::of(note("a"))]}})).await?;
    corner.gone("ConfigMap", "b").await?;
    corner.look_again(&operator, "Bundle", "one").await?;
    corner.delete("Bundle", "one").await?;
    corner.gone("Bundle", "one").await?;
    assert_eq!(deletes(corner.writes_since(mark)?), ["configmaps b", "configmaps a"]);
    for name in ["stranger", "copy", "theirs"] {
        let map = corner.object("ConfigMap", name).await?;
        assert_eq!(map["metadata"]["deletionTimestamp"], Value::Null, "{map:#}");
    }
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_held_by_a_finalizer_is_named_with_the_finalizer() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "held").await?;
    let operator = corner.operate(PlanController::of(Shops::default())).await?;
    open_shop(&corner).await?;
    let held = json!({"metadata": {"finalizers": ["test.windlass.dev/hold"]}});
    corner.change("Service", "one-web", held).await?;
    corner.delete("Shop", "one").await?;
    let message = "Service one-web: it is being deleted, held by test.windlass.dev/hold";
    let (reason, _) = corner.until_message::<Shop>("one", "Ready", "False", message).await?;
    assert_eq!(reason, "Deleting");
    corner.change("Service", "one-web", json!({"metadata": {"finalizers": null}})).await?;
    corner.gone("Shop", "one").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_without_an_ordered_deletion_is_left_to_the_garbage_collector() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "collected").await?;
    let operator = corner.operate(PlanController::of(Bundles::default())).await?;
    bundle(&corner, "one", vec![Item::of(note("a")), Item::of(note("b"))]).await?;
    let owner = corner.object("Bundle", "one").await?;
    assert_eq!(owner["metadata"]["finalizers"], Value::Null);
    let mark = corner.mark()?;
    corner.delete("Bundle", "one").await?;
    corner.gone("ConfigMap", "a").await?;
    corner.gone("ConfigMap", "b").await?;
    assert_eq!(corner.writes_since(mark)?, [""; 0]);
    operator.stop().await
}

/// A controller whose former version deleted its Bundles in order.
struct Former;

impl Controls for Former {
    type Owner = Bundle;
    const NAME: &'static str = "former.test.windlass.dev";
    const DELETION: Deletion<Bundle> = Deletion::NoLongerOrdered;

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<ConfigMap>();
    }
}

impl Blueprint for Former {
    fn draw(&self, bundle: &Bundle, _: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        let name = bundle.metadata.name.clone();
        plan.add(ConfigMap {
            metadata: ObjectMeta { name, ..ObjectMeta::default() },
            ..ConfigMap::default()
        });
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_h2_the_finalizer_of_a_former_version_is_removed_once_also_from_a_deleted_owner() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "former").await?;
    for name in ["kept", "deleted"] {
        let mut bundle = Bundle::new(name, BundleSpec::default());
        bundle.metadata.finalizers =
            Some(vec!["windlass.dev/teardown".into(), "test.windlass.dev/hold".into()]);
        corner.namespace.api::<Bundle>().create(&PostParams::default(), &bundle).await?;
    }
    corner.delete("Bundle", "deleted").await?;
    let mark = corner.mark()?;
    let operator = corner.operate(PlanController::of(Former)).await?;
    corner.until::<Bundle>("kept", "Ready", "True").await?;
    let others = json!(["test.windlass.dev/hold"]);
    for name in ["kept", "deleted"] {
        windlass_testenv::eventually("only the finalizer of others to be left", || async {
            let owner = corner.object("Bundle", name).await.map_err(|error| error.to_string())?;
            let finalizers = &owner["metadata"]["finalizers"];
            if *finalizers == others { Ok(()) } else { Err(finalizers.to_string()) }
        })
        .await?;
    }
    corner.look_again(&operator, "Bundle", "kept").await?;
    let requests = corner.requests_since(mark)?;
    let patches = requests.filter(|request| {
        request.resource == "bundles" && request.subresource.is_empty() && request.verb == "patch"
    });
    assert_eq!(patches.count(), 2, "one for each owner: {patches}");
    corner.change("Bundle", "deleted", json!({"metadata": {"finalizers": null}})).await?;
    corner.gone("Bundle", "deleted").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_can_be_deleted_while_it_is_paused_or_an_input_is_missing() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "paused-end").await?;
    let shops = Shops::default();
    let registrar = shops.registrar.clone();
    let operator = corner.operate(PlanController::of(shops)).await?;
    open_shop(&corner).await?;
    let pause = json!({"metadata": {"annotations": {"windlass.dev/paused": "true"}}});
    corner.change("Shop", "one", pause).await?;
    corner.until::<Shop>("one", "Paused", "True").await?;
    corner.delete("Secret", "password").await?;
    corner.delete("Shop", "one").await?;
    corner.gone("Shop", "one").await?;
    assert!(registrar.shops.lock().is_empty(), "what was done outside is undone");
    assert_eq!(corner.standing().await?.keys().collect::<Vec<_>>(), ["PersistentVolumeClaim one-data"]);
    operator.stop().await
}
